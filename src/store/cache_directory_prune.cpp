#include <algorithm>
#include <set>

#include "store/cache_directory.h"
#include "store/disk_files.h"

namespace afterglow {

namespace {

/// Servers may write while we remove; whoever keeps writing wins in the end.
constexpr int kRounds = 4;

/// The blocks of a folder now, children before parents as far as the contents
/// know their order.
std::vector<Victim> all_blocks(
    const StoredModel& model, const std::set<BlockId>& blocks
) {
  std::vector<std::pair<std::uint64_t, Victim>> order;
  for (const BlockId& id : blocks) {
    const StoredBlock* stored = model.find(id);
    bool has_head = stored != nullptr && stored->block;
    order.push_back(
        {has_head ? stored->block->start : ~std::uint64_t{0},
         {model.folder, id, 0}}
    );
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.first > b.first;
  });
  std::vector<Victim> victims;
  for (auto& [start, victim] : order) {
    victims.push_back(std::move(victim));
  }
  return victims;
}

}  // namespace

Status CacheDirectory::unlink(
    DiskTransaction& lock, const std::vector<Victim>& victims, Removal& removal
) {
  if (victims.empty()) {
    return {};
  }
  if (Status raised = lock.raise_epoch(); !raised) {
    return raised;
  }
  for (const Victim& victim : victims) {
    auto removed =
        remove_block_file(*files_, lock, block_path(victim.folder, victim.id));
    if (!removed) {
      removal.failures.push_back(removed.error());
    } else if (*removed) {
      ++removal.blocks;
      removal.bytes += **removed;
    }
  }
  return {};
}

Status CacheDirectory::carry_out(const PrunePlan& plan, Removal& removal) {
  auto lock = begin();
  if (!lock) {
    return lock.error();
  }
  if (Status unlinked = unlink(*lock, plan.victims, removal); !unlinked) {
    return unlinked;
  }
  removal.entries.insert(
      removal.entries.end(), plan.entries.begin(), plan.entries.end()
  );
  return tidy_manifest(*lock, [&](const ManifestEntry& entry) {
    return plan.dropped.count(end_of(entry.record)) > 0;
  });
}

Result<Removal> CacheDirectory::prune(const PruneRule& rule, bool dry_run) {
  Removal removal;
  for (int round = 0; round < kRounds; ++round) {
    auto contents = read();
    if (!contents) {
      return contents.error();
    }
    PrunePlan plan = plan_prune(*contents, rule);
    removal.left_bytes = plan.left_bytes;
    if (plan.victims.empty() && plan.entries.empty()) {
      break;
    }
    if (dry_run) {
      removal.entries = plan.entries;
      removal.blocks = plan.victims.size();
      for (const Victim& victim : plan.victims) {
        removal.bytes += victim.bytes;
      }
      break;
    }
    std::uint64_t before = removal.blocks;
    if (Status done = carry_out(plan, removal); !done) {
      return done.error();
    }
    if (removal.blocks == before) {
      break;  // entries only, or nothing can be unlinked
    }
  }
  return removal;
}

Result<Removal> CacheDirectory::clear(const std::vector<std::string>& folders) {
  auto contents = read();
  if (!contents) {
    return contents.error();
  }
  auto is_chosen = [&](const std::string& folder) {
    return folders.empty() ||
           std::find(folders.begin(), folders.end(), folder) != folders.end();
  };
  Removal removal;
  auto lock = begin();
  if (!lock) {
    return lock.error();
  }
  for (const auto& model : contents->models) {
    if (!is_chosen(model->folder)) {
      continue;
    }
    // As it is now that the lock is ours.
    auto found = stored_blocks(*files_, model->folder);
    if (!found) {
      if (found.error().code == Code::kNotFound) {
        continue;
      }
      return found.error();
    }
    Status unlinked = unlink(*lock, all_blocks(*model, *found), removal);
    if (!unlinked) {
      return unlinked.error();
    }
  }
  for (const StoredEntry& entry : contents->entries) {
    if (is_chosen(entry.model->folder)) {
      removal.entries.push_back(
          {entry.record, entry.model->name, entry.own_bytes}
      );
    }
  }
  Status tidied = tidy_manifest(*lock, [&](const ManifestEntry& entry) {
    return is_chosen(entry.model);
  });
  if (!tidied) {
    return tidied.error();
  }
  return removal;
}

}  // namespace afterglow
