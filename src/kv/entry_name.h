#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kv/prompt_cache.h"

namespace afterglow {

/// "<64 hex digits of the last block's id>:<tokens>": no two entries share it.
std::string entry_name(const EntryRecord& entry);
/// The same with 12 digits, for people.
std::string short_entry_name(const EntryRecord& entry);

/// What someone typed to name an entry: the id's digits or their beginning,
/// with ":<tokens>" or without.
struct EntryName {
  std::string hex_prefix;  // lower case, 4 to 64 digits
  std::optional<std::size_t> tokens;

  bool matches(const EntryRecord& entry) const;
};

/// Errors: kInvalidArgument, saying what a name looks like.
Result<EntryName> parse_entry_name(std::string_view text);

}  // namespace afterglow
