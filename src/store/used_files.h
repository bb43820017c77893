#pragma once

#include <mutex>

#include "store/context.h"

namespace afterglow {

/// Looks whether the files of used blocks are still there, since others may
/// remove them at any time. Thread: safe from any thread.
class UsedFiles {
 public:
  explicit UsedFiles(StoreContext& context) : context_(context) {}

  /// Of all blocks used before the call, those whose files are gone are queued
  /// again, or forgotten where memory has them no more.
  /// Thread: not the generation thread.
  void look();

 private:
  StoreContext& context_;
  std::mutex mutex_;  // who comes second waits for what the first took
};

}  // namespace afterglow
