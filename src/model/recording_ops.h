#pragma once

#include <vector>

#include "ops/ops.h"

namespace afterglow {

/// Ops that take over weights as plain floats and compute nothing: what a
/// loader hands to a backend, to look at in tests.
class RecordingOps final : public Ops {
 public:
  struct Linear {
    std::size_t rows = 0;
    std::size_t cols = 0;
    std::vector<float> values;  // [rows, cols]
    std::vector<float> bias;
  };

  std::vector<Linear> linears;
  std::vector<std::vector<float>> vectors;
  std::size_t rows_per_read = 7;

  std::string describe() const override { return "recording"; }
  KvType kv_type() const override { return KvType::kF32; }
  std::size_t weight_bytes() const override { return 0; }
  Result<LinearId> add_linear(
      std::span<const MatrixSource> parts, std::span<const float> bias
  ) override;
  VectorId add_vector(std::span<const float> values) override;

  std::unique_ptr<KvState> new_kv(const KvLayout&, PagePool&) override;
  void begin(const Batch&) override;
  Value embed(LinearId, float) override;
  Value linear(const Value&, LinearId) override;
  Value rms_norm(const Value&, VectorId, float) override;
  Value attend(Value, const Attention&) override;
  Value gated_mlp(const Value&, LinearId, LinearId, GateFunction) override;
  void add(Value&, const Value&) override;
  void
  logits(const Value&, LinearId, std::span<const std::size_t>, float, std::span<float>)
      override;
  Status end(bool) override;

 private:
  void release(int) override {}
};

/// All elements of a matrix as floats: scale * code + bias rounded once, since
/// scale * code is exact in every file format. Reads `step` rows at a time.
std::vector<float> decode_matrix(const MatrixSource& source, std::size_t step);

}  // namespace afterglow
