#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace afterglow {

/// How many answers had which status. Thread: safe from any thread.
class ResponseCounts {
 public:
  void add(unsigned status) {
    const std::lock_guard lock(mutex_);
    ++counts_[status];
  }
  std::map<unsigned, std::uint64_t> counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<unsigned, std::uint64_t> counts_;
};

}  // namespace afterglow
