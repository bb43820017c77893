#include "store/cache_directory_contents.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <unordered_set>

#include "store/block_io.h"
#include "store/clock.h"
#include "store/disk_files.h"
#include "store/names.h"

namespace afterglow {

namespace {

constexpr std::uint64_t kMaxDescriptionBytes = 1 << 20;

using BlockSet = std::unordered_set<BlockId, BlockIdHash>;

/// The name that model.json gives; empty when it gives none.
std::string read_model_name(FileSystem& files, const std::string& folder) {
  auto file = files.open(names::model(folder) + "/model.json");
  auto info = file ? (*file)->info() : Result<FileInfo>(file.error());
  if (!info || info->bytes > kMaxDescriptionBytes) {
    return "";
  }
  std::string text(static_cast<std::size_t>(info->bytes), '\0');
  auto bytes = std::as_writable_bytes(std::span(text.data(), text.size()));
  if (auto count = (*file)->read_at(0, bytes); !count) {
    return "";
  }
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("model") ||
      !json["model"].is_string()) {
    return "";
  }
  return json["model"].get<std::string>();
}

/// Nothing when the file vanished meanwhile.
std::optional<StoredBlock> read_stored_block(
    FileSystem& files, const std::string& folder, const BlockId& id
) {
  StoredBlock stored;
  std::string name = block_path(folder, id);
  auto info = files.info(name);
  auto file =
      info ? files.open(name) : Result<std::unique_ptr<File>>(info.error());
  if (!file) {
    if (file.error().code == Code::kNotFound) {
      return std::nullopt;
    }
    stored.error = file.error();
    stored.bytes = info && info->is_regular ? info->bytes : 0;
    return stored;
  }
  stored.bytes = info->bytes;
  stored.mtime_ns = std::min(info->mtime_ns, unix_now_ns());
  auto any = read_any_head(id, **file);
  if (any && any->key.folder() != folder) {
    any = Error{Code::kCorrupt, "fingerprint, spec: not those of the folder"};
  }
  if (any) {
    stored.block = any->head.block;
  } else {
    stored.error = any.error();
  }
  return stored;
}

std::unique_ptr<StoredModel> read_model(
    FileSystem& files, const std::string& folder
) {
  auto model = std::make_unique<StoredModel>();
  model->folder = folder;
  model->name = read_model_name(files, folder);
  auto found = stored_blocks(files, folder);
  if (!found) {
    return model;  // a folder without blocks
  }
  for (const BlockId& id : *found) {
    if (auto stored = read_stored_block(files, folder, id)) {
      model->bytes += stored->bytes;
      model->blocks.emplace(id, std::move(*stored));
    }
  }
  return model;
}

/// Blocks that can be reached from a prompt's start.
std::set<BlockId> connected_blocks(const StoredModel& model) {
  std::vector<const Block*> order;
  for (const auto& [id, stored] : model.blocks) {
    if (stored.block) {
      order.push_back(stored.block.get());
    }
  }
  std::sort(order.begin(), order.end(), [](const Block* a, const Block* b) {
    return a->start < b->start;
  });
  std::set<BlockId> connected;
  for (const Block* block : order) {
    bool reached = block->start == 0;
    if (!reached && connected.count(block->parent) > 0) {
      const Block& parent = *model.find(block->parent)->block;
      reached = parent.full() && parent.start + kPageTokens == block->start;
    }
    if (reached) {
      connected.insert(block->id);
    }
  }
  return connected;
}

/// An entry is used with its last block, whose date every hit refreshes.
void date_by_blocks(EntryRecord& record, const StoredModel& model) {
  if (const StoredBlock* last = model.find(record.path.back())) {
    record.last_use_ns = std::max(record.last_use_ns, last->mtime_ns);
  }
}

/// connected: of each folder.
void read_index(
    FileSystem& files,
    const std::map<std::string, std::set<BlockId>>& connected,
    CacheContents& contents
) {
  auto manifest = read_manifest(files);
  if (!manifest) {
    if (manifest.error().code != Code::kNotFound || contents.blocks() > 0) {
      contents.manifest_error = manifest.error();
    }
    return;
  }
  contents.manifest = std::move(*manifest);
  for (const auto& [folder, usable] : connected) {
    keep_stored(contents.manifest, folder, usable);
  }
  std::erase_if(contents.manifest.entries, [&](const ManifestEntry& entry) {
    return connected.count(entry.model) == 0;
  });
  for (ManifestEntry& entry : contents.manifest.entries) {
    date_by_blocks(entry.record, *contents.model_of(entry.record.path.back()));
  }
}

void count_bytes(CacheContents& contents) {
  std::unordered_map<BlockId, std::size_t, BlockIdHash> covers;
  for (const StoredEntry& entry : contents.entries) {
    for (const BlockId& id : entry.record.path) {
      ++covers[id];
    }
  }
  for (StoredEntry& entry : contents.entries) {
    for (const BlockId& id : entry.record.path) {
      const StoredBlock* stored = entry.model->find(id);
      std::uint64_t bytes = stored ? stored->bytes : 0;
      entry.bytes += bytes;
      entry.own_bytes += covers[id] == 1 ? bytes : 0;
    }
  }
}

void list_entries(CacheContents& contents) {
  using Key = std::pair<BlockId, std::size_t>;
  std::set<Key> listed;
  for (const ManifestEntry& entry : contents.manifest.entries) {
    listed.insert({entry.record.path.back(), entry.record.length});
  }
  std::vector<const StoredModel*> all;
  for (const auto& model : contents.models) {
    all.push_back(model.get());
  }
  for (EntryRecord& record : make_tree(contents, all, {})->entries()) {
    StoredEntry entry;
    entry.model = contents.model_of(record.path.back());
    entry.listed = listed.count({record.path.back(), record.length}) > 0;
    entry.record = std::move(record);
    contents.entries.push_back(std::move(entry));
  }
  std::stable_sort(
      contents.entries.begin(),
      contents.entries.end(),
      [](const StoredEntry& a, const StoredEntry& b) {
        return a.record.last_use_ns > b.record.last_use_ns;
      }
  );
  count_bytes(contents);
}

}  // namespace

const StoredBlock* StoredModel::find(const BlockId& id) const {
  auto found = blocks.find(id);
  return found == blocks.end() ? nullptr : &found->second;
}

std::int64_t StoredEntry::expires_at_ns() const {
  bool never = record.pinned || record.ttl_ns == 0;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (never || record.ttl_ns > most - record.last_use_ns) {
    return 0;
  }
  return record.last_use_ns + record.ttl_ns;
}

std::uint64_t CacheContents::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& model : models) {
    sum += model->bytes;
  }
  return sum;
}

std::size_t CacheContents::blocks() const {
  std::size_t sum = 0;
  for (const auto& model : models) {
    sum += model->blocks.size();
  }
  return sum;
}

const StoredModel* CacheContents::model_of(const BlockId& block) const {
  for (const auto& model : models) {
    if (model->find(block) != nullptr) {
      return model.get();
    }
  }
  return nullptr;
}

Result<CacheContents> read_cache_contents(FileSystem& files) {
  auto folders = model_folders(files);
  if (!folders) {
    return folders.error();
  }
  CacheContents contents;
  for (const std::string& folder : *folders) {
    contents.models.push_back(read_model(files, folder));
  }
  std::sort(
      contents.models.begin(),
      contents.models.end(),
      [](const auto& a, const auto& b) {
        return std::tie(a->name, a->folder) < std::tie(b->name, b->folder);
      }
  );
  std::map<std::string, std::set<BlockId>> connected;
  for (const auto& model : contents.models) {
    std::set<BlockId>& usable = connected[model->folder];
    usable = connected_blocks(*model);
    for (const auto& [id, stored] : model->blocks) {
      if (stored.block && usable.count(id) == 0) {
        contents.orphans.push_back(id);
      }
    }
  }
  read_index(files, connected, contents);
  list_entries(contents);
  return contents;
}

std::unique_ptr<PromptCache> make_tree(
    const CacheContents& contents,
    const std::vector<const StoredModel*>& models,
    CacheLimits limits
) {
  auto tree = std::make_unique<PromptCache>(1, limits, true);
  // As a store does at its start: entries first, then the blocks they name.
  std::vector<EntryRecord> records;
  BlockSet listed;
  for (const ManifestEntry& entry : contents.manifest.entries) {
    bool chosen = std::any_of(models.begin(), models.end(), [&](auto* model) {
      return model->folder == entry.model;
    });
    if (chosen) {
      records.push_back(entry.record);
      listed.insert(entry.record.path.begin(), entry.record.path.end());
    }
  }
  tree->merge_entries(records);
  for (const StoredModel* model : models) {
    for (const auto& [id, stored] : model->blocks) {
      if (stored.block) {
        // The date of a block that entries share is not that of each of them.
        bool own_date = listed.count(id) == 0;
        tree->add_disk_block(
            stored.block, stored.bytes, own_date ? stored.mtime_ns : 0
        );
      }
    }
  }
  return tree;
}

}  // namespace afterglow
