#include "store/manifest_keeper.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "store/clock.h"
#include "store/disk_files.h"
#include "store/disk_lock.h"
#include "store/names.h"

namespace afterglow {

std::optional<ManifestKeeper::Seen> ManifestKeeper::look() {
  auto info = context_.files->info(names::kManifest);
  if (!info) {
    return std::nullopt;
  }
  return Seen{info->inode, info->mtime_ns};
}

void ManifestKeeper::date_by_file(EntryRecord& record) {
  // A use after the manifest's last save has touched the last block.
  if (auto info = context_.files->info(context_.file_of(record.path.back()))) {
    record.last_use_ns =
        std::max(record.last_use_ns, std::min(info->mtime_ns, unix_now_ns()));
  }
}

std::vector<BlockId> ManifestKeeper::load() {
  std::lock_guard guard(mutex_);
  seen_ = look();
  auto manifest = read_manifest(*context_.files);
  if (!manifest) {
    if (manifest.error().code != Code::kNotFound && !warned_) {
      warned_ = true;
      spdlog::warn(
          "{}; the order of entries is rebuilt from the block files",
          manifest.error().message
      );
    }
    return {};
  }
  for (ManifestEntry& entry : manifest->entries) {
    if (entry.model == context_.folder) {
      date_by_file(entry.record);
    }
  }
  std::vector<EntryRecord> records = take_over(*manifest);
  std::sort(
      records.begin(),
      records.end(),
      [](const EntryRecord& a, const EntryRecord& b) {
        return a.last_use_ns > b.last_use_ns;
      }
  );
  std::vector<BlockId> blocks;
  for (const EntryRecord& record : records) {
    blocks.insert(blocks.end(), record.path.begin(), record.path.end());
  }
  return blocks;
}

std::vector<EntryRecord> ManifestKeeper::take_over(const Manifest& manifest) {
  std::vector<EntryRecord> records;
  for (const ManifestEntry& entry : manifest.entries) {
    if (entry.model == context_.folder) {
      records.push_back(entry.record);
    }
  }
  context_.cache.merge_entries(records);
  return records;
}

void ManifestKeeper::hear(const Manifest& manifest) {
  for (const EntryRecord& record : take_over(manifest)) {
    news_.insert(news_.end(), record.path.begin(), record.path.end());
  }
}

void ManifestKeeper::load_if_changed() {
  {
    std::lock_guard guard(mutex_);
    auto now = look();
    if (now && now != seen_) {
      auto manifest = read_manifest(*context_.files);
      if (manifest || manifest.error().code == Code::kCorrupt ||
          manifest.error().code == Code::kUnsupported) {
        seen_ = now;
      }
      if (manifest) {
        // Not dated by the files: what was decided last must win, and a use
        // after it is in a later manifest.
        if (auto stored = stored_blocks(*context_.files, context_.folder)) {
          keep_stored(*manifest, context_.folder, *stored);
        }
        drop_expired(*manifest, unix_now_ns());
        hear(*manifest);
      }
    }
  }
  index_news();
}

void ManifestKeeper::index_news() {
  std::vector<BlockId> news;
  {
    std::lock_guard guard(mutex_);
    news.swap(news_);
  }
  for (const BlockId& id : news) {
    if (context_.stopping) {
      return;
    }
    index_.add(id);
  }
}

Result<std::uint64_t> ManifestKeeper::save(DiskSpace& space) {
  Result<std::uint64_t> saved = std::uint64_t{0};
  {
    auto lock = DiskTransaction::begin(*context_.files, [&] {
      return context_.stopping.load();
    });
    Status noticed = lock ? space.notice_others(*lock) : Status(lock.error());
    saved = noticed ? save(*lock) : Result<std::uint64_t>(noticed.error());
  }
  index_news();
  return saved;
}

Result<std::uint64_t> ManifestKeeper::save(DiskTransaction& lock) {
  FileSystem& files = *context_.files;
  std::lock_guard guard(mutex_);
  auto stored = stored_blocks(files, context_.folder);
  if (!stored) {
    return stored.error();
  }
  auto seen = look();
  auto read = read_manifest(files);
  if (!read && read.error().code != Code::kNotFound &&
      read.error().code != Code::kCorrupt) {
    return read.error();  // of a later version, or unreadable now: kept
  }
  std::string before = read ? format_manifest(*read) : "";
  Manifest theirs = read ? std::move(*read) : Manifest{};
  keep_stored(theirs, context_.folder, *stored);
  drop_expired(theirs, unix_now_ns());
  if (seen != seen_) {
    // Others decided something since: our cache is to know it, too.
    hear(theirs);
    seen_ = seen;
  }
  Manifest mine;
  for (EntryRecord& record : context_.cache.entries()) {
    bool is_whole = std::all_of(
        record.path.begin(),
        record.path.end(),
        [&](const BlockId& id) { return stored->count(id) > 0; }
    );
    if (!is_whole) {
      // Its beginning alone is listed until the rest is on disk, and must not
      // stay as an entry of its own beside the whole one.
      record.type = EntryType::kAssistant;
      record.pinned = false;
      record.pin_time_ns = 0;
    }
    mine.entries.push_back({context_.folder, std::move(record)});
  }
  keep_stored(mine, context_.folder, *stored);
  Manifest merged = merge_manifests(theirs, mine);
  std::string after = format_manifest(merged);
  if (after == before) {
    return std::uint64_t{0};
  }
  return replace(lock, merged, after.size());
}

Result<std::uint64_t> ManifestKeeper::replace(
    DiskTransaction& lock, const Manifest& manifest, std::uint64_t bytes
) {
  if (Status charged = lock.adjust_written(static_cast<std::int64_t>(bytes));
      !charged) {
    return charged.error();
  }
  if (Status written = write_manifest(*context_.files, manifest); !written) {
    return written.error();
  }
  seen_ = look();
  context_.count([&](StoreStats& stats) {
    stats.manifest_bytes += bytes;
    stats.syncs += 2;  // the file and its directory
  });
  return bytes;
}

Status ManifestKeeper::forget(const EntryRecord& entry) {
  auto lock = DiskTransaction::begin(*context_.files, [&] {
    return context_.stopping.load();
  });
  if (!lock) {
    return lock.error();
  }
  std::lock_guard guard(mutex_);
  auto manifest = read_manifest(*context_.files);
  if (!manifest) {
    bool has_no_entries = manifest.error().code == Code::kNotFound ||
                          manifest.error().code == Code::kCorrupt;
    return has_no_entries ? Status() : Status(manifest.error());
  }
  auto erased = std::erase_if(manifest->entries, [&](const auto& other) {
    return other.model == context_.folder &&
           other.record.length == entry.length &&
           other.record.path == entry.path;
  });
  if (erased == 0) {
    return {};
  }
  auto replaced = replace(*lock, *manifest, format_manifest(*manifest).size());
  return replaced ? Status() : Status(replaced.error());
}

}  // namespace afterglow
