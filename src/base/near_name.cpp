#include "base/near_name.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace afterglow {
namespace {

std::string folded(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c == '_') c = '-';
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

/// How many letters are wrong, missing, surplus, or swapped with the next.
/// Source: "optimal string alignment", by rows.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t wrong = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + wrong});
      const bool swapped =
          i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

/// The most letters at which a word of this length still counts as near.
std::size_t tolerance(std::size_t length) {
  return length < 3 ? 0 : std::min<std::size_t>(3, 1 + length / 6);
}

}  // namespace

std::string near_name(
    std::string_view word, const std::vector<std::string>& names
) {
  const std::string wanted = folded(word);
  std::size_t least = tolerance(wanted.size()) + 1;
  std::string nearest;
  for (const std::string& name : names) {
    const std::string here = folded(name);
    // No letters of a name can make up for more that a word has besides.
    if (wanted.size() > here.size() + least) continue;
    const std::size_t letters = distance(wanted, here);
    if (letters >= least) continue;
    least = letters;
    nearest = name;
  }
  return nearest;
}

std::string did_you_mean(
    std::string_view word,
    const std::vector<std::string>& names,
    const std::string& prefix,
    const std::string& suffix
) {
  const std::string name = near_name(word, names);
  if (name.empty()) return {};
  return "; did you mean " + prefix + name + suffix + "?";
}

}  // namespace afterglow
