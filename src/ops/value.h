#pragma once

#include <cstddef>
#include <utility>

namespace afterglow {

class Ops;

/// A handle to activations [tokens of the step, width] that a backend owns.
/// Move-only; destroying it gives the memory back for the next value of the
/// step. Valid between Ops::begin and Ops::end only.
class Value {
 public:
  Value() = default;
  Value(Ops& owner, int slot, std::size_t width)
      : owner_(&owner), slot_(slot), width_(width) {}
  ~Value() { reset(); }
  Value(Value&& other) noexcept
      : owner_(std::exchange(other.owner_, nullptr)),
        slot_(other.slot_),
        width_(other.width_) {}
  Value& operator=(Value&& other) noexcept {
    if (this != &other) {
      reset();
      owner_ = std::exchange(other.owner_, nullptr);
      slot_ = other.slot_;
      width_ = other.width_;
    }
    return *this;
  }

  int slot() const { return slot_; }
  std::size_t width() const { return width_; }

 private:
  void reset();

  Ops* owner_ = nullptr;
  int slot_ = -1;
  std::size_t width_ = 0;
};

}  // namespace afterglow
