#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"

namespace afterglow {

/// A whole file mapped for reading. The file must not shrink while mapped:
/// as with any mapping, touching pages that are gone kills the process.
/// Thread: reading and drop() from any threads at once.
class MappedFile {
 public:
  /// Errors: kNotFound, kPermission, kIo, kCorrupt where the file is empty,
  /// kInvalidArgument where it is no regular file.
  static Result<MappedFile> open(const std::string& path);

  MappedFile() = default;
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

/// Takes the whole pages inside `bytes`, a part of a mapped file, out of this
/// process's memory. They are read again when touched again.
void drop_mapped_pages(std::span<const std::byte> bytes);

}  // namespace afterglow
