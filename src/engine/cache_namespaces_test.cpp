#include "engine/cache_namespaces.h"

#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <string>
#include <utility>

namespace afterglow {
namespace {

TEST(CacheNamespaces, NoTwoPairsOfKeysAreAlike) {
  CacheNamespaces namespaces(std::string(32, 's'));
  std::set<std::string> names;
  const std::pair<const char*, const char*> pairs[] = {
      {"", ""}, {"a", ""}, {"", "a"}, {"ab", "c"}, {"a", "bc"}, {"abc", ""}};
  for (auto [api_key, cache_key] : pairs) {
    names.insert(namespaces.name(api_key, cache_key));
  }
  EXPECT_EQ(names.size(), std::size(pairs));
  EXPECT_EQ(namespaces.name("a", "bc"), namespaces.name("a", "bc"));
}

// Computed with Python's hmac module.
TEST(CacheNamespaces, KnownAnswer) {
  CacheNamespaces namespaces(std::string(32, 's'));
  EXPECT_EQ(
      namespaces.name("sk-1", "team"),
      "3aef238a1e95a76cae691d24c16ebf3b31c378ede2d4592f8fca63c7466523df"
  );
}

TEST(CacheNamespaces, AnotherSecretGivesOtherNames) {
  CacheNamespaces mine(CacheNamespaces::random_secret());
  CacheNamespaces theirs(CacheNamespaces::random_secret());
  EXPECT_NE(mine.name("a", "b"), theirs.name("a", "b"));
  EXPECT_EQ(CacheNamespaces::random_secret().size(), 32u);
}

}  // namespace
}  // namespace afterglow
