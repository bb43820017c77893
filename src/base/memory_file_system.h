#pragma once

#include <cstdint>
#include <memory>

#include "base/file_system.h"

namespace afterglow {

/// A directory tree in memory that knows what was synced, so that tests can
/// cut the power. Several file systems on one disk stand for several
/// processes.
/// Thread: safe from any thread; power_cut only while nobody uses it.
class MemoryDisk {
 public:
  MemoryDisk();
  ~MemoryDisk();
  MemoryDisk(const MemoryDisk&) = delete;
  MemoryDisk& operator=(const MemoryDisk&) = delete;

  /// Another view of the disk. Must not outlive it.
  std::unique_ptr<FileSystem> file_system();

  /// Forgets names that no directory sync and data that no file sync made
  /// durable. With a seed other than 0, a random part of them survives
  /// instead, data perhaps in part, as on a real disk.
  void power_cut(std::uint64_t seed = 0);
  /// From now on syncs succeed without making anything durable.
  void set_lying_sync(bool lying);
  void set_free_space(FreeSpace space);

 private:
  friend class MemoryFileSystem;
  friend class MemoryFile;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace afterglow
