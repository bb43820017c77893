#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "base/check.h"
#include "engine/runner.h"

namespace afterglow {

/// A model whose KV is its tokens and whose next token is a hash of all
/// tokens in its KV: a wrong, stale or crossed page shows at once.
class FakeRunner : public Runner {
 public:
  static constexpr std::size_t kVocab = 97;

  FakeRunner() : pool_(make_layout().page_bytes()) {}

  const KvLayout& layout() const override { return layout_; }
  std::size_t vocab_size() const override { return kVocab; }
  std::size_t context_length() const override { return 8192; }
  PagePool& pool() override { return pool_; }
  std::unique_ptr<KvState> new_kv() override {
    return std::make_unique<Kv>(*this);
  }

  Status step(std::span<const StepItem> items, const std::atomic<bool>& cancel)
      override {
    if (before_step) {
      if (Status status = before_step(items); !status.ok()) {
        return status;
      }
    }
    if (cancel.load()) {
      return Error{Code::kCancelled, "cancelled"};
    }
    for (const StepItem& item : items) {
      auto& kv = static_cast<Kv&>(*item.kv);
      for (Token token : item.tokens) {
        kv.append(token);
        ++computed_tokens;
      }
      if (!item.logits.empty()) {
        std::fill(item.logits.begin(), item.logits.end(), 0.0f);
        item.logits[next_token(kv.tokens())] = 10;
      }
    }
    return {};
  }

  /// What greedy decoding gives, computed straight from the tokens.
  static Token next_token(std::span<const Token> tokens) {
    std::uint64_t hash = 1469598103934665603u;
    for (Token token : tokens) {
      hash = (hash ^ static_cast<std::uint64_t>(token)) * 1099511628211u;
    }
    return static_cast<Token>((hash >> 32) % kVocab);
  }
  static std::vector<Token> answer(std::vector<Token> prompt, std::size_t n) {
    std::size_t start = prompt.size();
    for (std::size_t i = 0; i < n; ++i) {
      prompt.push_back(next_token(prompt));
    }
    return {prompt.begin() + static_cast<std::ptrdiff_t>(start), prompt.end()};
  }

  /// Called before each step on the generation thread; may fail it.
  std::function<Status(std::span<const StepItem>)> before_step;
  std::atomic<std::size_t> computed_tokens{0};
  /// Called before a KV takes pages over and before it freezes one; may throw.
  std::function<void()> before_restore;
  std::function<void()> before_seal;

 private:
  class Kv : public KvState {
   public:
    explicit Kv(FakeRunner& runner) : runner_(runner), pool_(runner.pool_) {}

    std::size_t length() const override { return length_; }
    void restore(std::span<const PagePtr> pages, std::size_t tokens) override {
      if (runner_.before_restore) {
        runner_.before_restore();
      }
      CHECK(length_ == 0);
      CHECK(pages.size() == pages_for(tokens));
      for (const PagePtr& page : pages) {
        pages_.push_back({page, nullptr});
      }
      length_ = tokens;
    }
    PagePtr seal(std::size_t index) override {
      if (runner_.before_seal) {
        runner_.before_seal();
      }
      CHECK(index * kPageTokens < length_);
      pages_[index].writable = nullptr;
      return pages_[index].page;
    }
    void truncate(std::size_t tokens) override {
      length_ = tokens;
      pages_.resize(pages_for(tokens));
    }
    std::size_t bytes() const override {
      return pages_.size() * pool_.page_bytes();
    }

    void append(Token token) {
      std::size_t index = length_ / kPageTokens;
      if (index == pages_.size()) {
        pages_.push_back(new_page());
      } else if (pages_[index].writable == nullptr) {
        Held copy = new_page();
        std::memcpy(
            copy.writable->data(), pages_[index].page->data(), copy.page->size()
        );
        pages_[index] = std::move(copy);
      }
      auto* cells = reinterpret_cast<float*>(pages_[index].writable->data());
      std::size_t at = length_++ % kPageTokens;
      cells[at] = static_cast<float>(token);
      cells[kPageTokens + at] = -static_cast<float>(token);
    }
    std::vector<Token> tokens() const {
      std::vector<Token> result;
      for (std::size_t i = 0; i < length_; ++i) {
        auto* cells =
            reinterpret_cast<const float*>(pages_[i / kPageTokens].page->data()
            );
        result.push_back(static_cast<Token>(cells[i % kPageTokens]));
      }
      return result;
    }

   private:
    // As the CPU's: what is frozen is shared, and copied when written to.
    struct Held {
      PagePtr page;
      Page* writable = nullptr;  // null: frozen
    };
    Held new_page() {
      std::shared_ptr<Page> page = pool_.make();
      Page* writable = page.get();
      return {std::move(page), writable};
    }

    FakeRunner& runner_;
    PagePool& pool_;
    std::size_t length_ = 0;
    std::vector<Held> pages_;
  };

  static KvLayout make_layout() {
    KvLayout layout;
    layout.layers.push_back({1, 1, 1, KvType::kF32, 0});
    return layout;
  }

  KvLayout layout_ = make_layout();
  PagePool pool_;
};

using Tokens = std::vector<Token>;

inline Tokens random_tokens(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  Tokens tokens(n);
  for (Token& token : tokens) {
    token = static_cast<Token>(random() % FakeRunner::kVocab);
  }
  return tokens;
}

inline Tokens operator+(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace afterglow
