#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// Finding one's way in a model's text without regular expressions, so that no
/// text, however odd, takes long. Spaces and word characters are Python's, but
/// that every character beyond ASCII counts as a word character.
namespace afterglow::tool_parsers {

/// Without white space at the start.
std::string_view skip_space(std::string_view text);
/// Without white space at both ends.
std::string_view strip(std::string_view text);
/// Without white space at the end.
std::string_view strip_end(std::string_view text);
/// Bytes of white space at the start, one character; 0 when there is none.
std::size_t space_size(std::string_view text);

bool is_word(char c);
/// How many bytes at the start are word characters or among `more`.
std::size_t word_size(std::string_view text, std::string_view more = {});

/// Lower case of the letters A to Z.
std::string lower(std::string_view text);

/// Moves past a prefix; false when the text does not begin with it.
bool take_prefix(std::string_view& text, std::string_view prefix);

/// What stands between the next `open` and the first `close` behind it; moves
/// `text` behind that. Nothing when there is no such pair.
std::optional<std::string_view> take_between(
    std::string_view& text, std::string_view open, std::string_view close
);

/// The marks around a key and its value.
struct PairMarks {
  std::string_view open_key, close_key, open_value, close_value;
};

/// The next key and value, between which only white space and the two
/// characters "\n" may stand; moves `text` behind them.
std::optional<std::pair<std::string_view, std::string_view>> take_pair(
    std::string_view& text, const PairMarks& marks
);

/// A name without the white space and the pair of quotes around it.
std::string_view unquoted(std::string_view name);

}  // namespace afterglow::tool_parsers
