#include "store/disk_lock.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/hash.h"
#include "store/clock.h"
#include "store/names.h"

namespace afterglow {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kPrefix = "afterglow-lock-2 ";
constexpr std::size_t kDigits = 20;
constexpr std::size_t kStateBytes = 256;
constexpr milliseconds kFirstPause{1};
constexpr milliseconds kLongestPause{16};

std::uint64_t today() {
  constexpr std::int64_t kDay = 86'400'000'000'000;
  return static_cast<std::uint64_t>(unix_now_ns() / kDay);
}

/// value + change, not below 0.
std::uint64_t adjusted(std::uint64_t value, std::int64_t change) {
  if (change >= 0) {
    return value + static_cast<std::uint64_t>(change);
  }
  return value - std::min(value, static_cast<std::uint64_t>(-change));
}

Error damaged() {
  return {Code::kCorrupt, "[store.lock] v1/lock is damaged"};
}

std::string sum_of(std::string_view text) {
  std::array<char, 17> digits;
  std::snprintf(
      digits.data(),
      digits.size(),
      "%016llx",
      static_cast<unsigned long long>(
          xxh3_64(std::as_bytes(std::span(text.data(), text.size())))
      )
  );
  return digits.data();
}

/// The state in the open file; a fresh one when there is none to read.
Result<DiskState> read_state(const File& file) {
  std::array<std::byte, kStateBytes> bytes;
  Result<std::size_t> count = file.read_at(0, bytes);
  if (!count) {
    return count.error();
  }
  Result<DiskState> state =
      parse_disk_state({reinterpret_cast<const char*>(bytes.data()), *count});
  if (state) {
    return *state;
  }
  DiskState fresh;
  fresh.epoch = static_cast<std::uint64_t>(unix_now_ns());
  return fresh;
}

/// True when the open file still is the one the name leads to.
Result<bool> is_current(FileSystem& files, const File& file) {
  Result<FileInfo> held = file.info();
  if (!held) {
    return held.error();
  }
  Result<FileInfo> named = files.info(names::kLock);
  if (!named) {
    if (named.error().code == Code::kNotFound) {
      return false;
    }
    return named.error();
  }
  return held->inode == named->inode;
}

}  // namespace

std::string format_disk_state(const DiskState& state) {
  std::array<char, 192> text;
  std::snprintf(
      text.data(),
      text.size(),
      "used %020llu epoch %020llu counted %020llu day %020llu written %020llu ",
      static_cast<unsigned long long>(state.used_bytes),
      static_cast<unsigned long long>(state.epoch),
      static_cast<unsigned long long>(state.counted_at_ns),
      static_cast<unsigned long long>(state.day),
      static_cast<unsigned long long>(state.written_bytes)
  );
  std::string line = std::string(kPrefix) + text.data();
  return line + sum_of(line) + "\n";
}

Result<DiskState> parse_disk_state(std::string_view text) {
  DiskState state;
  std::uint64_t counted = 0;
  std::size_t at = kPrefix.size();
  for (auto [label, field] :
       {std::pair("used ", &state.used_bytes),
        std::pair("epoch ", &state.epoch),
        std::pair("counted ", &counted),
        std::pair("day ", &state.day),
        std::pair("written ", &state.written_bytes)}) {
    at += std::string_view(label).size();
    if (at + kDigits > text.size()) {
      return damaged();
    }
    std::from_chars(text.data() + at, text.data() + at + kDigits, *field);
    at += kDigits + 1;
  }
  state.counted_at_ns = static_cast<std::int64_t>(counted);
  // What does not come out the same was not written by format_disk_state.
  if (format_disk_state(state) != text) {
    return damaged();
  }
  return state;
}

Result<std::uint64_t> peek_epoch(FileSystem& files) {
  Result<std::unique_ptr<File>> file = files.open(names::kLock);
  if (!file) {
    return file.error();
  }
  Result<DiskState> state = read_state(**file);
  if (!state) {
    return state.error();
  }
  return state->epoch;
}

Result<DiskTransaction> DiskTransaction::begin(
    FileSystem& files, const std::function<bool()>& give_up
) {
  milliseconds pause = kFirstPause;
  for (;;) {
    Result<std::unique_ptr<File>> file = files.open_or_create(names::kLock);
    if (!file) {
      return file.error();
    }
    Result<bool> locked = (*file)->try_lock();
    while (locked && !*locked && !give_up()) {
      // flock cannot be waited for with an end, hence the polling.
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, kLongestPause);
      locked = (*file)->try_lock();
    }
    if (!locked) {
      return locked.error();
    }
    if (!*locked) {
      return Error{
          Code::kCancelled, "[store.lock] another process holds v1/lock"};
    }
    Result<bool> current = is_current(files, **file);
    if (!current) {
      return current.error();
    }
    if (*current) {
      Result<DiskState> state = read_state(**file);
      if (!state) {
        return state.error();
      }
      return DiskTransaction(std::move(*file), *state);
    }
  }
}

Status DiskTransaction::update(const DiskState& state) {
  state_ = state;
  std::string text = format_disk_state(state);
  return file_->write_at(0, std::as_bytes(std::span(text.data(), text.size())));
}

Status DiskTransaction::raise_epoch() {
  DiskState state = state_;
  ++state.epoch;
  return update(state);
}

Status DiskTransaction::adjust_used(std::int64_t bytes) {
  DiskState state = state_;
  state.used_bytes = adjusted(state.used_bytes, bytes);
  return update(state);
}

std::uint64_t DiskTransaction::written_today() const {
  return state_.day == today() ? state_.written_bytes : 0;
}

Status DiskTransaction::adjust_written(std::int64_t bytes) {
  DiskState state = state_;
  state.written_bytes = adjusted(written_today(), bytes);
  state.day = today();
  return update(state);
}

}  // namespace afterglow
