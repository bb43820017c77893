#include "model/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace afterglow {
namespace {

Error system_error(const std::string& path, const char* call) {
  const int number = errno;
  Code code = Code::kIo;
  if (number == ENOENT || number == ENOTDIR) {
    code = Code::kNotFound;
  } else if (number == EACCES || number == EPERM) {
    code = Code::kPermission;
  } else if (number == EMFILE || number == ENFILE || number == ENOMEM) {
    code = Code::kExhausted;
  }
  return {
      code,
      "[model.open] " + path + ": " + call + ": " + std::strerror(number)};
}

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) {
      ::close(number);
    }
  }
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) {
    return system_error(path, "open");
  }
  struct stat info {};
  if (::fstat(file.number, &info) != 0) {
    return system_error(path, "fstat");
  }
  if (!S_ISREG(info.st_mode)) {
    return Error{
        Code::kInvalidArgument,
        "[model.open] " + path + ": not a regular file"};
  }
  if (info.st_size == 0) {
    return Error{
        Code::kCorrupt, "[model.open] " + path + ": the file is empty"};
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (address == MAP_FAILED) {
    return system_error(path, "mmap");
  }
  // Advice only: a kernel that refuses it still reads right.
  ::madvise(address, size, MADV_WILLNEED);
  MappedFile result;
  result.bytes_ = {static_cast<const std::byte*>(address), size};
  return result;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

void drop_mapped_pages(std::span<const std::byte> bytes) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t first = (start + page - 1) / page * page;
  const std::uintptr_t last = (start + bytes.size()) / page * page;
  if (first < last) {
    ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  }
}

}  // namespace afterglow
