#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "kernels/linear/matrix_source.h"
#include "model/config.h"
#include "model/gguf.h"
#include "model/matrix_decode.h"
#include "model/mlx_matrix.h"
#include "model/safetensors.h"

namespace afterglow {

/// All tensors of a model under their HF names, whatever file they lie in.
/// Remembers which were asked for. Tensors point into mapped files, which
/// must outlive this and what it returns.
/// Thread: one thread at a time.
class Weights {
 public:
  /// Translates GGUF names; rows of q and k come back in HF order.
  /// Errors: kUnsupported naming a tensor that no layer of a llama has.
  static Result<Weights> from_gguf(
      const Gguf& gguf, const ModelConfig& config, const std::string& where
  );

  /// The tensors of all shards. Errors: kCorrupt for a name in two shards.
  static Result<Weights> from_safetensors(
      std::vector<Safetensors> shards, const std::string& where
  );

  /// Layers for which config.json fixes the quantization, by HF name; it is
  /// then compared with what the shapes say.
  void set_rules(std::map<std::string, MlxQuantization> rules) {
    rules_ = std::move(rules);
  }

  /// The matrix `name`.weight. Shape: [rows, cols].
  /// Errors: kCorrupt where it is missing or has another shape;
  /// kUnsupported for its type.
  Result<MatrixSource> matrix(
      const std::string& name, std::size_t rows, std::size_t cols
  );

  /// The vector `name`, as floats. Shape: [size].
  Result<std::vector<float>> vector(const std::string& name, std::size_t size);

  /// Marks a tensor, if it is there, as one the forward pass does without.
  void ignore(const std::string& name) { use(name); }

  /// Lets the system take back the memory of all tensors asked for so far.
  void release_used();

  /// Errors: kUnsupported naming a tensor nobody asked for: a model computed
  /// without it would be another model.
  Status check_all_used() const;

  /// Values of all weights asked for.
  std::uint64_t parameters() const { return parameters_; }

  /// The type most of the matrices' values have: "Q4_1", "4-bit group 64",
  /// "mxfp4", "BF16".
  std::string quantization() const;

  /// Every tensor, in the order of names.
  std::vector<RawTensor> tensors() const;

 private:
  struct Entry {
    RawTensor tensor;
    RowOrder order;
    bool used = false;
    bool released = false;
  };

  Entry* use(const std::string& name);
  // The matrix and what its format is called.
  struct Decoded {
    MatrixSource source;
    std::string type;
  };
  Result<Decoded> decode(const std::string& name, std::size_t cols);
  Status check_rule(const std::string& name, const MlxQuantization& found)
      const;

  std::string where_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, MlxQuantization> rules_;
  std::map<std::string, std::uint64_t> values_by_type_;
  std::uint64_t parameters_ = 0;
};

}  // namespace afterglow
