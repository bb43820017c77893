#pragma once

#include <span>
#include <vector>

#include "store/context.h"
#include "store/damage.h"

namespace afterglow {

/// Tells the cache of block files: reads heads, never KV.
/// Thread: safe from any thread.
class BlockIndex {
 public:
  BlockIndex(StoreContext& context, DamageControl& damage)
      : context_(context), damage_(damage) {}

  /// Indexes all files of the model's folder, those named in `first` before
  /// the others. Returns early when the store stops.
  void scan(std::span<const BlockId> first);

  /// Indexes one block unless the cache knows it. False when there is no
  /// such block to be had.
  bool add(const BlockId& id);

 private:
  StoreContext& context_;
  DamageControl& damage_;
};

}  // namespace afterglow
