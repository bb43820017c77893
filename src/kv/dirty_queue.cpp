#include "kv/dirty_queue.h"

#include <algorithm>

#include "base/check.h"

namespace afterglow::kv {

void DirtyQueue::push(Node& node, Time now) {
  unqueue(node);
  if (node.ticket == 0) {
    node.ticket = ++last_ticket_;
    node.sealed_at = now;
    tickets_.emplace(node.ticket, now);
  }
  node.queue_key = ++pushed_;
  queue_of(node).emplace(node.queue_key, node.shared_from_this());
}

void DirtyQueue::unqueue(Node& node) {
  if (node.queue_key != 0) {
    queue_of(node).erase(node.queue_key);
    node.queue_key = 0;
  }
}

void DirtyQueue::remove(Node& node) {
  unqueue(node);
  if (node.ticket != 0) {
    tickets_.erase(tickets_.find(node.ticket));
    node.ticket = 0;
    ++removed_;
  }
}

void DirtyQueue::inherit(const Node& from, Node& to) {
  if (from.ticket == 0 || to.ticket == 0 || from.ticket >= to.ticket) {
    return;
  }
  auto node = tickets_.extract(tickets_.find(to.ticket));
  node.key() = from.ticket;
  tickets_.insert(std::move(node));
  to.ticket = from.ticket;
}

std::vector<NodePtr> DirtyQueue::take(
    Time now, std::chrono::milliseconds tail_delay
) {
  std::vector<NodePtr> due;
  for (auto& [key, node] : full_) {
    due.push_back(std::move(node));
  }
  full_.clear();
  for (auto it = tails_.begin(); it != tails_.end();) {
    if (it->second->sealed_at + tail_delay <= now) {
      due.push_back(std::move(it->second));
      it = tails_.erase(it);
    } else {
      ++it;
    }
  }
  for (NodePtr& node : due) {
    node->queue_key = 0;
  }
  std::stable_sort(due.begin(), due.end(), [](auto& a, auto& b) {
    return a->block->start < b->block->start;
  });
  return due;
}

std::optional<DirtyQueue::Time> DirtyQueue::next_due(
    std::chrono::milliseconds tail_delay
) const {
  if (!full_.empty()) {
    return full_.begin()->second->sealed_at;
  }
  if (!tails_.empty()) {
    return tails_.begin()->second->sealed_at + tail_delay;
  }
  return std::nullopt;
}

bool DirtyQueue::clean(std::uint64_t ticket) const {
  return tickets_.empty() || tickets_.begin()->first > ticket;
}

std::optional<DirtyQueue::Time> DirtyQueue::oldest() const {
  if (tickets_.empty()) {
    return std::nullopt;
  }
  return tickets_.begin()->second;
}

}  // namespace afterglow::kv
