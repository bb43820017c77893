#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/result.h"

namespace afterglow {

/// What the processes on one directory know in common, kept in v1/lock.
struct DiskState {
  std::uint64_t used_bytes = 0;  // of block files, all models
  /// Raised by whoever removes block files that others believe durable.
  std::uint64_t epoch = 0;
  std::int64_t counted_at_ns = 0;   // Unix time; 0: never
  std::uint64_t day = 0;            // of written_bytes: UTC, since 1970
  std::uint64_t written_bytes = 0;  // to the directory on that day, by all

  bool operator==(const DiskState&) const = default;
};

/// One line of text of fixed length with a sum.
std::string format_disk_state(const DiskState& state);
/// Errors: kCorrupt for anything format_disk_state does not give.
Result<DiskState> parse_disk_state(std::string_view text);

/// The epoch as it stands, without the lock: perhaps an older one, or none of
/// anybody's while the state is being written or is damaged.
/// Errors: kNotFound without a lock file; those of the file system.
Result<std::uint64_t> peek_epoch(FileSystem& files);

/// The lock of the directory, held while this lives: publishing a batch,
/// evicting, merging the manifest. A transaction, not a role: held for
/// milliseconds. Thread: one thread at a time.
class DiskTransaction {
 public:
  /// Waits for the lock, a few milliseconds at a time, until give_up says so
  /// (then kCancelled). A missing or damaged state reads as never counted
  /// with a new epoch, so that everyone re-checks what they believe.
  static Result<DiskTransaction> begin(
      FileSystem& files, const std::function<bool()>& give_up
  );

  const DiskState& state() const { return state_; }
  /// Replaces the state in the file; on failure it reads as damaged.
  Status update(const DiskState& state);
  /// To be called before the first file is unlinked.
  Status raise_epoch();
  /// Adds to, or takes from, the used bytes; never below 0.
  Status adjust_used(std::int64_t bytes);
  /// Bytes that all processes wrote today.
  std::uint64_t written_today() const;
  /// Adds to, or takes from, those; never below 0.
  Status adjust_written(std::int64_t bytes);

 private:
  DiskTransaction(std::unique_ptr<File> file, DiskState state)
      : file_(std::move(file)), state_(state) {}

  std::unique_ptr<File> file_;
  DiskState state_;
};

}  // namespace afterglow
