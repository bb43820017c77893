#include "server/metrics.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>

#include "server/api_fixture.h"

namespace afterglow {
namespace {

using testing::ApiTest;

/// Samples by name and labels; fails on a name without help and type.
std::map<std::string, double> parse(const std::string& text) {
  std::map<std::string, double> samples;
  std::string described;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ")) {
      described = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_GT(line.size(), 7 + described.size() + 1) << line;
    } else if (!line.starts_with("# TYPE ")) {
      EXPECT_TRUE(line.starts_with(described)) << line;
      const std::size_t space = line.rfind(' ');
      const bool is_new =
          samples.emplace(line.substr(0, space), std::stod(line.substr(space)))
              .second;
      EXPECT_TRUE(is_new) << line;
    }
  }
  return samples;
}

TEST(Metrics, EveryCountHasItsPlace) {
  EngineReport report;
  report.running = 1;
  report.queued = 2;
  report.counters.finished = {3, 4, 5};
  report.counters.failed = 6;
  report.counters.generated_tokens = 7;
  report.counters.ram_prompt_tokens = 8;
  report.counters.disk_prompt_tokens = 9;
  report.counters.computed_prompt_tokens = 10;
  report.counters.queued.add(0.002);
  report.counters.queued.add(7);
  report.counters.queued.add(1000);
  report.counters.recomputed_requests = 11;
  report.counters.recomputed_tokens = 12;
  report.counters.prefill_seconds_saved = 13.5;
  report.cache.lookups = 14;
  report.cache.evicted = {15, 16, 17, 18, 19, 20};
  report.cache.oldest_dirty_seconds = 0.25;
  report.store.emplace();
  report.store->evicted_blocks = {21, 22, 23, 24};
  report.store->restores = 25;
  report.store->restore_seconds = 2.5;
  report.store->capped_blocks = 26;
  report.store->manifest_bytes = 27;
  const auto samples = parse(metrics_text(report, 3, {{200, 28}, {429, 29}}));
  const std::map<std::string, double> expected = {
      {"afterglow_requests_running", 1},
      {"afterglow_requests_queued", 2},
      {R"(afterglow_http_responses_total{status="429"})", 29},
      {"afterglow_requests_preparing", 3},
      {R"(afterglow_queue_seconds_bucket{le="0.005"})", 1},
      {R"(afterglow_queue_seconds_bucket{le="5"})", 1},
      {R"(afterglow_queue_seconds_bucket{le="10"})", 2},
      {R"(afterglow_queue_seconds_bucket{le="+Inf"})", 3},
      {"afterglow_queue_seconds_count", 3},
      {"afterglow_queue_seconds_sum", 1007.002},
      {"afterglow_request_seconds_count", 0},
      {R"(afterglow_requests_total{finish_reason="stop"})", 3},
      {R"(afterglow_requests_total{finish_reason="length"})", 4},
      {R"(afterglow_requests_total{finish_reason="cancelled"})", 5},
      {R"(afterglow_requests_total{finish_reason="error"})", 6},
      {"afterglow_generated_tokens_total", 7},
      {R"(afterglow_prompt_tokens_total{source="ram"})", 8},
      {R"(afterglow_prompt_tokens_total{source="disk"})", 9},
      {R"(afterglow_prompt_tokens_total{source="computed"})", 10},
      {"afterglow_recomputed_requests_total", 11},
      {"afterglow_recomputed_tokens_total", 12},
      {"afterglow_prefill_seconds_saved_total", 13.5},
      {"afterglow_cache_lookups_total", 14},
      {R"(afterglow_cache_evicted_blocks_total{tier="ram",reason="budget"})",
       15},
      {R"(afterglow_cache_evicted_entries_total{reason="count"})", 16},
      {R"(afterglow_cache_evicted_entries_total{reason="disk"})", 17},
      {R"(afterglow_cache_evicted_entries_total{reason="expired"})", 18},
      {R"(afterglow_cache_evicted_entries_total{reason="removed"})", 19},
      {R"(afterglow_cache_evicted_entries_total{reason="lost"})", 20},
      {R"(afterglow_cache_evicted_blocks_total{tier="disk",reason="budget"})",
       21},
      {R"(afterglow_cache_evicted_blocks_total{tier="disk",reason="expired"})",
       22},
      {R"(afterglow_cache_evicted_blocks_total{tier="disk",reason="cleared"})",
       23},
      {"afterglow_restore_seconds_count", 25},
      {"afterglow_restore_seconds_sum", 2.5},
      {"afterglow_store_capped_blocks_total", 26},
      {R"(afterglow_store_written_bytes_total{file="manifest"})", 27},
      {"afterglow_store_queue_oldest_seconds", 0.25},
  };
  for (const auto& [name, value] : expected) {
    const auto found = samples.find(name);
    ASSERT_NE(found, samples.end()) << name;
    EXPECT_EQ(found->second, value) << name;
  }
  // No limit is no number.
  EXPECT_EQ(samples.count(R"(afterglow_cache_budget_bytes{tier="ram"})"), 0U);
}

TEST(Metrics, WithoutADiskNothingIsSaidOfIt) {
  const std::string text = metrics_text({}, 0, {});
  EXPECT_EQ(text.find("disk\",reason"), std::string::npos);
  EXPECT_EQ(text.find("afterglow_store_"), std::string::npos);
}

TEST_F(ApiTest, MetricsAreServed) {
  EXPECT_EQ(get("/metrics").status, 503);
  engine_.counters.generated_tokens = 5;
  ready();
  const auto response = get("/metrics");
  EXPECT_EQ(response.status, 200);
  EXPECT_NE(
      response.head.find("Content-Type: text/plain; version=0.0.4"),
      std::string::npos
  );
  EXPECT_EQ(parse(response.body).at("afterglow_generated_tokens_total"), 5);
}

}  // namespace
}  // namespace afterglow
