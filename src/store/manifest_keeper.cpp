#include "store/manifest_keeper.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "store/clock.h"
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
  std::vector<EntryRecord> records;
  for (ManifestEntry& entry : manifest->entries) {
    if (entry.model == context_.folder) {
      date_by_file(entry.record);
      records.push_back(std::move(entry.record));
    }
  }
  context_.cache.merge_entries(records);
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

void ManifestKeeper::load_if_changed() {
  {
    std::lock_guard guard(mutex_);
    if (look() == seen_) {
      return;
    }
  }
  for (const BlockId& id : load()) {
    if (context_.stopping) {
      return;
    }
    index_.add(id);
  }
}

Result<std::set<BlockId>> ManifestKeeper::stored_blocks() {
  auto found = context_.files->list(context_.blocks);
  if (!found) {
    return found.error();
  }
  std::set<BlockId> stored;
  for (const std::string& name : *found) {
    if (auto id = parse_block_file_name(name)) {
      stored.insert(*id);
    }
  }
  return stored;
}

Result<std::uint64_t> ManifestKeeper::save() {
  Manifest mine;
  for (EntryRecord& record : context_.cache.entries()) {
    mine.entries.push_back({context_.folder, std::move(record)});
  }
  FileSystem& files = *context_.files;
  auto lock =
      DiskTransaction::begin(files, [&] { return context_.stopping.load(); });
  if (!lock) {
    return lock.error();
  }
  std::lock_guard guard(mutex_);
  auto stored = stored_blocks();
  if (!stored) {
    return stored.error();
  }
  auto theirs = read_manifest(files);
  if (!theirs && theirs.error().code != Code::kNotFound &&
      theirs.error().code != Code::kCorrupt) {
    return theirs.error();  // of a later version, or unreadable now: kept
  }
  std::string before = theirs ? format_manifest(*theirs) : "";
  Manifest others = theirs ? std::move(*theirs) : Manifest{};
  keep_stored(mine, context_.folder, *stored);
  keep_stored(others, context_.folder, *stored);
  Manifest merged = merge_manifests(others, mine);
  std::string after = format_manifest(merged);
  if (after == before) {
    return std::uint64_t{0};
  }
  if (Status written = write_manifest(files, merged); !written) {
    return written.error();
  }
  seen_ = look();
  return std::uint64_t{after.size()};
}

}  // namespace afterglow
