#include "ops/cpu/cpu_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace afterglow {
namespace {

constexpr std::size_t kColumns = 16;
constexpr std::size_t kMostDims = 512;
// Query rows of a task that walks over all pages: enough to use a page from
// the cache several times, few enough to keep all threads busy.
constexpr std::size_t kTaskRows = 96;
// Tasks that a thread should get at least, where a page is the least task.
constexpr std::size_t kTasksPerThread = 4;
// Partials that are worth handing to other threads for merging.
constexpr std::size_t kMergePartials = 256;
// Values of a sink.
constexpr float kNoValues[kMostDims] = {};

CpuKv& kv_of(const Span& span) {
  return static_cast<CpuKv&>(*span.kv);
}

// Numbers below this are zero in f32 pages, so that no product with a weight
// (at least 2^-100) underflows: a skipped key and one of weight 0 are then
// the same to the last bit. For f16 that holds anyway.
constexpr float kLeastValue = 0x1p-26f;

}  // namespace

void AttentionRunner::append(const AttentionInput& in, const Append& part)
    const {
  const Attention& a = *in.attention;
  const Span& span = in.spans[part.span];
  CpuKv& kv = kv_of(span);
  std::size_t dim = a.head_dim;
  std::size_t width = (a.heads + 2 * a.kv_heads) * dim;
  bool half = kv.layout().layers[a.layer].type == KvType::kF16;
  std::size_t position = kv.length() + part.token;
  std::size_t page = position / kPageTokens;
  std::size_t column = position % kPageTokens;
  bool ends_span = part.token + part.count == span.count;
  std::size_t clear =
      ends_span ? (kColumns - (column + part.count) % kColumns) % kColumns : 0;

  for (std::size_t t = 0; t < part.count; ++t) {
    std::size_t row = span.row + part.token + t;
    float* head = in.qkv + row * width;
    for (std::size_t h = 0; h < a.heads + a.kv_heads; ++h, head += dim) {
      const float* norm = h < a.heads ? in.q_norm : in.k_norm;
      if (norm != nullptr) {
        kernels_.rms_norm(head, norm, a.norm_eps, dim, head);
      }
      if (in.cosine != nullptr) {
        kernels_.rope(
            head,
            in.cosine + row * in.pairs,
            in.sine + row * in.pairs,
            in.pairs,
            a.rope->interleaved
        );
      }
    }
  }
  float* first = in.qkv + (span.row + part.token) * width;
  for (std::size_t h = 0; h < a.kv_heads; ++h) {
    const float* k = first + (a.heads + h) * dim;
    float* v = first + (a.heads + a.kv_heads + h) * dim;
    std::byte* k_page = kv.k_to_write(page, a.layer, h);
    std::byte* v_page = kv.v_to_write(page, a.layer, h);
    if (half) {
      std::uint16_t keys[kColumns * kMostDims];
      auto* columns = reinterpret_cast<std::uint16_t*>(k_page) + column;
      auto* values = reinterpret_cast<std::uint16_t*>(v_page) + column * dim;
      for (std::size_t t = 0; t < part.count; ++t) {
        kernels_.to_half(k + t * width, dim, keys + t * dim);
        kernels_.to_half(v + t * width, dim, values + t * dim);
      }
      for (std::size_t d = 0; d < dim; ++d, columns += kPageTokens) {
        for (std::size_t t = 0; t < part.count; ++t) {
          columns[t] = keys[t * dim + d];
        }
        std::fill_n(columns + part.count, clear, std::uint16_t{0});
      }
    } else {
      auto* columns = reinterpret_cast<float*>(k_page) + column;
      auto* values = reinterpret_cast<float*>(v_page) + column * dim;
      for (std::size_t d = 0; d < dim; ++d, columns += kPageTokens) {
        for (std::size_t t = 0; t < part.count; ++t) {
          columns[t] = k[t * width + d];
          float value = v[t * width + d];
          bool tiny = std::fabs(value) < kLeastValue;
          values[t * dim + d] = tiny ? 0.0f : value;
        }
        std::fill_n(columns + part.count, clear, 0.0f);
      }
    }
  }
}

void AttentionRunner::plan(const AttentionInput& in) {
  const Attention& a = *in.attention;
  std::size_t group = a.heads / a.kv_heads;
  appends_.clear();
  wholes_.clear();
  for (std::size_t s = 0; s < in.spans.size(); ++s) {
    const Span& span = in.spans[s];
    std::size_t start = span.kv->length();
    for (std::size_t t = 0; t < span.count;) {
      std::size_t room = kColumns - (start + t) % kColumns;
      std::size_t count = std::min(room, span.count - t);
      appends_.push_back({s, t, count});
      t += count;
    }
    std::size_t rows = span.count * group;
    for (std::size_t h = 0; h < a.kv_heads; ++h) {
      for (std::size_t r = 0; r < rows; r += kTaskRows) {
        std::size_t n = std::min(kTaskRows, rows - r);
        std::size_t oldest = start + r / group;
        std::size_t newest = start + (r + n - 1) / group;
        std::size_t from =
            a.window != 0 && oldest + 1 > a.window ? oldest + 1 - a.window : 0;
        std::size_t first = from / kPageTokens;
        std::size_t last = newest / kPageTokens + 1;
        wholes_.push_back({s, h, r, n, first, last, -1});
      }
    }
  }
  plan_tasks(in);
}

// Parts the wholes that would keep one thread busy while others wait.
void AttentionRunner::plan_tasks(const AttentionInput& in) {
  tasks_.clear();
  merges_.clear();
  partials_ = 0;
  std::size_t work = 0;
  for (const Task& whole : wholes_) {
    work += whole.rows * (whole.last_page - whole.first_page);
  }
  std::size_t most = work / (kTasksPerThread * pool_.threads());
  for (const Task& whole : wholes_) {
    std::size_t pages = std::max<std::size_t>(1, most / whole.rows);
    if (pool_.threads() == 1 || whole.last_page - whole.first_page <= pages) {
      tasks_.push_back(whole);
      continue;
    }
    merges_.push_back(whole);
    merges_.back().partial = static_cast<std::ptrdiff_t>(partials_);
    for (std::size_t p = whole.first_page; p < whole.last_page; p += pages) {
      Task part = whole;
      part.first_page = p;
      part.last_page = std::min(p + pages, whole.last_page);
      part.partial = static_cast<std::ptrdiff_t>(partials_);
      tasks_.push_back(part);
      partials_ += whole.rows * (part.last_page - p);
    }
  }
  std::size_t dim = in.attention->head_dim;
  partial_values_ = partial_memory_.room_for<float>(partials_ * (dim + 2));
  partial_largest_ = partial_values_ + partials_ * dim;
  partial_sum_ = partial_largest_ + partials_;
}

void AttentionRunner::attend(
    const AttentionInput& in, const Task& task, float* scratch
) {
  const Attention& a = *in.attention;
  const Span& span = in.spans[task.span];
  const CpuKv& kv = kv_of(span);
  std::size_t dim = a.head_dim;
  std::size_t group = a.heads / a.kv_heads;
  std::size_t width = (a.heads + 2 * a.kv_heads) * dim;
  std::size_t most = kernels_.query_rows;
  bool half = kv.layout().layers[a.layer].type == KvType::kF16;

  float* q = scratch;                        // [rows][dim]
  float* totals = q + kTaskRows * dim;       // [rows][dim]
  float* values = totals + kTaskRows * dim;  // [most][dim]
  float* total_largest = values + most * dim;
  float* total_sum = total_largest + kTaskRows;
  float* largest = total_sum + kTaskRows;
  float* sum = largest + most;
  auto* first = reinterpret_cast<std::int32_t*>(sum + most);
  auto* last = first + most;

  for (std::size_t r = 0; r < task.rows; ++r) {
    std::size_t row = task.first_row + r;
    std::size_t head = task.kv_head * group + row % group;
    const float* from = in.qkv + (span.row + row / group) * width + head * dim;
    for (std::size_t d = 0; d < dim; ++d) {
      q[r * dim + d] = from[d] * a.scale;
    }
    total_sum[r] = 0;
  }
  for (std::size_t page = task.first_page; page < task.last_page; ++page) {
    std::size_t base = page * kPageTokens;
    for (std::size_t r = 0; r < task.rows; r += most) {
      std::size_t n = std::min(most, task.rows - r);
      bool any = false;
      for (std::size_t i = 0; i < n; ++i) {
        std::size_t seen = kv.length() + (task.first_row + r + i) / group + 1;
        std::size_t from =
            a.window != 0 && seen > a.window ? seen - a.window : 0;
        first[i] = static_cast<std::int32_t>(
            std::clamp(from, base, base + kPageTokens) - base
        );
        last[i] = static_cast<std::int32_t>(
            std::clamp(seen, base, base + kPageTokens) - base
        );
        any = any || first[i] < last[i];
      }
      AttendPage arguments{
          .q = q + r * dim,
          .rows = n,
          .k_dim = dim,
          .v_dim = dim,
          .half = half,
          .k = kv.k(page, a.layer, task.kv_head),
          .v = kv.v(page, a.layer, task.kv_head),
          .first = first,
          .last = last,
          .softcap = a.softcap,
          .largest = largest,
          .sum = sum,
          .values = values,
      };
      if (task.partial >= 0) {
        std::size_t place =
            task.partial + (page - task.first_page) * task.rows + r;
        arguments.values = partial_values_ + place * dim;
        arguments.largest = partial_largest_ + place;
        arguments.sum = partial_sum_ + place;
        kernels_.attend_page(arguments);
        continue;
      }
      if (!any) {
        continue;
      }
      kernels_.attend_page(arguments);
      for (std::size_t i = 0; i < n; ++i) {
        AttendTotal total{
            total_largest + r + i, total_sum + r + i, totals + (r + i) * dim};
        kernels_.attend_add(total, largest[i], sum[i], values + i * dim, dim);
      }
    }
  }
  if (task.partial < 0) {
    for (std::size_t r = 0; r < task.rows; ++r) {
      finish(in, task, r, {total_largest + r, total_sum + r, totals + r * dim});
    }
  }
}

void AttentionRunner::finish(
    const AttentionInput& in,
    const Task& task,
    std::size_t row,
    const AttendTotal& total
) const {
  const Attention& a = *in.attention;
  std::size_t group = a.heads / a.kv_heads;
  row += task.first_row;
  std::size_t token = in.spans[task.span].row + row / group;
  std::size_t head = task.kv_head * group + row % group;
  if (in.sinks != nullptr) {
    kernels_.attend_add(total, in.sinks[head], 1, kNoValues, a.head_dim);
  }
  float* out = in.out + (token * a.heads + head) * a.head_dim;
  kernels_.attend_finish(total, a.head_dim, out);
}

void AttentionRunner::merge(
    const AttentionInput& in, const Task& whole, std::size_t row
) {
  std::size_t dim = in.attention->head_dim;
  float values[kMostDims];
  float largest = 0;
  float sum = 0;
  AttendTotal total{&largest, &sum, values};
  std::size_t place = whole.partial + row;
  for (std::size_t p = whole.first_page; p < whole.last_page; ++p) {
    kernels_.attend_add(
        total,
        partial_largest_[place],
        partial_sum_[place],
        partial_values_ + place * dim,
        dim
    );
    place += whole.rows;
  }
  finish(in, whole, row, total);
}

void AttentionRunner::run(const AttentionInput& in) {
  const Attention& a = *in.attention;
  CHECK(a.head_dim % 16 == 0 && a.head_dim <= kMostDims);
  CHECK(a.kv_heads > 0 && a.heads % a.kv_heads == 0);
  plan(in);
  std::size_t floats = (2 * kTaskRows + kernels_.query_rows) * a.head_dim +
                       2 * kTaskRows + 4 * kernels_.query_rows;
  thread_scratch_.resize(scratch_.size());
  for (std::size_t i = 0; i < scratch_.size(); ++i) {
    thread_scratch_[i] = scratch_[i].room_for<float>(floats);
  }
  if (appends_.size() <= 2) {
    for (const Append& part : appends_) {
      append(in, part);
    }
  } else {
    pool_.run(appends_.size(), [&](std::size_t i, int) {
      append(in, appends_[i]);
    });
  }
  pool_.run(tasks_.size(), [&](std::size_t i, int thread) {
    attend(in, tasks_[i], thread_scratch_[thread]);
  });
  auto merge_rows = [&](std::size_t i, int) {
    for (std::size_t r = 0; r < merges_[i].rows; ++r) {
      merge(in, merges_[i], r);
    }
  };
  if (partials_ < kMergePartials) {
    for (std::size_t i = 0; i < merges_.size(); ++i) {
      merge_rows(i, 0);
    }
  } else {
    pool_.run(merges_.size(), merge_rows);
  }
}

}  // namespace afterglow
