#include "store/cache_directory_verify.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "store/block_io.h"
#include "store/clock.h"
#include "store/disk_files.h"
#include "store/temporary.h"

namespace afterglow {

namespace {

Error corrupt(const std::string& what) {
  return {Code::kCorrupt, what};
}

/// Reads one block file whole. Thread: one thread at a time.
class BlockReader {
 public:
  explicit BlockReader(FileSystem& files) : files_(files) {}

  /// Errors: kCorrupt after two complete reads; those of the file system.
  Result<AnyHead> read(const std::string& folder, const BlockId& id) {
    return read_twice([&] { return read_once(folder, id); });
  }

 private:
  Result<AnyHead> read_once(const std::string& folder, const BlockId& id) {
    auto file = files_.open(block_path(folder, id));
    if (!file) {
      return file.error();
    }
    auto any = read_any_head(id, **file);
    if (!any) {
      return any;
    }
    if (any->key.folder() != folder) {
      return corrupt("fingerprint, spec: not those of the folder");
    }
    std::size_t bytes = any->key.layout.page_bytes();
    if (!pool_ || pool_->page_bytes() != bytes) {
      pool_ = std::make_unique<PagePool>(bytes);
    }
    std::shared_ptr<Page> page = pool_->make();
    Status kv = read_block_kv(any->key, any->head, **file, *page);
    return kv ? std::move(any) : Result<AnyHead>(kv.error());
  }

  FileSystem& files_;
  std::unique_ptr<PagePool> pool_;
};

class Verifier {
 public:
  Verifier(CacheDirectory& directory, const VerifyOptions& options)
      : directory_(directory),
        options_(options),
        files_(directory.files()),
        reader_(files_) {}

  Result<VerifyReport> run() {
    auto begin = std::chrono::steady_clock::now();
    auto contents = directory_.read();
    if (!contents) {
      return contents.error();
    }
    report_.manifest_error = contents->manifest_error;
    total_ = contents->bytes();
    for (const auto& model : contents->models) {
      read_model(*model);
    }
    if (Status told = tell_lost(*contents); !told) {
      return told.error();
    }
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    report_.seconds = took.count();
    if (Status looked = look_at_rest(); !looked) {
      return looked.error();
    }
    return std::move(report_);
  }

 private:
  void read_model(const StoredModel& model) {
    std::map<BlockId, BlockPtr> good;
    std::map<std::string, std::vector<BlockId>> by_layout;
    for (const auto& [id, stored] : model.blocks) {
      auto any = reader_.read(model.folder, id);
      done_ += stored.bytes;
      if (options_.progress) {
        options_.progress(done_, total_);
      }
      if (any) {
        ++report_.blocks;
        report_.bytes += any->head.file_bytes;
        by_layout[any->key.layout.describe()].push_back(id);
        good[id] = any->head.block;
      } else if (any.error().code != Code::kNotFound) {
        add_bad(model, id, any.error());
      }
    }
    check_layouts(model, by_layout, good);
    check_chains(model, good);
  }

  void add_bad(const StoredModel& model, const BlockId& id, Error error) {
    bool is_corrupt = error.code == Code::kCorrupt;
    auto& list = is_corrupt ? report_.corrupt : report_.unreadable;
    list.push_back({model.folder, id, model.find(id)->bytes, std::move(error)});
    bad_.insert(id);
  }

  /// A block that is whole, but wrong beside others.
  void add_misfit(
      const StoredModel& model, const BlockId& id, const std::string& why
  ) {
    add_bad(model, id, corrupt(why));
    misfits_.insert(id);
  }

  /// One folder is one spec, and a spec is one layout.
  void check_layouts(
      const StoredModel& model,
      const std::map<std::string, std::vector<BlockId>>& by_layout,
      std::map<BlockId, BlockPtr>& good
  ) {
    auto fewer = [](const auto& a, const auto& b) {
      return a.second.size() < b.second.size();
    };
    auto own = std::max_element(by_layout.begin(), by_layout.end(), fewer);
    for (auto at = by_layout.begin(); at != by_layout.end(); ++at) {
      for (const BlockId& id : at->second) {
        if (at != own) {
          add_misfit(model, id, "layout: not that of the folder's others");
          good.erase(id);
        }
      }
    }
  }

  void check_chains(
      const StoredModel& model, const std::map<BlockId, BlockPtr>& good
  ) {
    std::vector<const Block*> order;
    for (const auto& [id, block] : good) {
      order.push_back(block.get());
    }
    std::sort(order.begin(), order.end(), [](const Block* a, const Block* b) {
      return a->start < b->start;
    });
    std::set<BlockId> connected;
    for (const Block* block : order) {
      if (!fits_parent(*block, good)) {
        add_misfit(
            model, block->id, "parent: a block that this one cannot follow"
        );
      } else if (block->start == 0 || connected.count(block->parent) > 0) {
        connected.insert(block->id);
      } else {
        report_.orphans.push_back(
            {model.folder,
             block->id,
             model.find(block->id)->bytes,
             {Code::kNotFound, why_it_waits(*block, good)}}
        );
      }
    }
  }

  std::string why_it_waits(
      const Block& block, const std::map<BlockId, BlockPtr>& good
  ) const {
    std::string parent = "block " + block.parent.hex() + " before it ";
    if (bad_.count(block.parent) > 0) {
      return parent + "is damaged";
    }
    return parent +
           (good.count(block.parent) > 0 ? "waits, too" : "is missing");
  }

  static bool fits_parent(
      const Block& block, const std::map<BlockId, BlockPtr>& good
  ) {
    auto parent = good.find(block.parent);
    return parent == good.end() ||
           (parent->second->full() &&
            parent->second->start + kPageTokens == block.start);
  }

  /// Entries of the manifest as it is on disk, against what is good.
  Status tell_lost(const CacheContents& contents) {
    auto manifest = read_manifest(files_);
    if (!manifest) {
      return {};  // told already
    }
    for (const ManifestEntry& entry : manifest->entries) {
      const EntryRecord& record = entry.record;
      const StoredModel* model = nullptr;
      for (const auto& candidate : contents.models) {
        if (candidate->folder == entry.model) {
          model = candidate.get();
        }
      }
      for (std::size_t i = 0; i < record.path.size(); ++i) {
        const BlockId& id = record.path[i];
        bool is_missing = model == nullptr || model->find(id) == nullptr;
        if (is_missing || bad_.count(id) > 0) {
          std::string name = model == nullptr ? "" : model->name;
          report_.lost.push_back({record, name, i * kPageTokens, id, is_missing}
          );
          break;
        }
      }
    }
    return {};
  }

  /// Temporaries and the lock; repairs.
  Status look_at_rest() {
    auto lock = directory_.begin();
    if (!lock) {
      return lock.error();
    }
    if (options_.repair) {
      if (Status removed = remove_corrupt(*lock); !removed) {
        return removed;
      }
    }
    auto counted = count_block_bytes(files_);
    if (!counted) {
      return counted.error();
    }
    report_.counted_bytes = *counted;
    if (lock->state().counted_at_ns != 0) {
      report_.lock_bytes = lock->state().used_bytes;
    }
    auto dead = count_dead_temporaries(files_);
    if (!dead) {
      return dead.error();
    }
    report_.dead_temporaries = *dead;
    return options_.repair ? repair_rest(*lock) : Status();
  }

  Status remove_corrupt(DiskTransaction& lock) {
    if (report_.corrupt.empty()) {
      return {};
    }
    if (Status raised = lock.raise_epoch(); !raised) {
      return raised;
    }
    for (const BadBlock& bad : report_.corrupt) {
      // Once more under the lock: a server may have replaced the file.
      auto again = reader_.read(bad.folder, bad.id);
      bool still = again ? misfits_.count(bad.id) > 0
                         : again.error().code == Code::kCorrupt;
      if (!still) {
        continue;
      }
      auto removed =
          remove_block_file(files_, lock, block_path(bad.folder, bad.id));
      if (!removed) {
        report_.failures.push_back(removed.error());
      } else {
        report_.removed_blocks += removed->has_value();
      }
    }
    return {};
  }

  Status repair_rest(DiskTransaction& lock) {
    auto removed = remove_dead_temporaries(files_);
    if (!removed) {
      return removed.error();
    }
    report_.removed_temporaries = *removed;
    DiskState state = lock.state();
    state.used_bytes = report_.counted_bytes;
    state.counted_at_ns = unix_now_ns();
    if (Status counted = lock.update(state); !counted) {
      return counted;
    }
    Status tidied = directory_.tidy_manifest(lock);
    if (!tidied && tidied.error().code == Code::kUnsupported) {
      report_.failures.push_back(tidied.error());
      return {};
    }
    return tidied;
  }

  CacheDirectory& directory_;
  const VerifyOptions& options_;
  FileSystem& files_;
  BlockReader reader_;
  VerifyReport report_;
  std::set<BlockId> bad_;
  std::set<BlockId> misfits_;  // of those
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace

Result<VerifyReport> verify_cache(
    CacheDirectory& directory, const VerifyOptions& options
) {
  return Verifier(directory, options).run();
}

}  // namespace afterglow
