#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/file_system.h"

namespace afterglow {

/// A file in v1/tmp that its writer holds locked; the name goes when this
/// does. A file there that nobody holds was left by a dead writer.
class Temporary {
 public:
  /// Creates and locks it under a name nobody else uses.
  static Result<Temporary> create(FileSystem& files);

  Temporary(Temporary&&) = default;
  Temporary& operator=(Temporary&&) = delete;
  ~Temporary();

  File& file() { return *file_; }
  const std::string& name() const { return name_; }
  /// The name is no longer ours to remove: it was renamed.
  void release() { name_.clear(); }

 private:
  Temporary(FileSystem& files, std::unique_ptr<File> file, std::string name)
      : files_(&files), file_(std::move(file)), name_(std::move(name)) {}

  FileSystem* files_;
  std::unique_ptr<File> file_;
  std::string name_;
};

/// Writes a small file durably in place of `name`: a temporary is written,
/// synced and renamed, then the directory is synced.
Status replace_file(
    FileSystem& files,
    const std::string& directory,
    const std::string& name,
    std::string_view text
);

/// How many files in v1/tmp nobody holds: a writer died.
Result<std::size_t> count_dead_temporaries(FileSystem& files);

/// Removes the temporaries of dead writers; returns how many.
Result<std::size_t> remove_dead_temporaries(FileSystem& files);

}  // namespace afterglow
