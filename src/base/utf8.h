#pragma once

#include <string_view>

namespace afterglow {

/// Whether the bytes are UTF-8: no overlong form, no surrogate, nothing above
/// U+10FFFF, no character cut off. Source: RFC 3629, section 4
bool is_utf8(std::string_view bytes);

}  // namespace afterglow
