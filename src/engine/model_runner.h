#pragma once

#include <memory>
#include <vector>

#include "engine/runner.h"
#include "model/model.h"

namespace afterglow {

/// Runs a loaded model's architecture on its backend.
/// Thread: the generation thread. Requires: ops and model outlive it.
class ModelRunner : public Runner {
 public:
  ModelRunner(Ops& ops, const LoadedModel& model);

  const KvLayout& layout() const override { return model_.layout; }
  std::size_t vocab_size() const override { return model_.vocab_size; }
  std::size_t context_length() const override { return model_.context_length; }
  PagePool& pool() override { return pool_; }
  std::unique_ptr<KvState> new_kv() override;
  Status step(std::span<const StepItem> items, const std::atomic<bool>& cancel)
      override;

 private:
  void gather(std::span<const StepItem> items);
  Status compute(std::span<const StepItem> items, const Batch& batch);

  Ops& ops_;
  const LoadedModel& model_;
  PagePool pool_;

  // Of the current step; kept to save allocations.
  std::vector<Token> tokens_;
  std::vector<Span> spans_;
  std::vector<std::size_t> rows_;
  std::vector<float> logits_;
};

}  // namespace afterglow
