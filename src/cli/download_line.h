#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "afterglow/model.h"

namespace afterglow {

/// What standard error shows of a download. Nothing when there is none.
/// Thread: one thread at a time.
class DownloadLine {
 public:
  explicit DownloadLine(const std::string& name);

  void show(const DownloadProgress& progress);
  /// Takes a terminal's line away; says that all is here when it is.
  void finish(bool complete);

  /// What a terminal shows: "o/n  45 % of 1.2 GB  31.0 MB/s  model.gguf".
  /// seconds: since `before` bytes were there. It is cut to `columns`.
  static std::string text(
      const std::string& name,
      const DownloadProgress& progress,
      std::uint64_t before,
      double seconds,
      std::size_t columns
  );

 private:
  using Clock = std::chrono::steady_clock;

  void begin(const DownloadProgress& progress);
  void draw(const DownloadProgress& progress);

  std::string name_;
  bool terminal_ = false;
  std::optional<std::uint64_t> before_;  // bytes that were here; once begun
  std::uint64_t total_ = 0;
  std::uint64_t tenths_ = 0;
  Clock::time_point start_;
  Clock::time_point drawn_;
};

}  // namespace afterglow
