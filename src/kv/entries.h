#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <utility>
#include <vector>

#include "kv/entry.h"
#include "kv/entry_order.h"
#include "kv/tree.h"

namespace afterglow::kv {

/// All entries over one tree: what exists, what absorbs what, and how far
/// each keeps its pages in RAM.
/// Thread: one at a time.
class Entries {
 public:
  /// Units: limit_pages is what RAM holds at most; an entry longer than that
  /// keeps half of it.
  Entries(Tree& tree, std::size_t limit_pages)
      : tree_(tree), limit_pages_(limit_pages) {}

  /// The entry with the first `length` tokens on the way through node.
  /// Requires: node's block holds the token at length - 1.
  Entry* find(const Node& node, std::size_t length) const;

  /// Makes the entry or refreshes the one with these tokens: the higher type
  /// and the newer time stay. Absorbs what it makes superfluous.
  Entry* put(
      Node* node,
      std::size_t length,
      EntryType type,
      std::int64_t time_ns,
      TrailState* owner
  );
  /// Brings the trail's assistant entry to the trail's end, or refreshes the
  /// one that is there; returns it.
  Entry* advance(TrailState& trail, std::int64_t time_ns);
  /// The trail ended: its entries are as any others.
  void release(TrailState& trail);

  /// Moves the end to a node nearer to the root, after that node's last
  /// token; drops the entry when nothing is left or others cover the rest.
  void shorten(Entry* entry, Node* node);
  void drop(Entry* entry);

  void touch(Entry* entry, std::int64_t time_ns);
  void set_type(Entry* entry, EntryType type);
  void set_pinned(Entry* entry, bool pinned);
  /// Units: nanoseconds since the last use; 0: for ever.
  void set_ttl(Entry* entry, std::int64_t ttl_ns);
  /// Those whose time has passed at now_ns, the earliest first.
  std::vector<Entry*> expired(std::int64_t now_ns) const;
  /// Keeps the pages down to node, null: none, in RAM for the entry.
  /// Requires: node is on the entry's way and all pages down to it are there.
  void set_ram_end(Entry* entry, Node* node);
  /// As set_ram_end, but never takes back, and an entry longer than RAM gets
  /// only its first half of it.
  void extend_ram(Entry* entry, Node* node);
  /// Lets go of all pages after the first half of what RAM holds.
  void keep_half(Entry* entry);

  /// The entries that end in node, longest first.
  static std::vector<Entry*> ending_in(const Node& node);
  /// Moves the entries that end in `from` to its sibling `to`, whose tokens
  /// begin with all of from's.
  void move_all(Node& from, Node& to);
  /// An entry that covers node, preferably one used lately, or null.
  static Entry* covering(Node* node);

  const EntryOrder& all() const { return all_; }
  /// Those that keep pages in RAM.
  const EntryOrder& in_ram() const { return in_ram_; }
  std::size_t size() const { return list_.size(); }
  /// Entries that no running sequence owns.
  std::size_t idle() const { return list_.size() - owned_; }
  const std::list<Entry>& list() const { return list_; }

 private:
  Entry* create(Node* node, std::size_t length, EntryType type);
  void move(Entry* entry, Node* node, std::size_t length);
  void absorb_prefixes(Entry* entry, Node* from, std::size_t levels);
  void own(Entry* entry, TrailState* owner);
  void disown(Entry* entry);
  /// Keeps a running trail's pages; node is the trail's, of entry's tokens.
  void keep_way(Entry* entry, Node* node);
  void keep_half_if_over(Entry* entry);
  template <class Edit>
  void reorder(Entry* entry, Edit edit);
  void schedule(Entry* entry);
  void unschedule(Entry* entry);

  Tree& tree_;
  std::size_t limit_pages_;
  std::list<Entry> list_;
  EntryOrder all_;
  EntryOrder in_ram_;
  /// By the time of expiry, then number.
  std::map<std::pair<std::int64_t, std::uint64_t>, Entry*> mortal_;
  std::size_t owned_ = 0;
  std::uint64_t next_use_ = 1;
  std::uint64_t next_number_ = 1;
};

}  // namespace afterglow::kv
