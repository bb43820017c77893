#pragma once

#include <cstddef>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/check.h"

namespace afterglow {

/// The memory of a step's values. Buffers are kept and used again, so a step
/// no larger than an earlier one allocates nothing.
/// Thread: one thread.
class Arena {
 public:
  /// A slot with room for that many floats, unspecified content.
  int take(std::size_t floats) {
    std::size_t bytes = floats * sizeof(float);
    int best = -1;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].used) {
        continue;
      }
      if (best < 0 || better(slots_[i], slots_[best], bytes)) {
        best = static_cast<int>(i);
      }
    }
    if (best < 0) {
      slots_.emplace_back();
      best = static_cast<int>(slots_.size()) - 1;
    }
    Slot& slot = slots_[best];
    if (slot.buffer.size() < bytes) {
      slot.buffer = AlignedBuffer();
      slot.buffer = AlignedBuffer(bytes);
    }
    slot.used = true;
    return best;
  }

  void release(int slot) {
    CHECK(slots_[slot].used);
    slots_[slot].used = false;
  }

  float* data(int slot) { return slots_[slot].buffer.as<float>(); }

  bool all_released() const {
    for (const Slot& slot : slots_) {
      if (slot.used) {
        return false;
      }
    }
    return true;
  }

 private:
  struct Slot {
    AlignedBuffer buffer;
    bool used = false;
  };

  // The smallest that is large enough, else the largest.
  static bool better(const Slot& a, const Slot& b, std::size_t bytes) {
    bool a_fits = a.buffer.size() >= bytes;
    bool b_fits = b.buffer.size() >= bytes;
    if (a_fits != b_fits) {
      return a_fits;
    }
    return a_fits ? a.buffer.size() < b.buffer.size()
                  : a.buffer.size() > b.buffer.size();
  }

  std::vector<Slot> slots_;
};

/// A buffer that only grows. Thread: one thread.
class Scratch {
 public:
  template <class T>
  T* room_for(std::size_t count) {
    if (buffer_.size() < count * sizeof(T)) {
      buffer_ = AlignedBuffer();
      buffer_ = AlignedBuffer(count * sizeof(T));
    }
    return buffer_.as<T>();
  }

 private:
  AlignedBuffer buffer_;
};

}  // namespace afterglow
