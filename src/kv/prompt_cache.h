#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/page.h"
#include "base/token.h"
#include "kv/block.h"

namespace afterglow {

/// In mlx_lm's order of eviction.
enum class EntryType : std::uint8_t { kAssistant, kUser, kSystem };

/// "assistant", "user", "system".
const char* to_string(EntryType type);

struct CacheLimits {
  static constexpr auto kUnlimited = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t ram_bytes = kUnlimited;  // pages that only entries hold
  std::uint64_t entries = kUnlimited;
  std::uint64_t disk_bytes = kUnlimited;  // used by evict_disk's caller
  /// Shorter matches neither count as hits nor touch the order.
  std::size_t min_match_tokens = 32;
  /// How long an entry made or used here lives without further use; 0: ever.
  std::int64_t ttl_ns = 0;
};

/// A block on the way of a lookup. page is null when only the disk has it.
struct PathBlock {
  BlockPtr block;
  PagePtr page;
};

/// A prompt's end worth keeping as an entry of its own: the first `length`
/// tokens (after the system prompt, before the last turn).
struct Boundary {
  EntryType type = EntryType::kUser;
  std::size_t length = 0;
};

/// What is kept of a prompt: a path through blocks and a length.
struct EntryRecord {
  BlockId root;               // below which the path lies; zero: not known
  std::vector<BlockId> path;  // full blocks, at last perhaps a partly used one
  std::size_t length = 0;     // tokens
  EntryType type = EntryType::kAssistant;
  std::int64_t last_use_ns = 0;  // Unix time
  std::uint64_t hits = 0;
  bool pinned = false;
  std::int64_t pin_time_ns = 0;  // when pinned was decided; 0: never
  std::int64_t ttl_ns = 0;       // 0: none
};

/// What left the cache, by reason.
struct Evictions {
  std::uint64_t ram_blocks = 0;  // pages let go of; the disk may have them
  // Entries:
  std::uint64_t over_count = 0;  // over CacheLimits::entries
  std::uint64_t over_disk = 0;   // nothing was left within the disk budget
  std::uint64_t expired = 0;
  std::uint64_t removed = 0;  // by remove or clear
  std::uint64_t lost = 0;     // their blocks vanished or never got a place
};

struct CacheStats {
  std::size_t entries = 0;
  std::size_t entries_by_type[3] = {};  // indexed by EntryType
  std::size_t blocks = 0;
  std::size_t ram_pages = 0;      // blocks whose page is in RAM
  std::uint64_t ram_bytes = 0;    // of those pages that only entries hold
  std::uint64_t disk_blocks = 0;  // blocks known to be on disk
  std::uint64_t disk_bytes = 0;
  std::size_t dirty_blocks = 0;  // sealed, not yet durable
  std::uint64_t dirty_bytes = 0;
  double oldest_dirty_seconds = 0;
  std::uint64_t lookups = 0;
  std::uint64_t hits = 0;
  std::uint64_t hit_tokens = 0;
  Evictions evicted;
  std::uint64_t dropped_blocks = 0;  // sealed but never cached for want of RAM
  CacheLimits limits;
};

/// Where a cache takes its time from.
struct CacheClock {
  /// Unix time in nanoseconds; dates the entries' uses.
  std::function<std::int64_t()> unix_ns;
  /// Dates sealed blocks and says which tails are due.
  std::function<std::chrono::steady_clock::time_point()> steady;

  /// The system's clocks.
  static CacheClock system();
};

namespace kv {
struct Node;
}

class PromptCache;
struct ListedEntry;

/// The result of a lookup. While it lives, the blocks on its path are neither
/// evicted from RAM nor picked for eviction from disk.
class Match {
 public:
  Match() = default;
  ~Match();
  Match(Match&& other) noexcept;
  Match& operator=(Match&& other) noexcept;

  /// Tokens that agree with the prompt; the last block may agree in part.
  std::size_t tokens() const { return tokens_; }
  const std::vector<PathBlock>& path() const { return path_; }
  /// Below which the path lies. Requires: it is not empty.
  const BlockId& root() const { return path_.front().block->parent; }

 private:
  friend class PromptCache;
  PromptCache* cache_ = nullptr;
  std::size_t tokens_ = 0;
  std::vector<PathBlock> path_;
  std::vector<std::shared_ptr<kv::Node>> nodes_;

  void release();
};

/// The path of blocks that a running sequence leaves behind. Destroying it
/// ends the sequence; what was appended stays cached as an assistant entry.
/// Thread: one thread at a time; must not outlive the cache.
class Trail {
 public:
  Trail();
  ~Trail();
  Trail(Trail&& other) noexcept;
  Trail& operator=(Trail&& other) noexcept;

  /// Tokens covered so far.
  std::size_t length() const;
  /// Adds the block [length, length + tokens.size()) and its frozen page,
  /// and makes it dirty where the cache has a disk. Entries for boundaries
  /// that are now covered come into being. A block that is known already is
  /// shared instead. When RAM cannot hold it, this block and all later ones
  /// are dropped and counted.
  /// Requires: all earlier blocks were full; 0 < size <= kPageTokens.
  void append(std::span<const Token> tokens, PagePtr page);
  /// The id of the last full block (or the root): the parent of the next.
  const BlockId& last_id() const;
  /// The shared page of the i-th block.
  PagePtr page(std::size_t index) const;

 private:
  friend class PromptCache;
  struct State;
  std::unique_ptr<State> state_;

  void finish();
};

/// The tree of all known prefixes of one model, the entries that keep its
/// blocks alive, and the budgets. Knows tokens and pages, no files: the store
/// takes dirty blocks from here and reports back what is durable.
/// Thread: safe from any thread; calls hold one mutex for microseconds and do
/// no I/O. Matches and Trails must not outlive the cache.
class PromptCache {
 public:
  /// Units: page_bytes is what one block costs in RAM. with_disk: appended
  /// blocks become dirty until the store makes them durable.
  PromptCache(
      std::size_t page_bytes,
      CacheLimits limits,
      bool with_disk,
      CacheClock clock = CacheClock::system()
  );
  ~PromptCache();

  // The generation thread.

  /// The longest known prefix of the prompt below root, exact to the token;
  /// or below the other root, where that is longer.
  /// Counts as a use of the entries on its way when it is at least
  /// min_match_tokens long. Cost grows with the prompt, not with the entries.
  /// Never finds what only expired entries cover.
  Match lookup(
      const BlockId& root,
      std::span<const Token> prompt,
      const std::optional<BlockId>& other = {}
  );

  /// Starts recording a sequence whose first `prefix.size()` blocks (all
  /// full, pages in RAM) are reused.
  Trail start(
      const BlockId& root,
      std::span<const PathBlock> prefix,
      std::vector<Boundary> boundaries
  );

  // The store.

  struct Dirty {
    BlockPtr block;
    PagePtr page;
    std::chrono::steady_clock::time_point sealed_at;
  };
  /// Waits until a dirty block is due or the deadline passes; returns all that
  /// are due, parents before children. Full blocks are due at once, tails
  /// tail_delay after sealing. Each is handed out once; it stays in RAM until
  /// one of the calls below names it. A tail that was superseded is dropped.
  std::vector<Dirty> take_dirty(
      std::chrono::steady_clock::time_point deadline,
      std::chrono::milliseconds tail_delay
  );
  /// Wakes a waiting take_dirty, or the next one that would wait, as does
  /// what is new for take_used.
  void wake();
  /// Stands for all blocks sealed so far; see wait_clean.
  std::uint64_t dirty_ticket() const;
  /// Waits until every block that the ticket stands for is durable, failed or
  /// superseded by one that is. False when the deadline passed first.
  /// Thread: not the one that writes.
  bool wait_clean(
      std::uint64_t ticket, std::chrono::steady_clock::time_point deadline
  );
  /// Blocks sealed that are neither durable nor failed yet.
  std::size_t dirty_count() const;
  /// The same by name, of all or of those below root.
  std::vector<BlockId> dirty_blocks(const std::optional<BlockId>& root = {})
      const;
  /// The block is durable on disk under its name. False when the cache does
  /// not know it any more, so that nobody will ask for the file.
  bool set_durable(const BlockId& id, std::uint64_t file_bytes);
  /// The block could not be written; it stays in RAM as long as the budget
  /// lets it.
  void set_write_failed(const BlockId& id);
  /// Files that nobody wants any more: tails whose superseding block is
  /// durable by now, blocks of entries that expired or were removed. The cache
  /// has forgotten them and the caller unlinks them. Children come before
  /// parents, each is named once.
  std::vector<BlockId> take_superseded();
  /// Blocks that are believed durable and that sequences ran through, or that
  /// were pinned, since the last call. Whether their files are still there is
  /// for the caller to look.
  std::vector<BlockId> take_used();
  /// The file of a used block is gone: hands the block out again unless it was
  /// removed since; without a page in RAM forgets it as forget_disk does.
  void renew(const BlockId& id);
  /// Hands the block out again (its file or its parent's vanished).
  /// False when its page is no longer in RAM.
  bool requeue(const BlockId& id);
  /// Makes known a block found on disk. Without a known parent it waits as an
  /// orphan and appears when the parent does. `last_use_ns` dates the
  /// assistant entry made for it unless an entry covers it. A block whose id
  /// is not that of its parent, start and tokens is ignored.
  void add_disk_block(
      const BlockPtr& block, std::uint64_t file_bytes, std::int64_t last_use_ns
  );
  /// Gives a known block its page (restored from disk). Returns the page to
  /// use: the one already in RAM, if any.
  PagePtr attach_page(const BlockId& id, PagePtr page);
  /// The block's file is gone (evicted by someone, corrupt, cleared). Without
  /// a page in RAM the block and all below it are forgotten; with one it is
  /// written again once a sequence runs through it or it is pinned.
  void forget_disk(const BlockId& id);
  /// Whether the block is known and its file is believed durable.
  bool is_durable(const BlockId& id) const;
  std::vector<BlockId> durable_blocks() const;

  /// Chooses, by the rule of eviction, blocks to unlink so that at least
  /// `bytes` are freed (fewer when the rest is pinned or in use); children
  /// before parents. First go blocks that no entry covers, then what an entry
  /// larger than disk_bytes has beyond half of that. The entries are shortened
  /// and the cache forgets the blocks; the caller unlinks their files.
  std::vector<BlockId> evict_disk(std::uint64_t bytes);

  /// Drops the entries whose time to live has passed since their last use,
  /// but for pinned ones and those in use. Returns how many; the files that
  /// only they covered come from take_superseded.
  std::size_t expire();

  /// Adds or refreshes entries (from a manifest); the newest last use wins,
  /// and for pinned the newest decision.
  /// Blocks not yet known are remembered until add_disk_block names them.
  void merge_entries(std::span<const EntryRecord> records);

  // Everyone.

  /// All, or those below root; oldest first within their type. Records that
  /// still wait for their blocks are not among them.
  std::vector<EntryRecord> entries(const std::optional<BlockId>& root = {})
      const;
  /// The same beside each other; see kv/entry_list.h. Cost grows with the
  /// entries, but the mutex is held no longer at a time.
  std::vector<ListedEntry> list_entries(const std::optional<BlockId>& root = {})
      const;
  CacheStats stats() const;
  /// Pins the entry of that length, making it where the blocks are known, or
  /// unpins it. What the disk lacks of a pinned one is handed out again.
  /// Counts as a use; of several processes' decisions the latest wins, whoever
  /// used the entry since. False when there is no such block (below root) or
  /// entry.
  bool set_pinned(
      const BlockId& last_block,
      std::size_t length,
      bool pinned,
      const std::optional<BlockId>& root = {}
  );
  /// Removes one entry, pinned or not, with all that only it covers; the
  /// files come from take_superseded. False when there is no such entry
  /// (below root) or a running sequence is making it.
  bool remove(
      const BlockId& last_block,
      std::size_t length,
      const std::optional<BlockId>& root = {}
  );
  /// Forgets everything (below root) that no running request uses, pinned
  /// entries included. Returns the blocks whose files are to be unlinked,
  /// children before parents. Blocks whose parents are not known go only
  /// when no root is given.
  std::vector<BlockId> clear(const std::optional<BlockId>& root = {});
  /// Frees idle clean pages until `bytes` are freed; returns what was freed.
  std::uint64_t shrink_ram(std::uint64_t bytes);
  /// CHECKs all sums and links against a full recount. For tests: slow.
  void verify() const;

 private:
  friend class Match;
  friend class Trail;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace afterglow
