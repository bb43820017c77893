#include "engine/model_runner.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "base/check.h"

namespace afterglow {

ModelRunner::ModelRunner(Ops& ops, const LoadedModel& model)
    : ops_(ops), model_(model), pool_(model.layout.page_bytes()) {}

std::unique_ptr<KvState> ModelRunner::new_kv() {
  return ops_.new_kv(model_.layout, pool_);
}

Status ModelRunner::step(
    std::span<const StepItem> items, const std::atomic<bool>& cancel
) {
  bool begun = false;
  try {
    gather(items);
    begun = true;
    Batch batch{tokens_, spans_, &cancel};
    ops_.begin(batch);
    return compute(items, batch);
  } catch (const std::bad_alloc&) {
    if (begun) {
      (void)ops_.end(false);  // whichever part it was, none of it counts
    }
    return Error{
        Code::kExhausted, "[engine.step] the system has no memory left"};
  }
}

void ModelRunner::gather(std::span<const StepItem> items) {
  tokens_.clear();
  spans_.clear();
  rows_.clear();
  for (const StepItem& item : items) {
    CHECK(!item.tokens.empty());
    spans_.push_back({tokens_.size(), item.tokens.size(), item.kv});
    tokens_.insert(tokens_.end(), item.tokens.begin(), item.tokens.end());
    if (!item.logits.empty()) {
      CHECK(item.logits.size() == model_.vocab_size);
      rows_.push_back(tokens_.size() - 1);
    }
  }
  logits_.resize(rows_.size() * model_.vocab_size);
}

Status ModelRunner::compute(
    std::span<const StepItem> items, const Batch& batch
) {
  bool cancelled = false;
  {
    Value hidden = model_.architecture->forward(ops_, batch);
    cancelled = batch.cancelled();
    if (!cancelled && !rows_.empty()) {
      ops_.logits(
          hidden,
          model_.architecture->head(),
          rows_,
          model_.architecture->logit_softcap(),
          logits_
      );
    }
  }
  bool finite =
      cancelled || std::all_of(logits_.begin(), logits_.end(), [](float x) {
        return std::isfinite(x);
      });
  if (Status ended = ops_.end(!cancelled && finite); !ended.ok()) {
    return ended;
  }
  if (cancelled) {
    return Error{Code::kCancelled, "[engine.step] cancelled"};
  }
  if (!finite) {
    return Error{
        Code::kInternal,
        "[engine.step] the model gave a logit that is not "
        "finite"};
  }
  const float* row = logits_.data();
  for (const StepItem& item : items) {
    if (!item.logits.empty()) {
      std::copy_n(row, model_.vocab_size, item.logits.begin());
      row += model_.vocab_size;
    }
  }
  return {};
}

}  // namespace afterglow
