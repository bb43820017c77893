#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "kv/core.h"
#include "kv/prompt_cache.h"

namespace afterglow {

struct PromptCache::Impl {
  explicit Impl(kv::Core::Options options) : core(std::move(options)) {}

  mutable std::mutex mutex;
  std::condition_variable sealed;   // a block became dirty or was used, or wake
  std::condition_variable cleaned;  // a block ceased to be dirty
  kv::Core core;
  bool woken = false;

  /// Holds the mutex, then wakes who waits for what was done. Pages that left
  /// the tree are released after it, since giving back much memory takes long.
  class Lock {
   public:
    explicit Lock(Impl& impl)
        : impl_(impl),
          lock_(impl.mutex),
          pushed_(impl.core.dirty().pushed()),
          noted_(impl.core.uses_noted()),
          removed_(impl.core.dirty().removed()) {}
    ~Lock() {
      const kv::DirtyQueue& dirty = impl_.core.dirty();
      bool noted = impl_.core.uses_noted() != noted_;
      bool sealed = dirty.pushed() != pushed_ || noted;
      impl_.woken = impl_.woken || noted;
      bool cleaned = dirty.removed() != removed_;
      std::vector<PagePtr> garbage =
          std::exchange(impl_.core.tree().garbage(), {});
      lock_.unlock();
      if (sealed) {
        impl_.sealed.notify_all();
      }
      if (cleaned) {
        impl_.cleaned.notify_all();
      }
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    Impl& impl_;
    std::unique_lock<std::mutex> lock_;
    std::uint64_t pushed_;
    std::uint64_t noted_;
    std::uint64_t removed_;
  };
};

struct Trail::State {
  PromptCache::Impl* cache = nullptr;
  kv::TrailState trail;
};

}  // namespace afterglow
