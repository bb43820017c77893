#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/kv_layout.h"
#include "base/page.h"
#include "mlx/mlx.h"
#include "ops/ops.h"

namespace afterglow {

namespace mx = ::mlx::core;

/// KV as one array [1, kv_heads, capacity, dim] each for K and V of a layer,
/// grown in steps of kPageTokens and updated in place where MLX can hand the
/// old array's memory on. Pages are copied in and out.
///
/// A step: reserve, append once for each layer, collect before each eval,
/// recover if that failed, then finish. Entries behind length() are rubbish
/// that the next step overwrites, so undoing a step costs nothing.
///
/// restore() cannot report that memory ran out; the state is then broken()
/// and every step with it fails until it is destroyed.
/// Thread: the one of the stream.
class MlxKvState final : public KvState {
 public:
  MlxKvState(
      const Ops* owner, KvLayout layout, PagePool& pool, mx::Stream stream
  );

  std::size_t length() const override { return length_; }
  void restore(std::span<const PagePtr> pages, std::size_t tokens) override;
  PagePtr seal(std::size_t index) override;
  void truncate(std::size_t tokens) override;
  std::size_t bytes() const override;

  /// The backend whose steps this belongs to.
  const Ops* owner() const { return owner_; }
  const KvLayout& layout() const { return layout_; }
  /// Why this state can no longer be used; empty: it can.
  const std::string& broken() const { return broken_; }

  /// Makes room for `tokens` more. Throws what MLX throws, and is then as
  /// before.
  void reserve(std::size_t tokens);

  /// Records K and V of the next tokens. Shape: [1, kv_heads, n, dim] each;
  /// returns all of the layer's, [1, kv_heads, length + n, dim].
  /// Requires: reserve(n); once a layer and step.
  std::pair<mx::array, mx::array> append(
      std::size_t layer, const mx::array& k, const mx::array& v
  );

  /// Adds the arrays recorded since the last call to `outputs` and lets go of
  /// the ones they replace, so that eval can reuse their memory.
  void collect(std::vector<mx::array>& outputs);

  /// Goes back to arrays that are whole after an eval that threw.
  void recover();

  /// Ends the step: its tokens count if committed, else they never were.
  /// Requires: when committed, append in every layer and a collect after it.
  void finish(bool commit, std::size_t tokens);

 private:
  struct Layer {
    std::optional<mx::array> k, v;  // [1, kv_heads, capacity_, dim]
    std::optional<std::pair<mx::array, mx::array>> recorded;
    bool appended = false;
  };

  const Ops* owner_;
  KvLayout layout_;
  PagePool* pool_;
  mx::Stream stream_;
  std::size_t length_ = 0;
  std::size_t capacity_ = 0;
  std::vector<Layer> layers_;
  /// Full pages that hold this state's content: sealing them again is free.
  std::vector<std::weak_ptr<const Page>> sealed_;
  std::string broken_;
};

}  // namespace afterglow
