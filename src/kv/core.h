#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kv/dirty_queue.h"
#include "kv/entries.h"
#include "kv/gone_files.h"
#include "kv/orphans.h"
#include "kv/prompt_cache.h"
#include "kv/tree.h"
#include "kv/waiting_entries.h"

namespace afterglow::kv {

/// A prompt cache without its mutex: tree, entries, budgets and what is known
/// of the disk. Every public function leaves the budgets kept.
/// Thread: one at a time.
class Core {
 public:
  struct Options {
    std::size_t page_bytes = 0;
    CacheLimits limits;
    bool with_disk = false;
    CacheClock clock;
  };
  /// Pages that may wait to be written, whatever the RAM budget.
  static constexpr std::size_t kWriteBehindPages = 32;
  /// How long a use is no reason to try a failed write again.
  static constexpr std::chrono::minutes kRetryAfter{1};
  /// Bounds what is remembered without a place in the tree.
  static constexpr std::size_t kMaxOrphans = 16384;
  static constexpr std::size_t kMaxWaitingEntries = 65536;

  explicit Core(Options options);

  // Sequences (core_sequences.cpp).

  struct Found {
    std::size_t tokens = 0;
    std::vector<NodePtr> nodes;  // used until released
  };
  Found lookup(
      const BlockId& root, const std::optional<BlockId>& other, Tokens prompt
  );
  void release(std::span<const NodePtr> nodes);
  void start(
      TrailState& trail,
      std::span<const PathBlock> prefix,
      std::vector<Boundary> boundaries
  );
  void append(TrailState& trail, BlockPtr block, PagePtr page);
  void finish(TrailState& trail);

  using Root = std::optional<BlockId>;  // below it; none: everywhere

  // Writing (core_disk.cpp).

  std::vector<NodePtr> take_dirty(std::chrono::milliseconds tail_delay);
  bool set_durable(const BlockId& id, std::uint64_t file_bytes);
  void set_write_failed(const BlockId& id);
  bool requeue(const BlockId& id);
  std::vector<BlockId> take_superseded() { return gone_.take(); }

  // What is used is to be on disk (core_renewal.cpp).

  std::vector<BlockId> take_used();
  void renew(const BlockId& id);
  /// How often a block was noted for take_used.
  std::uint64_t uses_noted() const { return uses_noted_; }

  // What the disk has (core_disk.cpp).

  void add_disk_block(DiskBlock disk);
  PagePtr attach_page(const BlockId& id, PagePtr page);
  void forget_disk(const BlockId& id);
  std::vector<BlockId> durable_blocks() const;
  std::vector<BlockId> dirty_blocks(const Root& root) const;
  std::uint64_t disk_blocks() const;
  std::uint64_t disk_bytes() const;

  // Entries (core_entries.cpp).

  void merge(const EntryRecord& record);
  static EntryRecord record(const Entry& entry);
  bool set_pinned(
      const BlockId& last_block,
      std::size_t length,
      bool pinned,
      const Root& root
  );

  // What is taken out on purpose (core_removal.cpp).

  std::size_t expire();
  bool remove(const BlockId& last_block, std::size_t length, const Root& root);
  std::vector<BlockId> clear(const Root& root);

  // Budgets (core_budgets.cpp).

  std::vector<BlockId> evict_disk(std::uint64_t bytes);
  std::uint64_t shrink_ram(std::uint64_t bytes);

  CacheStats stats() const;
  /// CHECKs that all sums and links agree with a full recount.
  void verify() const;

  Tree& tree() { return tree_; }
  const Tree& tree() const { return tree_; }
  const Entries& entries() const { return entries_; }
  const DirtyQueue& dirty() const { return dirty_; }
  const CacheClock& clock() const { return options_.clock; }

 private:
  /// A tail's file that is to go when `by` is durable.
  struct Superseded {
    DiskBlock disk;
    NodePtr by;
    bool written = false;  // false: the store is still at it
  };

  std::int64_t now_ns();
  void use(Node& node);
  Found walk(const BlockId& root, Tokens prompt);
  void touch_way(const Found& found);
  Node* place(const BlockPtr& block, const PagePtr& page, Node* parent);
  bool has_room() const;
  void add_block(TrailState& trail, const BlockPtr& block, const PagePtr& page);
  void open_boundaries(TrailState& trail);
  /// What becomes possible once a block is in the tree.
  void welcome(Node& node);
  void supersede_tails(Node& node);
  void supersede(Node& tail, Node& by);
  void add_superseded(DiskBlock disk, Node& by, bool written);
  /// A sequence runs through the block, or it was pinned: what others removed
  /// from the disk is queued again, what is believed durable noted to be
  /// looked for.
  void want_on_disk(Node& node, bool after_failure);
  void queue(Node& node);
  void became_durable(Node& node);
  void mark_clean(Node& node);
  void add_disk(DiskBlock disk);
  bool insert_disk(const DiskBlock& disk);
  void put_record(Node& node, const EntryRecord& record);
  void pin(Entry& entry, bool pinned);
  /// Drops entries and hands over the files that only they covered.
  void take_out(const std::vector<Entry*>& entries);
  /// Marks a node and those above it as unwanted, as far as no entry covers
  /// them.
  void doom(Node* node, std::vector<NodePtr>& doomed);
  void sweep_all(const std::vector<NodePtr>& doomed);
  /// Takes an unwanted node out of the tree, unless it is being used or
  /// written: then it goes when that ends.
  void sweep(Node& node);
  void take_superseded_by(Node& node);
  /// Takes out a tail whose file is there, with its bytes; else nothing.
  std::optional<DiskBlock> take_written_superseded(const BlockId& id);
  /// The block that holds the last of so many tokens; null when it is not
  /// known (below root) or does not.
  Node* node_at(const BlockId& last_block, std::size_t length, const Root& root)
      const;
  void drop_expired();

  /// Frees what nobody wants, then keeps the budgets.
  void tidy();
  void settle();
  void forget(Node& node);
  bool drop_over_count();
  bool shed_page();
  void halve_over_disk();
  /// Takes a durable leaf that nobody covers or uses out of the tree.
  bool remove_loose(std::vector<BlockId>& out, std::uint64_t& freed);

  Options options_;
  std::size_t limit_pages_;
  Tree tree_;
  Entries entries_;
  DirtyQueue dirty_;
  Orphans orphans_;
  WaitingEntries waiting_;
  std::unordered_map<BlockId, Superseded, BlockIdHash> superseded_;
  std::uint64_t superseded_bytes_ = 0;
  std::size_t superseded_written_ = 0;
  GoneFiles gone_;
  std::vector<DiskBlock> again_;  // superseded by a block that was lost
  std::unordered_set<BlockId, BlockIdHash> used_;  // not yet looked for
  std::uint64_t uses_noted_ = 0;
  std::int64_t last_now_ns_ = 0;
  std::uint64_t largest_file_ = 0;
  CacheStats counts_;  // the counters that only grow
};

}  // namespace afterglow::kv
