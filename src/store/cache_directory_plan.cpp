#include "store/cache_directory_plan.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "store/clock.h"

namespace afterglow {

namespace {

/// How many of the first blocks two paths share.
std::size_t shared_blocks(const EntryRecord& a, const EntryRecord& b) {
  auto end =
      std::mismatch(a.path.begin(), a.path.end(), b.path.begin(), b.path.end());
  return static_cast<std::size_t>(end.first - a.path.begin());
}

bool is_corrupt(const StoredBlock& stored) {
  return stored.error && stored.error->code == Code::kCorrupt;
}

class Planner {
 public:
  Planner(const CacheContents& contents, const PruneRule& rule)
      : rule_(rule),
        orphans_(contents.orphans.begin(), contents.orphans.end()) {
    for (const auto& model : contents.models) {
      if (is_chosen(model->folder)) {
        models_.push_back(model.get());
        plan_.left_bytes += model->bytes;
        for (const auto& [id, stored] : model->blocks) {
          model_of_[id] = model.get();
        }
      }
    }
    CacheLimits limits;
    limits.disk_bytes = rule.max_bytes.value_or(CacheLimits::kUnlimited);
    tree_ = make_tree(contents, models_, limits);
    before_ = tree_->entries();
  }

  PrunePlan make() {
    tree_->expire();
    if (rule_.unused_for_ns) {
      drop_unused(*rule_.unused_for_ns);
    }
    for (const BlockId& id : tree_->take_superseded()) {
      add(id);
    }
    if (is_over()) {
      add_corrupt();
    }
    if (is_over()) {
      for (const BlockId& id :
           tree_->evict_disk(plan_.left_bytes - *rule_.max_bytes)) {
        add(id);
      }
    }
    tell_entries();
    return std::move(plan_);
  }

 private:
  bool is_chosen(const std::string& folder) const {
    const auto& folders = rule_.folders;
    return folders.empty() ||
           std::find(folders.begin(), folders.end(), folder) != folders.end();
  }

  bool is_over() const {
    return rule_.max_bytes && plan_.left_bytes > *rule_.max_bytes;
  }

  const StoredBlock& stored(const BlockId& id) const {
    return *model_of_.at(id)->find(id);
  }

  void add(const BlockId& id) {
    std::uint64_t bytes = stored(id).bytes;
    if (victims_.insert(id).second) {
      plan_.victims.push_back({model_of_.at(id)->folder, id, bytes});
      plan_.left_bytes -= bytes;
    }
  }

  void drop_unused(std::int64_t unused_for_ns) {
    std::int64_t now = unix_now_ns();
    std::int64_t since = now - std::min(now, unused_for_ns);
    for (const EntryRecord& entry : before_) {
      if (!entry.pinned && entry.last_use_ns <= since) {
        tree_->remove(entry.path.back(), entry.length);
      }
    }
    // Of no use to anyone, and in that time nobody made them usable.
    for (const auto& [id, model] : model_of_) {
      const StoredBlock& block = stored(id);
      if ((is_corrupt(block) || orphans_.count(id) > 0) &&
          block.mtime_ns <= since) {
        tree_->forget_disk(id);
        add(id);
      }
    }
  }

  void add_corrupt() {
    for (const auto& [id, model] : model_of_) {
      if (is_over() && is_corrupt(stored(id))) {
        add(id);
      }
    }
  }

  /// The entries that are no longer there as they were.
  void tell_entries() {
    std::vector<EntryRecord> after = tree_->entries();
    std::set<EntryEnd> old_ends;
    std::set<EntryEnd> new_ends;
    for (const EntryRecord& entry : before_) {
      old_ends.insert(end_of(entry));
    }
    for (const EntryRecord& entry : after) {
      new_ends.insert(end_of(entry));
    }
    for (const EntryRecord& entry : before_) {
      if (new_ends.count(end_of(entry)) > 0) {
        continue;
      }
      std::size_t blocks = 0;
      bool is_shortened = false;
      for (const EntryRecord& other : after) {
        std::size_t shared = shared_blocks(entry, other);
        blocks = std::max(blocks, shared);
        is_shortened = is_shortened || (shared == other.path.size() &&
                                        old_ends.count(end_of(other)) == 0);
      }
      RemovedEntry removed{entry, model_of_.at(entry.path[0])->name};
      removed.tokens_left = std::min(entry.length, blocks * kPageTokens);
      for (std::size_t i = blocks; i < entry.path.size(); ++i) {
        removed.bytes += stored(entry.path[i]).bytes;
      }
      if (!is_shortened) {
        plan_.dropped.insert(end_of(entry));
      }
      plan_.entries.push_back(std::move(removed));
    }
  }

  const PruneRule& rule_;
  std::unordered_set<BlockId, BlockIdHash> orphans_;
  std::vector<const StoredModel*> models_;
  std::unordered_map<BlockId, const StoredModel*, BlockIdHash> model_of_;
  std::unordered_set<BlockId, BlockIdHash> victims_;
  std::unique_ptr<PromptCache> tree_;
  std::vector<EntryRecord> before_;
  PrunePlan plan_;
};

}  // namespace

EntryEnd end_of(const EntryRecord& record) {
  return {record.path.back(), record.length};
}

PrunePlan plan_prune(const CacheContents& contents, const PruneRule& rule) {
  return Planner(contents, rule).make();
}

}  // namespace afterglow
