#include "server/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <utility>
#include <vector>

namespace afterglow {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

/// Collects families, each named and described once.
class Families {
 public:
  void counter(const char* name, const char* help) {
    begin(name, help, MetricType::Counter);
  }
  void gauge(const char* name, const char* help) {
    begin(name, help, MetricType::Gauge);
  }
  /// Adds a value to the family that was begun last.
  template <class Number>
  void add(Number value, Labels labels = {}) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.counter.value = metric.gauge.value = static_cast<double>(value);
    families_.back().metric.push_back(std::move(metric));
  }
  /// A summary without quantiles.
  void summary(
      const char* name, const char* help, std::uint64_t count, double sum
  ) {
    begin(name, help, MetricType::Summary);
    ClientMetric metric;
    metric.summary.sample_count = count;
    metric.summary.sample_sum = sum;
    families_.back().metric.push_back(std::move(metric));
  }

  void histogram(
      const char* name, const char* help, const DurationHistogram& durations
  ) {
    begin(name, help, MetricType::Histogram);
    ClientMetric metric;
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < durations.counts.size(); ++i) {
      count += durations.counts[i];
      const double bound = i < DurationHistogram::kBounds.size()
                               ? DurationHistogram::kBounds[i]
                               : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back({count, bound});
    }
    metric.histogram.sample_count = count;
    metric.histogram.sample_sum = durations.sum;
    families_.back().metric.push_back(std::move(metric));
  }

  std::string text() const {
    return prometheus::TextSerializer().Serialize(families_);
  }

 private:
  void begin(const char* name, const char* help, MetricType type) {
    families_.push_back({std::string("afterglow_") + name, help, type, {}});
  }

  std::vector<MetricFamily> families_;
};

Labels tier(const char* name) {
  return {{"tier", name}};
}
Labels reason(const char* name) {
  return {{"reason", name}};
}

bool limited(std::uint64_t budget) {
  return budget != CacheLimits::kUnlimited;
}

void add_requests(
    Families& to, const EngineReport& report, std::size_t preparing
) {
  const EngineCounters& done = report.counters;
  to.counter("requests_total", "Requests that ended, by how");
  for (const FinishReason one :
       {FinishReason::kStop, FinishReason::kLength, FinishReason::kCancelled}) {
    to.add(
        done.finished[static_cast<std::size_t>(one)],
        {{"finish_reason", to_string(one)}}
    );
  }
  to.add(done.failed, {{"finish_reason", "error"}});
  to.gauge("requests_running", "Requests being worked on");
  to.add(report.running);
  to.gauge("requests_queued", "Requests that wait");
  to.add(report.queued);
  to.gauge("requests_preparing", "Requests being tokenized, or next to be");
  to.add(preparing);
  to.histogram(
      "queue_seconds",
      "From the arrival of requests to the start of work on their prompts",
      done.queued
  );
  to.histogram(
      "time_to_first_token_seconds",
      "From the arrival of requests to their first token",
      done.first_token
  );
  to.histogram(
      "request_seconds",
      "From the arrival of requests to their end, however they ended",
      done.request
  );
  to.counter("generated_tokens_total", "Tokens generated");
  to.add(done.generated_tokens);
}

void add_prompts(Families& to, const EngineReport& report) {
  const EngineCounters& done = report.counters;
  to.counter("prompt_tokens_total", "Prompt tokens by where they came from");
  to.add(done.ram_prompt_tokens, {{"source", "ram"}});
  to.add(done.disk_prompt_tokens, {{"source", "disk"}});
  to.add(done.computed_prompt_tokens, {{"source", "computed"}});
  to.counter("cache_lookups_total", "Prompts looked up in the cache");
  to.add(report.cache.lookups);
  to.counter("cache_hits_total", "Requests that reused tokens from a tier");
  to.add(done.ram_hits, tier("ram"));
  to.add(done.disk_hits, tier("disk"));
  to.gauge("prefill_seconds_per_token", "Time to compute a prompt token");
  to.add(done.prefill_seconds_per_token);
  to.counter(
      "prefill_seconds_saved_total",
      "Estimated time that reused tokens would have taken to compute"
  );
  to.add(done.prefill_seconds_saved);
  to.counter(
      "recomputed_requests_total",
      "Requests whose prompt was restored and computed nevertheless"
  );
  to.add(done.recomputed_requests);
  to.counter("recomputed_tokens_total", "Tokens of those that were");
  to.add(done.recomputed_tokens);
}

void add_tiers(Families& to, const EngineReport& report) {
  const CacheStats& cache = report.cache;
  const StoreStats* store = report.store ? &*report.store : nullptr;
  to.gauge("cache_blocks", "Blocks of this model");
  to.add(cache.ram_pages, tier("ram"));
  if (store) to.add(cache.disk_blocks, tier("disk"));
  to.gauge(
      "cache_bytes",
      "Bytes held: in memory by entries alone, on disk by all models"
  );
  to.add(cache.ram_bytes, tier("ram"));
  if (store) to.add(store->disk_used_bytes, tier("disk"));
  to.gauge("cache_budget_bytes", "What a tier may hold; absent: no limit");
  if (limited(cache.limits.ram_bytes)) {
    to.add(cache.limits.ram_bytes, tier("ram"));
  }
  if (store) to.add(store->disk_limit_bytes, tier("disk"));
  to.gauge("cache_entries", "Prompts kept");
  for (const EntryType type :
       {EntryType::kSystem, EntryType::kUser, EntryType::kAssistant}) {
    to.add(
        cache.entries_by_type[static_cast<std::size_t>(type)],
        {{"type", to_string(type)}}
    );
  }
}

void add_evictions(Families& to, const EngineReport& report) {
  const Evictions& gone = report.cache.evicted;
  to.counter("cache_evicted_blocks_total", "Blocks that left a tier");
  to.add(gone.ram_blocks, {{"tier", "ram"}, {"reason", "budget"}});
  if (report.store) {
    const EvictedBlocks& disk = report.store->evicted_blocks;
    to.add(disk.budget, {{"tier", "disk"}, {"reason", "budget"}});
    to.add(disk.expired, {{"tier", "disk"}, {"reason", "expired"}});
    to.add(disk.cleared, {{"tier", "disk"}, {"reason", "cleared"}});
    to.add(disk.superseded, {{"tier", "disk"}, {"reason", "superseded"}});
  }
  to.counter("cache_evicted_entries_total", "Entries that are no more");
  to.add(gone.over_count, reason("count"));
  to.add(gone.over_disk, reason("disk"));
  to.add(gone.expired, reason("expired"));
  to.add(gone.removed, reason("removed"));
  to.add(gone.lost, reason("lost"));
  to.counter(
      "cache_dropped_blocks_total", "Blocks never kept for want of memory"
  );
  to.add(report.cache.dropped_blocks);
}

void add_writes(Families& to, const CacheStats& cache, const StoreStats& s) {
  to.gauge("store_queue_blocks", "Blocks not yet durable");
  to.add(cache.dirty_blocks);
  to.gauge("store_queue_bytes", "Memory of the blocks not yet durable");
  to.add(cache.dirty_bytes);
  to.gauge("store_queue_oldest_seconds", "Age of the oldest of them");
  to.add(cache.oldest_dirty_seconds);
  to.gauge("store_writing", "1 while blocks can be written, else 0");
  to.add(s.writing ? 1 : 0);
  to.counter("store_written_blocks_total", "Blocks written");
  to.add(s.written_blocks);
  to.counter("store_written_bytes_total", "Bytes written");
  to.add(s.written_bytes, {{"file", "block"}});
  to.add(s.manifest_bytes, {{"file", "manifest"}});
  to.counter("store_syncs_total", "Syncs of files and directories");
  to.add(s.syncs);
  to.counter("store_write_failures_total", "Blocks that could not be written");
  to.add(s.write_failures);
  to.counter(
      "store_capped_blocks_total", "Blocks left unwritten by the daily limit"
  );
  to.add(s.capped_blocks);
}

void add_reads(Families& to, const StoreStats& s) {
  to.counter("store_read_blocks_total", "Blocks read");
  to.add(s.read_blocks);
  to.counter("store_read_bytes_total", "Bytes read");
  to.add(s.read_bytes);
  to.counter("store_read_errors_total", "Blocks that could not be read");
  to.add(s.read_errors);
  to.counter("store_corrupt_blocks_total", "Blocks found damaged");
  to.add(s.corrupt_blocks);
  to.summary(
      "restore_seconds",
      "Time of restores that looked at the disk",
      s.restores,
      s.restore_seconds
  );
  to.gauge("store_index_complete", "1 once all block files are known, else 0");
  to.add(s.index_complete ? 1 : 0);
}

}  // namespace

std::string metrics_text(
    const EngineReport& report,
    std::size_t preparing,
    const std::map<unsigned, std::uint64_t>& responses
) {
  Families families;
  families.counter("http_responses_total", "Answers by their status");
  for (const auto& [status, count] : responses) {
    families.add(count, {{"status", std::to_string(status)}});
  }
  add_requests(families, report, preparing);
  add_prompts(families, report);
  add_tiers(families, report);
  add_evictions(families, report);
  if (report.store) {
    add_writes(families, report.cache, *report.store);
    add_reads(families, *report.store);
  }
  return families.text();
}

}  // namespace afterglow
