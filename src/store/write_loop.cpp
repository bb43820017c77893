#include "store/write_loop.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "store/directory.h"
#include "store/temporary.h"

namespace afterglow {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kLookEvery{1};
constexpr milliseconds kManifestEvery{1000};
/// A large manifest is written less often: bounds what it costs an SSD.
constexpr std::uint64_t kManifestBytesPerSecond = std::uint64_t{256} << 10;

}  // namespace

WriteLoop::WriteLoop(
    StoreContext& context, DiskSpace& space, ManifestKeeper& manifest
)
    : context_(context),
      space_(space),
      manifest_(manifest),
      writer_(
          context,
          space,
          [this](const BlockId& id) {
            std::lock_guard guard(mutex_);
            if (watching_ > 0) {
              failed_.insert(id);
            }
          }
      ),
      used_files_(context),
      thread_([this] { run(); }) {}

WriteLoop::~WriteLoop() {
  context_.cache.wake();
  thread_.join();
}

void WriteLoop::run() {
  open_directory();
  while (!context_.stopping) {
    publish();
    if (context_.stopping) {
      break;
    }
    used_files_.look();
    remove_unwanted();
    look_around();
    save_manifest_if_due();
    answer_flushes();
  }
  std::lock_guard guard(mutex_);
  last_save_failed_ = saved_ < asked_;
  saved_ = asked_;
  answered_.notify_all();
}

void WriteLoop::open_directory() {
  look_due_ = Clock::now() + kLookEvery;
  auto give_up = [&] { return context_.stopping.load(); };
  auto lock = DiskTransaction::begin(*context_.files, give_up);
  Status ready = lock ? space_.recount(*lock, true) : Status(lock.error());
  if (ready) {
    ready = space_.notice_others(*lock);
  }
  if (ready) {
    // Makes the limit known, and keeps it if it was lowered.
    auto room = space_.make_room(*lock, 0);
    ready = room ? Status() : Status(room.error());
  }
  if (ready) {
    auto removed = remove_dead_temporaries(*context_.files);
    ready = removed ? Status() : Status(removed.error());
  }
  if (!ready && ready.error().code != Code::kCancelled) {
    context_.writing_failed(ready.error());
  }
}

void WriteLoop::publish() {
  milliseconds tail_delay = context_.options.tail_delay;
  {
    std::lock_guard guard(mutex_);
    if (flushing_ > 0) {
      tail_delay = milliseconds(0);
    }
  }
  Clock::time_point until = look_due_;
  if (manifest_is_behind_) {
    until = std::min(until, manifest_due_);
  }
  {
    std::lock_guard guard(mutex_);
    if (asked_ > saved_) {
      until = Clock::now();
    }
  }
  auto dirty = context_.cache.take_dirty(until, tail_delay);
  if (!dirty.empty()) {
    writer_.publish(dirty);
    manifest_is_behind_ = true;
  }
}

void WriteLoop::look_around() {
  if (Clock::now() < look_due_) {
    return;
  }
  look_due_ = Clock::now() + kLookEvery;
  // What cannot be looked at now can be in a second.
  (void)space_.look_for_others();
  manifest_.load_if_changed();
  expire();
  std::uint64_t hits = context_.cache.stats().hits;
  if (hits != saved_hits_) {
    saved_hits_ = hits;
    manifest_is_behind_ = true;
  }
}

void WriteLoop::expire() {
  if (context_.cache.expire() > 0) {
    manifest_is_behind_ = true;
  }
  remove_unwanted();
}

DiskSpace::Reason WriteLoop::why_unwanted() {
  Evictions before = std::exchange(evicted_, context_.cache.stats().evicted);
  if (evicted_.expired != before.expired) {
    return DiskSpace::Reason::kExpired;
  }
  return evicted_.removed != before.removed ? DiskSpace::Reason::kCleared
                                            : DiskSpace::Reason::kSuperseded;
}

void WriteLoop::remove_unwanted() {
  std::vector<BlockId> blocks = context_.cache.take_superseded();
  // One that came back to life since is somebody's again.
  std::erase_if(left_over_, [&](const BlockId& id) {
    return context_.cache.is_durable(id);
  });
  // They may be children of what has become unwanted since.
  blocks.insert(blocks.begin(), left_over_.begin(), left_over_.end());
  if (blocks.empty()) {
    return;
  }
  auto lock = DiskTransaction::begin(*context_.files, [&] {
    return context_.stopping.load();
  });
  auto removed = lock ? space_.remove(*lock, blocks, why_unwanted())
                      : Result<DiskSpace::Removed>(lock.error());
  left_over_ = removed ? std::move(removed->left) : std::move(blocks);
}

void WriteLoop::save_manifest_if_due() {
  if (manifest_is_behind_ && Clock::now() >= manifest_due_) {
    save_manifest();
  }
}

void WriteLoop::save_manifest() {
  auto saved = manifest_.save(space_);
  milliseconds pause = kManifestEvery;
  if (saved) {
    pause += milliseconds(1000 * *saved / kManifestBytesPerSecond);
  } else if (saved.error().code != Code::kCancelled) {
    context_.writing_failed(saved.error());
  }
  manifest_is_behind_ = false;
  manifest_due_ = Clock::now() + pause;
  std::lock_guard guard(mutex_);
  last_save_failed_ = !saved;
}

void WriteLoop::answer_flushes() {
  std::uint64_t asked;
  {
    std::lock_guard guard(mutex_);
    if (asked_ == saved_) {
      return;
    }
    asked = asked_;
  }
  save_manifest();
  std::lock_guard guard(mutex_);
  saved_ = asked;
  answered_.notify_all();
}

FlushReport WriteLoop::flush(
    Clock::time_point deadline, const std::optional<BlockId>& root
) {
  PromptCache& cache = context_.cache;
  // What was used before belongs to what is to be durable.
  used_files_.look();
  std::uint64_t ticket;
  std::vector<BlockId> wanted;
  {
    // At once, so that each block that fails from here on is seen to.
    std::lock_guard guard(mutex_);
    ++flushing_;
    ++watching_;
    ticket = cache.dirty_ticket();
    wanted = cache.dirty_blocks(root);
  }
  cache.wake();
  bool clean = cache.wait_clean(ticket, deadline);

  std::unique_lock guard(mutex_);
  --flushing_;
  std::uint64_t mine = ++asked_;
  guard.unlock();
  cache.wake();
  guard.lock();
  bool saved = answered_.wait_until(guard, deadline, [&] {
    return saved_ >= mine;
  }) && !last_save_failed_;

  std::unordered_set<BlockId, BlockIdHash> dirty;
  for (const BlockId& id : cache.dirty_blocks(root)) {
    dirty.insert(id);
  }
  FlushReport report;
  for (const BlockId& id : wanted) {
    if (cache.is_durable(id)) {
      ++report.durable_blocks;
    } else if (failed_.count(id) > 0) {
      ++report.failed_blocks;
    } else if (dirty.count(id) == 0) {
      ++report.durable_blocks;  // as part of a longer one that replaced it
    }
  }
  report.saved = saved;
  report.complete = clean && saved;
  if (--watching_ == 0) {
    failed_.clear();
  }
  return report;
}

}  // namespace afterglow
