#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/page.h"
#include "base/thread_pool.h"
#include "model/model.h"
#include "model/text_file.h"
#include "ops/cpu/cpu_ops.h"

namespace afterglow {

/// A model on the CPU backend, run step by step. Throws, which fails the
/// test, where the model cannot be loaded.
class TestRunner {
 public:
  TestRunner(const std::string& path, Activations mode, int threads)
      : pool_(threads),
        ops_(make_cpu_ops(pool_, mode).value()),
        model_(load(path, *ops_)),
        pages_(model_.layout.page_bytes()) {}

  const LoadedModel& model() const { return model_; }

  std::unique_ptr<KvState> new_kv() {
    return ops_->new_kv(model_.layout, pages_);
  }

  /// Tokens that continue a sequence.
  struct Piece {
    KvState* kv;
    std::span<const Token> tokens;
  };

  /// Runs the pieces as one step. Returns the logits of all their tokens, or
  /// of the last token of each. Shape: [tokens, vocab].
  std::vector<float> step(const std::vector<Piece>& pieces, bool all = true) {
    std::vector<Token> tokens;
    std::vector<Span> spans;
    std::vector<std::size_t> rows;
    for (const Piece& piece : pieces) {
      spans.push_back({tokens.size(), piece.tokens.size(), piece.kv});
      tokens.insert(tokens.end(), piece.tokens.begin(), piece.tokens.end());
      for (std::size_t i = all ? spans.back().row : tokens.size() - 1;
           i < tokens.size();
           ++i) {
        rows.push_back(i);
      }
    }
    const Batch batch{.tokens = tokens, .spans = spans};
    std::vector<float> logits(rows.size() * model_.vocab_size);
    ops_->begin(batch);
    {
      const Value hidden = model_.architecture->forward(*ops_, batch);
      ops_->logits(
          hidden,
          model_.architecture->head(),
          rows,
          model_.architecture->logit_softcap(),
          logits
      );
    }
    const Status status = ops_->end(true);
    if (!status) {
      throw std::runtime_error(status.error().message);
    }
    return logits;
  }

 private:
  static LoadedModel load(const std::string& path, Ops& ops) {
    auto model = load_model(path, ops);
    if (!model) {
      throw std::runtime_error(model.error().message);
    }
    return std::move(*model);
  }

  ThreadPool pool_;
  std::unique_ptr<Ops> ops_;
  LoadedModel model_;
  PagePool pages_;
};

/// A JSON file below the source directory. Throws where it cannot be read.
inline nlohmann::json read_test_json(const std::string& name) {
  const auto text =
      read_text_file(std::string(AFTERGLOW_SOURCE_DIR) + "/" + name);
  if (!text) {
    throw std::runtime_error(text.error().message);
  }
  return nlohmann::json::parse(*text);
}

}  // namespace afterglow
