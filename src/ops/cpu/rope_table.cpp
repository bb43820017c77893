#include "ops/cpu/rope_table.h"

#include "kernels/math/sincos.h"

namespace afterglow {

void RopeTables::begin(std::span<const std::size_t> positions) {
  positions_ = positions;
  used_ = 0;
}

const RopeTables::Table& RopeTables::table(const Rope& rope) {
  for (std::size_t i = 0; i < used_; ++i) {
    if (tables_[i].rope == &rope) {
      return tables_[i];
    }
  }
  if (used_ == tables_.size()) {
    tables_.emplace_back();
  }
  Table& table = tables_[used_++];
  std::size_t pairs = rope.inv_freq.size();
  std::size_t count = positions_.size() * pairs;
  auto* cosine = table.cosine_memory.room_for<float>(count);
  auto* sine = table.sine_memory.room_for<float>(count);
  auto fill = [&](std::size_t token, int) {
    auto position = static_cast<double>(positions_[token]);
    for (std::size_t i = 0; i < pairs; ++i) {
      double s;
      double c;
      sincos(position * rope.inv_freq[i], &s, &c);
      cosine[token * pairs + i] = static_cast<float>(c * rope.scale);
      sine[token * pairs + i] = static_cast<float>(s * rope.scale);
    }
  };
  if (positions_.size() < 16) {
    for (std::size_t t = 0; t < positions_.size(); ++t) {
      fill(t, 0);
    }
  } else {
    pool_.run(positions_.size(), fill);
  }
  table.rope = &rope;
  table.cosine = cosine;
  table.sine = sine;
  return table;
}

}  // namespace afterglow
