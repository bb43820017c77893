#include "engine/sequence.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace afterglow {
namespace {

double milliseconds(Sequence::Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace

Sequence::Sequence(RequestId id, GenerationRequest request, const BlockId& root)
    : id_(id),
      request_(std::move(request)),
      root_(root),
      sampler_(request_.sampling) {
  timings_.cache_store = request_.cache_store;
}

void Sequence::prepare(Runner& runner) {
  began_ = Clock::now();
  bool waited_for_disk = restore_started_ != Clock::time_point{};
  timings_.queue_ms = milliseconds(
      (waited_for_disk ? restore_started_ : began_) - request_.arrived
  );
  timings_.restore_ms =
      waited_for_disk ? milliseconds(began_ - restore_started_) : 0;
  kv_ = runner.new_kv();
  vocab_size_ = runner.vocab_size();
  tokens_ = request_.prompt;
  tokens_.reserve(request_.prompt.size() + request_.max_tokens);
}

void Sequence::begin(
    Runner& runner,
    PromptCache& cache,
    const Restored& restored,
    std::size_t reused
) {
  CHECK(reused <= restored.tokens && reused < request_.prompt.size());
  prepare(runner);
  timings_.cache_n = reused;
  timings_.cache_disk_n = std::min(restored.disk_tokens, reused);
  timings_.cache_ram_n = reused - timings_.cache_disk_n;
  // The last token is needed for its logits, restored or not. What only lay
  // in memory and is too short to be a match was not restored by anyone.
  restored_ = restored.disk_tokens == 0
                  ? reused
                  : std::min(restored.tokens, request_.prompt.size() - 1);
  if (reused > 0) {
    std::vector<PagePtr> pages;
    for (std::size_t i = 0; i < pages_for(reused); ++i) {
      CHECK(restored.path[i].page != nullptr);
      pages.push_back(restored.path[i].page);
    }
    kv_->restore(pages, reused);
    CHECK(kv_->length() == reused);
  }
  if (request_.cache_store) {
    // What came with the request instead of from the cache is recorded anew.
    bool known = reused > 0 && restored.path.front().block != nullptr;
    std::span<const PathBlock> full(
        restored.path.data(), known ? reused / kPageTokens : 0
    );
    trail_ = cache.start(root_, full, request_.boundaries);
    recording_ = true;
  }
}

void Sequence::count_prompt_tokens(const StepItem& done) {
  std::size_t end = kv_->length();
  std::size_t start = end - done.tokens.size();
  auto below = [&](std::size_t limit) {
    return std::min(end, limit) - std::min(start, limit);
  };
  timings_.prompt_n += below(request_.prompt.size());
  recomputed_ += below(restored_);
}

StepItem Sequence::next(std::size_t budget) {
  StepItem item;
  item.kv = kv_.get();
  std::size_t start = kv_->length();
  std::size_t count = decoding() ? 1 : std::min(budget, prompt_left());
  CHECK(start + count <= tokens_.size());
  item.tokens = std::span(tokens_).subspan(start, count);
  if (start + count == tokens_.size()) {
    logits_.resize(vocab_size_);  // the last ones may have been given away
    item.logits = logits_;
  }
  return item;
}

bool Sequence::advance(const StepItem& done) {
  CHECK(kv_->length() <= tokens_.size());
  count_prompt_tokens(done);
  seal_full_pages();
  if (cancelled() || !listening_) {
    finish(cancel_reason());
    return true;
  }
  if (done.logits.empty()) {
    send(Progress{kv_->length(), request_.prompt.size(), timings_.cache_n});
    return false;
  }
  mark_prompt_read();
  return choose_token();
}

void Sequence::mark_prompt_read() {
  if (first_token_ == Clock::time_point{}) {
    first_token_ = Clock::now();
    timings_.prompt_ms = milliseconds(first_token_ - began_);
    std::size_t total = request_.prompt.size();
    send(Progress{total, total, timings_.cache_n});
  }
}

bool Sequence::choose_token() {
  if (request_.logits_sink != nullptr) {
    waiting_ = true;
    if (!request_.logits_sink->send_logits(std::move(logits_))) {
      finish(FinishReason::kCancelled);
    }
    return reason_.has_value();
  }
  sampler_.process(logits_, tokens_);
  TokenOut out;
  out.token = sampler_.sample(logits_, tokens_.size());
  if (request_.logprobs) {
    double log_sum = log_sum_exp(logits_);
    out.logprob = static_cast<float>(logits_[out.token] - log_sum);
    out.top_logprobs = top_logprobs(logits_, log_sum, request_.top_logprobs);
  }
  return accept(std::move(out));
}

bool Sequence::accept(TokenOut out) {
  waiting_ = false;
  const std::vector<Token>& stops = request_.stop_tokens;
  if (std::find(stops.begin(), stops.end(), out.token) != stops.end()) {
    stop_token_ = out.token;
    finish(FinishReason::kStop);
    return true;
  }
  tokens_.push_back(out.token);
  ++timings_.predicted_n;
  send(std::move(out));
  if (timings_.predicted_n == request_.max_tokens) {
    finish(FinishReason::kLength);
    return true;
  }
  return false;
}

KvHistoryPtr Sequence::history() {
  if (kv_ == nullptr) {
    return nullptr;
  }
  CHECK(history_origin_.has_value());
  KvHistory history{*history_origin_, history_layout_, {}, {}};
  history.tokens.assign(
      tokens_.begin(),
      tokens_.begin() + static_cast<std::ptrdiff_t>(kv_->length())
  );
  for (std::size_t i = 0; i < pages_for(kv_->length()); ++i) {
    history.pages.push_back(seal(i));
  }
  return std::make_shared<const KvHistory>(std::move(history));
}

Lent Sequence::lend(std::size_t tokens) {
  CHECK(kv_ != nullptr && tokens <= kv_->length());
  Lent lent{{}, root_};
  for (std::size_t i = 0; i < pages_for(tokens); ++i) {
    lent.restored.path.push_back({nullptr, seal(i)});
  }
  lent.restored.tokens = tokens;
  return lent;
}

PagePtr Sequence::seal(std::size_t page) {
  if ((page + 1) * kPageTokens > kv_->length()) {
    frozen_at_ = kv_->length();
  }
  return kv_->seal(page);
}

void Sequence::seal_full_pages() {
  while (recording_ && trail_.length() + kPageTokens <= kv_->length()) {
    std::size_t start = trail_.length();
    trail_.append(
        std::span<const Token>(tokens_).subspan(start, kPageTokens),
        kv_->seal(start / kPageTokens)
    );
    // The trail is closed when RAM could not hold the page.
    recording_ = trail_.length() == start + kPageTokens;
  }
}

void Sequence::seal_tail() {
  if (!recording_) {
    return;
  }
  seal_full_pages();
  std::size_t start = trail_.length();
  if (recording_ && start < kv_->length()) {
    trail_.append(
        std::span<const Token>(tokens_).subspan(start, kv_->length() - start),
        kv_->seal(start / kPageTokens)
    );
  }
  recording_ = false;
  trail_ = Trail();
}

// Lets go of the KV; what it held is sealed, and told if the request asked.
KvHistoryPtr Sequence::release() {
  KvHistoryPtr kept;
  if (kv_ != nullptr) {
    if (request_.return_history) {
      kept = history();
    }
    seal_tail();
    kv_.reset();
  }
  return kept;
}

void Sequence::finish(FinishReason reason) {
  KvHistoryPtr kept = release();
  if (first_token_ != Clock::time_point{}) {
    timings_.predicted_ms = milliseconds(Clock::now() - first_token_);
  }
  reason_ = reason;
  send(Finished{reason, timings_, stop_token_, std::move(kept)});
}

void Sequence::fail(Error error) {
  KvHistoryPtr kept = release();
  send(Failed{std::move(error), std::move(kept)});
}

void Sequence::abandon(Error error) {
  recording_ = false;
  trail_ = Trail();
  kv_.reset();
  send(Failed{std::move(error), nullptr});
}

void Sequence::tell_waits(std::size_t read, Clock::duration patience) {
  if (Clock::now() - last_event_ < patience) {
    return;
  }
  send(Progress{read, request_.prompt.size(), 0});
  if (!listening_) {
    cancel(FinishReason::kCancelled);
  }
}

void Sequence::send(Event event) {
  last_event_ = Clock::now();
  if (listening_) {
    listening_ = request_.sink->send(std::move(event));
  }
}

}  // namespace afterglow
