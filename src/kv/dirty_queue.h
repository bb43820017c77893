#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "kv/node.h"

namespace afterglow::kv {

/// The blocks that are not yet durable: those that wait to be taken, and the
/// tickets of all until they are clean. Sets the nodes' ticket, queue_key and
/// sealed_at; their `writing` is the caller's business.
/// Thread: one at a time.
class DirtyQueue {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// A node waits (again) to be taken. One that was not clean keeps its ticket
  /// and its time.
  void push(Node& node, Time now);
  /// The node is clean, or gone: it waits no more and holds up nobody.
  void remove(Node& node);
  /// `to` stands in for `from`, which will not be written: who waits for from
  /// now waits for to.
  void inherit(const Node& from, Node& to);
  /// Takes those that are due, parents before children.
  std::vector<NodePtr> take(Time now, std::chrono::milliseconds tail_delay);
  /// When the next becomes due.
  std::optional<Time> next_due(std::chrono::milliseconds tail_delay) const;

  std::uint64_t last_ticket() const { return last_ticket_; }
  /// Whether all that were pushed up to this ticket have been removed.
  bool clean(std::uint64_t ticket) const;
  std::size_t size() const { return tickets_.size(); }
  /// How often push was called.
  std::uint64_t pushed() const { return pushed_; }
  /// How many have ceased to hold anybody up.
  std::uint64_t removed() const { return removed_; }
  std::optional<Time> oldest() const;

 private:
  using Queue = std::map<std::uint64_t, NodePtr>;
  Queue& queue_of(const Node& node) {
    return node.block->full() ? full_ : tails_;
  }
  void unqueue(Node& node);

  Queue full_;
  Queue tails_;
  std::multimap<std::uint64_t, Time> tickets_;
  std::uint64_t last_ticket_ = 0;
  std::uint64_t removed_ = 0;
  std::uint64_t pushed_ = 0;
};

}  // namespace afterglow::kv
