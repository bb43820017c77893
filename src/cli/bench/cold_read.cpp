#include "cli/bench/cold_read.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/aligned_buffer.h"

namespace afterglow {
namespace {

constexpr std::size_t kChunk = std::size_t{8} << 20;

class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Error io_error(const std::string& path) {
  return {Code::kIo, "[bench.read] " + path + ": " + std::strerror(errno)};
}

/// Pages of the file that memory holds.
Result<std::size_t> resident_pages(const std::string& path, int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return io_error(path);
  const auto bytes = static_cast<std::size_t>(info.st_size);
  if (bytes == 0) return std::size_t{0};
  void* map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return io_error(path);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident((bytes + page - 1) / page);
  const int asked = ::mincore(map, bytes, resident.data());
  ::munmap(map, bytes);
  if (asked != 0) return io_error(path);
  std::size_t count = 0;
  for (unsigned char flags : resident) count += flags & 1;
  return count;
}

}  // namespace

Status drop_from_page_cache(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    Descriptor file(path);
    if (file.get() < 0) return io_error(path);
    // Dirty pages cannot be dropped.
    if (::fdatasync(file.get()) != 0) return io_error(path);
    if (int e = ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED)) {
      errno = e;
      return io_error(path);
    }
    auto resident = resident_pages(path, file.get());
    if (!resident) return resident.error();
    if (*resident > 0) {
      return Error{
          Code::kUnsupported,
          "[bench.read] " + path + " stays in memory: no cold figures"};
    }
  }
  return {};
}

Result<double> plain_read_speed(
    const std::vector<std::string>& paths, int threads
) {
  std::atomic<std::size_t> next{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<int> failed{0};
  auto work = [&] {
    AlignedBuffer buffer(kChunk);
    for (std::size_t i = next++; i < paths.size(); i = next++) {
      Descriptor file(paths[i]);
      if (file.get() < 0) failed = errno;
      for (off_t at = 0; file.get() >= 0;) {
        const ssize_t n = ::pread(file.get(), buffer.data(), kChunk, at);
        if (n < 0) failed = errno;
        if (n <= 0) break;
        at += n;
        bytes += static_cast<std::uint64_t>(n);
      }
    }
  };
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - begin;
  if (failed != 0) {
    errno = failed;
    return io_error(paths[0]);
  }
  return static_cast<double>(bytes) / 1e9 / took.count();
}

}  // namespace afterglow
