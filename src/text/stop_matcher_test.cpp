#include "text/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace afterglow {
namespace {

using Texts = std::vector<std::string>;

struct Outcome {
  std::string text;
  bool stopped;
  bool operator==(const Outcome&) const = default;
};

Outcome feed(const Texts& stops, const Texts& parts) {
  StopMatcher matcher(stops);
  Outcome outcome{};
  for (const auto& part : parts) {
    outcome.text += matcher.push(part);
  }
  outcome.text += matcher.flush();
  outcome.stopped = matcher.stopped();
  return outcome;
}

/// The definition, by search: the stop string that ends first, of those the
/// longest.
Outcome by_search(const Texts& stops, const std::string& text) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const auto& stop : stops) {
      const std::string_view head(text.data(), end);
      if (!stop.empty() && head.ends_with(stop)) {
        longest = std::max(longest, stop.size());
      }
    }
    if (longest > 0) {
      return {text.substr(0, end - longest), true};
    }
  }
  return {text, false};
}

TEST(StopMatcher, FindsStopsHoweverTheTextIsCut) {
  constexpr unsigned kSeed = 3;
  std::mt19937 random(kSeed);
  const auto word = [&](int letters, int most) {
    std::string text(random() % (most + 1), ' ');
    for (auto& c : text) {
      c = static_cast<char>('a' + random() % letters);
    }
    return text;
  };
  for (int round = 0; round < 3000; ++round) {
    Texts stops;
    for (unsigned i = random() % 4; i > 0; --i) {
      stops.push_back(word(2, 5));
    }
    const std::string text = word(2 + round % 2, 30);
    Texts parts;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = 1 + random() % 6;
      parts.push_back(text.substr(at, size));
      at += size;
    }
    const Outcome wanted = by_search(stops, text);
    const Outcome got = feed(stops, parts);
    ASSERT_EQ(got.text, wanted.text) << "seed " << kSeed << " " << text;
    ASSERT_EQ(got.stopped, wanted.stopped) << "seed " << kSeed << " " << text;
  }
}

TEST(StopMatcher, HoldsBackOnlyWhatMayBeginAStop) {
  StopMatcher matcher(Texts{"\nUser:", "END"});
  EXPECT_EQ(matcher.push("Hello\n"), "Hello");
  EXPECT_EQ(matcher.push("Us"), "");
  EXPECT_EQ(matcher.push("e it E"), "\nUse it ");
  EXPECT_EQ(matcher.push("N"), "");
  EXPECT_EQ(matcher.push("E"), "EN");
  EXPECT_EQ(matcher.flush(), "E");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcher, NothingComesAfterAStop) {
  StopMatcher matcher(Texts{"x", "stop"});
  EXPECT_EQ(matcher.push("a stop here x"), "a ");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.matched(), 1U);
  EXPECT_EQ(matcher.push("more"), "");
  EXPECT_EQ(matcher.flush(), "");
}

TEST(StopMatcher, CharactersStayWhole) {
  // The stop shares its first bytes with other characters.
  StopMatcher matcher(Texts{"\u4f60\u597d"});
  EXPECT_EQ(matcher.push("\u4f61"), "\u4f61");
  EXPECT_EQ(matcher.push("\u4f60"), "");
  EXPECT_EQ(matcher.push("\u597e"), "\u4f60\u597e");
  EXPECT_EQ(matcher.push("a\u4f60"), "a");
  EXPECT_EQ(matcher.push("\u597d"), "");
  EXPECT_TRUE(matcher.stopped());
}

TEST(StopMatcher, WithoutStopsTextPasses) {
  EXPECT_EQ(feed({}, {"a", "", "b"}), (Outcome{"ab", false}));
  EXPECT_EQ(feed({""}, {"a", "", "b"}), (Outcome{"ab", false}));
}

}  // namespace
}  // namespace afterglow
