#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "store/context.h"
#include "store/damage.h"
#include "store/io_threads.h"

namespace afterglow {

/// Brings blocks from disk into RAM. Thread: safe from any thread.
class Restorer {
 public:
  Restorer(StoreContext& context, DamageControl& damage, IoThreads& threads)
      : context_(context), damage_(damage), threads_(threads) {}

  /// As Store::restore.
  void restore(RestoreRequest request);

 private:
  struct Job;

  void plan(const std::shared_ptr<Job>& job);
  void work(const std::shared_ptr<Job>& job);
  void finish(Job& job);
  void answer(Job& job, Restored restored);
  void measure(double seconds);
  /// Dates the block's file, so that the order of use survives a crash.
  void touch(const BlockId& id);

  StoreContext& context_;
  DamageControl& damage_;
  IoThreads& threads_;
  /// A moving average of the time to read and verify a block; 0: none yet.
  std::atomic<double> block_seconds_{0};
};

}  // namespace afterglow
