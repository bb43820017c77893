#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/weights.h"
#include "ops/ops.h"

namespace afterglow {

/// Hands weights to a backend by name. The first failure becomes status();
/// ids made after it are not valid.
/// Thread: the generation thread.
class Builder {
 public:
  Builder(Weights& weights, Ops& ops) : weights_(weights), ops_(ops) {}

  /// A part of a fused layer: rows of the matrix `name`.weight.
  struct Part {
    std::string name;
    std::size_t rows;
  };

  /// The parts' rows one after another as one layer, with the parts' biases
  /// `name`.bias where `bias`.
  LinearId linear(const std::vector<Part>& parts, std::size_t cols, bool bias);
  VectorId vector(const std::string& name, std::size_t size);
  void ignore(const std::string& name) { weights_.ignore(name); }

  const Status& status() const { return status_; }

 private:
  void fail(const Error& error);

  Weights& weights_;
  Ops& ops_;
  Status status_;
};

}  // namespace afterglow
