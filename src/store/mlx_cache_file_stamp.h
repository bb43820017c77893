#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/mlx_cache_file.h"

namespace afterglow {

/// A stamp as the metadata writes it, and the sums of all arrays.
struct StampText {
  MlxCacheStamp stamp;
  std::string sum;                  // 32 hex digits
  std::vector<std::uint64_t> sums;  // in the order of the file
};

/// The metadata of a stamp, its sum's digits '0'. Put first in the header,
/// so that they lie at a fixed place of the file.
std::vector<std::pair<std::string, std::string>> stamp_metadata(
    const MlxCacheStamp& stamp, std::span<const std::uint64_t> sums
);

/// Whether a header has anything of a stamp.
bool has_stamp(const MlxCacheHeader& header);

/// Errors: kCorrupt when a part is missing or not in its form.
Result<StampText> parse_stamp(const MlxCacheHeader& header);

/// The sum over all bytes before the data: the header's length, then `text`.
std::string stamp_sum(std::string_view text);

/// Puts the sum into the header's text, or tells the one that is there; empty
/// when the text does not begin as ours do.
void set_stamp_sum(std::string& text, std::string_view sum);
std::string_view find_stamp_sum(std::string_view text);

}  // namespace afterglow
