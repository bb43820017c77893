#pragma once

#include <cstddef>
#include <cstdint>

#include "kv/node.h"

namespace afterglow::kv {

/// Sums over all nodes of the tree, kept up to date by Tree::change.
struct Ledger {
  std::size_t blocks = 0;
  std::size_t ram_pages = 0;
  std::size_t idle_pages = 0;   // in RAM, used by no Match or Trail
  std::size_t kept_pages = 0;   // idle, and an entry wants them in RAM
  std::size_t fixed_pages = 0;  // cannot be freed now
  std::size_t dirty_pages = 0;
  std::size_t disk_blocks = 0;
  std::uint64_t disk_bytes = 0;

  void add(const Node& node) { apply(node, 1); }
  void remove(const Node& node) { apply(node, -1); }

  auto operator<=>(const Ledger&) const = default;

 private:
  void apply(const Node& node, int sign) {
    bool dirty = node.writing != Writing::kClean;
    bool ram = node.page != nullptr;
    bool idle = ram && node.uses == 0;
    bool busy = node.uses > 0 && !node.durable;
    auto count = [sign](auto& sum, auto value) {
      sum += static_cast<std::uint64_t>(sign) * value;
    };
    count(blocks, 1);
    count(ram_pages, ram);
    count(idle_pages, idle);
    count(kept_pages, idle && node.ram.any());
    count(fixed_pages, ram && (dirty || busy || node.pinned.any()));
    count(dirty_pages, ram && dirty);
    count(disk_blocks, node.durable);
    count(disk_bytes, node.durable ? node.file_bytes : 0);
  }
};

}  // namespace afterglow::kv
