#include "base/aligned_buffer.h"

#include <cstdlib>

#include "base/check.h"

namespace afterglow {

AlignedBuffer::AlignedBuffer(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) {
    return;
  }
  std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  data_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  CHECK(data_ != nullptr, "no memory for " + std::to_string(bytes) + " bytes");
}

AlignedBuffer::~AlignedBuffer() {
  std::free(data_);
}

}  // namespace afterglow
