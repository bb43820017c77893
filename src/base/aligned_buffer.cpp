#include "base/aligned_buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

namespace afterglow {

namespace {

/// From this size on memory comes in huge pages where the system has them:
/// a KV page's first touch then costs a few faults instead of thousands.
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

/// Fresh memory from the system, aligned to kHugePage; null on failure. The
/// heap would hand out parts of its arenas, whose pages are small.
void* map_huge(std::size_t bytes) {
  std::size_t mapped = bytes + kHugePage;
  void* memory = ::mmap(
      nullptr,
      mapped,
      PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS,
      -1,
      0
  );
  if (memory == MAP_FAILED) {
    return nullptr;
  }
  auto* begin = static_cast<std::byte*>(memory);
  std::size_t skew = reinterpret_cast<std::uintptr_t>(begin) % kHugePage;
  std::size_t before = skew == 0 ? 0 : kHugePage - skew;
  std::size_t after = mapped - before - bytes;
  if (before > 0) {
    ::munmap(begin, before);
  }
  ::munmap(begin + before + bytes, after);
#ifdef MADV_HUGEPAGE
  // A wish: where it is not granted, small pages do.
  (void)::madvise(begin + before, bytes, MADV_HUGEPAGE);
#endif
  return begin + before;
}

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) {
    return;
  }
  std::size_t rounded = round_up(bytes, kAlignment);
  data_ = static_cast<std::byte*>(
      bytes < kHugePage ? std::aligned_alloc(kAlignment, rounded)
                        : map_huge(rounded)
  );
  if (data_ == nullptr) {
    throw std::bad_alloc();
  }
}

AlignedBuffer::~AlignedBuffer() {
  if (size_ < kHugePage) {
    std::free(data_);
  } else {
    ::munmap(data_, round_up(size_, kAlignment));
  }
}

}  // namespace afterglow
