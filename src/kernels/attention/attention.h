#pragma once

#include <cstddef>
#include <cstdint>

namespace afterglow {

/// What several query rows get from one page and one KV head: for each row
/// the largest score, the sum of e^(score - largest) and that weighted sum of
/// the values. A score is q.k over d ascending (softcap applied), a lane a
/// key; sums run over keys ascending, a lane a dimension (of the weights: a
/// lane every 16th key, then the tree).
///
/// A row sees keys [first, last) of the page; where that is empty, sum is 0
/// and the rest is unspecified. Memory of keys outside all rows' ranges is
/// not read, but for K up to the next multiple of 16, which must have been
/// written.
struct AttendPage {
  const float* q;    // [rows][k_dim], scaled
  std::size_t rows;  // 1 .. Kernels::query_rows
  std::size_t k_dim;
  std::size_t v_dim;  // a multiple of 16
  bool half;          // K and V are f16, not f32
  const void* k;      // [k_dim][256]
  const void* v;      // [256][v_dim]
  const std::int32_t* first;
  const std::int32_t* last;
  float softcap;   // 0: none
  float* largest;  // [rows]
  float* sum;      // [rows]
  float* values;   // [rows][v_dim]
};

/// A running total over pages, to which partials are added in page order.
struct AttendTotal {
  float* largest;
  float* sum;     // 0: nothing added yet
  float* values;  // [v_dim]
};

}  // namespace afterglow
