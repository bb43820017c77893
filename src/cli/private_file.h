#pragma once

#include <string>

namespace afterglow {

/// Whether this is a file that others than its owner may read or change.
bool is_exposed(const std::string& path);

/// Whether it is a file of systemd's LoadCredential=, which others than its
/// owner, root, may read: the service, by an access list.
bool is_credential(const std::string& path);

}  // namespace afterglow
