#include "kv/core.h"

namespace afterglow::kv {

// Files may go at any time by somebody else's hand, and pages outlive them in
// RAM. Such blocks are not written again by themselves, since someone wanted
// them gone; but who uses one afterwards wants it cached as any other.

void Core::want_on_disk(Node& node, bool after_failure) {
  if (!options_.with_disk) {
    return;
  }
  if (node.durable) {
    // Whether that is still so takes a look at the disk.
    used_.insert(node.id());
    ++uses_noted_;
    return;
  }
  bool may_try = after_failure || options_.clock.steady() >= node.retry_at;
  if (node.page && node.writing == Writing::kClean && may_try) {
    queue(node);
  }
}

std::vector<BlockId> Core::take_used() {
  std::vector<BlockId> used(used_.begin(), used_.end());
  used_.clear();
  return used;
}

void Core::renew(const BlockId& id) {
  Node* node = tree_.find(id);
  if (!node || node->root) {
    return;  // removed since it was used
  }
  if (!node->page) {
    forget_disk(id);
  } else if (node->durable && options_.with_disk) {
    queue(*node);
  } else {
    want_on_disk(*node, false);  // found gone before by another look
  }
}

}  // namespace afterglow::kv
