#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace afterglow::test {

/// n elements right before a page that can't be touched: a kernel that reads
/// or writes one byte too far faults. Odd sizes are misaligned by themselves.
template <class T>
class Guarded {
 public:
  explicit Guarded(std::size_t n) : size_(n) {
    auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    bytes_ = (n * sizeof(T) + page - 1) / page * page + page;
    void* memory = mmap(
        nullptr,
        bytes_,
        PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS,
        -1,
        0
    );
    CHECK(memory != MAP_FAILED);
    base_ = static_cast<std::byte*>(memory);
    CHECK(mprotect(base_ + bytes_ - page, page, PROT_NONE) == 0);
    data_ = reinterpret_cast<T*>(base_ + bytes_ - page) - n;
  }
  /// With `slack` elements behind the values, so that those need not be aligned
  /// to more than one.
  explicit Guarded(const std::vector<T>& values, std::size_t slack = 0)
      : Guarded(values.size() + slack) {
    std::memcpy(data_, values.data(), values.size() * sizeof(T));
  }
  ~Guarded() { munmap(base_, bytes_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  std::vector<T> copy() const { return {data_, data_ + size_}; }

 private:
  std::size_t size_;
  std::size_t bytes_ = 0;
  std::byte* base_ = nullptr;
  T* data_ = nullptr;
};

/// Whether both have the same bytes.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace afterglow::test
