#pragma once

#include <cstddef>
#include <utility>

#include "base/kv_layout.h"
#include "kernels/linear/matrix_source.h"
#include "mlx/mlx.h"

namespace afterglow {

namespace mx = ::mlx::core;

/// The MLX element type of a KvType.
inline mx::Dtype dtype_of(KvType type) {
  switch (type) {
    case KvType::kF16:
      return mx::float16;
    case KvType::kBF16:
      return mx::bfloat16;
    case KvType::kF32:
      return mx::float32;
  }
  return mx::float32;
}

/// The MLX element type of an ElementType.
inline mx::Dtype dtype_of(ElementType type) {
  switch (type) {
    case ElementType::kF32:
      return mx::float32;
    case ElementType::kF16:
      return mx::float16;
    case ElementType::kBF16:
      return mx::bfloat16;
  }
  return mx::float32;
}

/// Memory from MLX's allocator that the host fills before it becomes an
/// array, so that nothing is copied.
class HostArray {
 public:
  /// Throws what MLX's allocator throws.
  HostArray(mx::Shape shape, mx::Dtype type)
      : shape_(std::move(shape)), type_(type) {
    std::size_t bytes = mx::size_of(type);
    for (auto n : shape_) {
      bytes *= static_cast<std::size_t>(n);
    }
    buffer_ = mx::allocator::malloc(bytes);
    data_ = static_cast<std::byte*>(buffer_.raw_ptr());
  }
  ~HostArray() {
    if (data_ != nullptr) {
      mx::allocator::free(buffer_);
    }
  }
  HostArray(const HostArray&) = delete;
  HostArray& operator=(const HostArray&) = delete;

  std::byte* data() { return data_; }

  /// The array; this is empty afterwards.
  mx::array take() && {
    data_ = nullptr;
    return mx::array(buffer_, shape_, type_);
  }

 private:
  mx::Shape shape_;
  mx::Dtype type_;
  mx::allocator::Buffer buffer_{nullptr};
  std::byte* data_ = nullptr;
};

}  // namespace afterglow
