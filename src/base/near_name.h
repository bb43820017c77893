#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace afterglow {

/// Which of the names was probably meant by a word that is none of them; ""
/// where none is near: one wrong, missing, surplus or swapped pair of letters
/// in short names, up to three in long ones. Case does not count, nor whether
/// words are joined by '-' or '_'.
std::string near_name(
    std::string_view word, const std::vector<std::string>& names
);

/// "; did you mean PREFIX name SUFFIX?", without the spaces, or "" where none
/// is near.
std::string did_you_mean(
    std::string_view word,
    const std::vector<std::string>& names,
    const std::string& prefix,
    const std::string& suffix = {}
);

}  // namespace afterglow
