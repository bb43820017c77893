#include "store/manifest.h"

#include <gtest/gtest.h>

#include <fstream>

namespace afterglow {
namespace {

constexpr std::int64_t kNow = 1'800'000'000'000'000'000;

BlockId id(std::uint8_t value) {
  BlockId result;
  result.bytes.fill(value);
  return result;
}

std::string folder(char digit) {
  return std::string(64, digit) + "-" + std::string(64, '0');
}

ManifestEntry entry(
    std::vector<std::uint8_t> path, std::size_t length, std::int64_t use
) {
  ManifestEntry result;
  result.model = folder('a');
  for (std::uint8_t value : path) {
    result.record.path.push_back(id(value));
  }
  result.record.length = length;
  result.record.last_use_ns = use;
  return result;
}

std::vector<std::size_t> lengths(const Manifest& manifest) {
  std::vector<std::size_t> result;
  for (const ManifestEntry& item : manifest.entries) {
    result.push_back(item.record.length);
  }
  std::sort(result.begin(), result.end());
  return result;
}

Manifest golden() {
  ManifestEntry system = entry({1}, 256, 1000);
  system.record.type = EntryType::kSystem;
  system.record.hits = 3;
  ManifestEntry user = entry({1, 2, 3}, 600, 900);
  user.record.type = EntryType::kUser;
  user.record.pinned = true;
  user.record.ttl_ns = 5;
  return {{system, user}};
}

TEST(Manifest, TheGoldenFileOfVersion1IsWrittenAlike) {
  std::ifstream in(
      std::string(AFTERGLOW_SOURCE_DIR) + "/src/store/testdata/manifest1.json"
  );
  ASSERT_TRUE(in);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(format_manifest(golden()), text);
  auto parsed = parse_manifest(text, kNow);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(format_manifest(*parsed), text);
  // The least recently used comes first.
  ASSERT_EQ(parsed->entries.size(), 2u);
  EXPECT_EQ(parsed->entries[0].record.type, EntryType::kUser);
  EXPECT_TRUE(parsed->entries[0].record.pinned);
  EXPECT_EQ(parsed->entries[1].record.hits, 3u);
}

TEST(Manifest, UsesInTheFutureBecomeNow) {
  auto parsed =
      parse_manifest(format_manifest({{entry({1}, 9, kNow + 7)}}), kNow);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->entries.at(0).record.last_use_ns, kNow);
}

TEST(Manifest, TruncatedAtEveryLengthIsRefusedOrTheSame) {
  std::string text = format_manifest(golden());
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    EXPECT_FALSE(parse_manifest(text.substr(0, i), kNow)) << i;
  }
}

TEST(Manifest, EntriesThatMakeNoSenseAreLeftOut) {
  std::string good = format_manifest({{entry({1, 2}, 300, 5)}});
  auto with = [&](std::string from, std::string to) {
    std::string text = good;
    std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    auto parsed = parse_manifest(text, kNow);
    EXPECT_TRUE(parsed) << text;
    return parsed ? parsed->entries.size() : 99;
  };
  EXPECT_EQ(with("300", "301"), 1u);
  EXPECT_EQ(with("300", "256"), 0u);  // would be one block
  EXPECT_EQ(with("300", "513"), 0u);
  EXPECT_EQ(with("300", "0"), 0u);
  EXPECT_EQ(with("300", "-300"), 0u);
  EXPECT_EQ(with("300", "300.5"), 0u);
  EXPECT_EQ(with("300", "\"300\""), 0u);
  EXPECT_EQ(with("assistant", "os.system"), 0u);
  EXPECT_EQ(with("false", "0"), 0u);
  EXPECT_EQ(with("0101", "01g1"), 0u);
  EXPECT_EQ(with("0101", "../1"), 0u);
  EXPECT_EQ(with("aaaa", "aaa"), 0u);
  EXPECT_EQ(with("hits", "bits"), 0u);
}

TEST(Manifest, OtherVersionsAreToldApart) {
  auto later = parse_manifest("{\"version\":2,\"entries\":[]}", kNow);
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, Code::kUnsupported);
  for (const char* text :
       {"",
        "null",
        "[]",
        "{}",
        "{\"version\":1}",
        "{\"version\":\"1\",\"entries\":[]}",
        "{\"version\":1,\"entries\":{}}"}) {
    auto parsed = parse_manifest(text, kNow);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::kCorrupt);
  }
  std::string deep(100000, '[');
  EXPECT_FALSE(parse_manifest(deep, kNow));
}

TEST(Manifest, TheNewerUseWins) {
  ManifestEntry older = entry({1}, 100, 10);
  ManifestEntry newer = entry({1}, 100, 20);
  newer.record.hits = 7;
  for (auto [a, b] : {std::pair(older, newer), std::pair(newer, older)}) {
    Manifest merged = merge_manifests({{a}}, {{b}});
    ASSERT_EQ(merged.entries.size(), 1u);
    EXPECT_EQ(merged.entries[0].record.hits, 7u);
  }
}

TEST(Manifest, ASystemEntryStaysOneWhoeverUsesTheSamePrompt) {
  // Also where two were cut to the same end, as in one manifest.
  ManifestEntry system = entry({1}, 256, 10);
  system.record.type = EntryType::kSystem;
  ManifestEntry chat = entry({1}, 256, 20);
  for (const Manifest& merged :
       {merge_manifests({{system}}, {{chat}}),
        merge_manifests({{chat}}, {{system}}),
        merge_manifests({{chat, system}}, {})}) {
    ASSERT_EQ(merged.entries.size(), 1u);
    EXPECT_EQ(merged.entries[0].record.type, EntryType::kSystem);
    EXPECT_EQ(merged.entries[0].record.last_use_ns, 20);
  }
}

TEST(Manifest, TheNewerDecisionToPinWinsOverANewerUse) {
  ManifestEntry used = entry({1}, 100, 30);
  ManifestEntry decided = entry({1}, 100, 20);
  for (bool pinned : {true, false}) {
    used.record.pinned = !pinned;
    used.record.pin_time_ns = 10;
    decided.record.pinned = pinned;
    decided.record.pin_time_ns = 20;
    for (auto [a, b] : {std::pair(used, decided), std::pair(decided, used)}) {
      Manifest merged = merge_manifests({{a}}, {{b}});
      ASSERT_EQ(merged.entries.size(), 1u);
      EXPECT_EQ(merged.entries[0].record.pinned, pinned);
      EXPECT_EQ(merged.entries[0].record.pin_time_ns, 20);
      EXPECT_EQ(merged.entries[0].record.last_use_ns, 30);
      auto again = parse_manifest(format_manifest(merged), kNow);
      ASSERT_TRUE(again);
      EXPECT_EQ(again->entries[0].record.pin_time_ns, 20);
    }
  }
}

TEST(Manifest, PrefixesAreAbsorbedUnlessPinnedOrSystem) {
  ManifestEntry longer = entry({1, 2}, 400, 1);
  ManifestEntry prefix = entry({1}, 256, 2);
  EXPECT_EQ(
      lengths(merge_manifests({{prefix}}, {{longer}})),
      std::vector<std::size_t>{400}
  );
  prefix.record.pinned = true;
  EXPECT_EQ(merge_manifests({{prefix}}, {{longer}}).entries.size(), 2u);
  prefix.record.pinned = false;
  prefix.record.type = EntryType::kSystem;
  EXPECT_EQ(merge_manifests({{prefix}}, {{longer}}).entries.size(), 2u);
  prefix.record.type = EntryType::kUser;
  prefix.model = folder('b');
  EXPECT_EQ(merge_manifests({{prefix}}, {{longer}}).entries.size(), 2u);
}

TEST(Manifest, TheIndexNeverPromisesMoreThanTheData) {
  Manifest manifest{{entry({1, 2, 3}, 700, 1), entry({4}, 20, 2)}};
  ManifestEntry other = entry({5}, 30, 3);
  other.model = folder('b');
  manifest.entries.push_back(other);
  keep_stored(manifest, folder('a'), {id(1), id(3)});
  EXPECT_EQ(lengths(manifest), (std::vector<std::size_t>{30, 256}));
}

}  // namespace
}  // namespace afterglow
