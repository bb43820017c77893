#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "afterglow/generate.h"
#include "api/generation.h"
#include "api/history_state.h"
#include "api/raise.h"
#include "api/request_builder.h"

namespace afterglow {
namespace {

GenerationRequest to_request(
    const Model& model, const Prompt& prompt, const StepOptions& options
) {
  GenerationRequest request =
      build_request(model, prompt, options.cache_history);
  request.max_tokens = options.max_tokens;
  request.return_history = true;
  return request;
}

}  // namespace

class LogitsStream::Impl {
 public:
  Impl(const Model& model, const Prompt& prompt, StepOptions options)
      : options_(std::move(options)), vocab_size_(model.info().vocab_size) {
    GenerationRequest request = to_request(model, prompt, options_);
    tokens_ = request.prompt;
    generation_ = std::make_shared<Generation>(
        model.state(),
        std::move(request),
        /*caller_chooses=*/true,
        options_.cancel
    );
  }
  ~Impl() {
    // Histories that were given out may keep it.
    generation_->cancel(FinishReason::kCancelled);
  }

  bool work(const Generation::Deadline& deadline) {
    while (!logits_ && !error_) {
      auto happening = generation_->next(deadline);
      if (!happening) return false;
      try {
        std::visit([this](auto& one) { on(one); }, *happening);
      } catch (...) {
        generation_->cancel(FinishReason::kCancelled);
        throw;
      }
    }
    return true;
  }

  std::shared_ptr<std::vector<float>> logits() {
    work(std::nullopt);
    if (error_) raise(*error_);
    return logits_;
  }

  void accept(Token token) {
    if (!logits_) {
      raise(
          {Code::kInvalidArgument,
           "[generate_step] a token is accepted before its logits were there"}
      );
    }
    if (token < 0 || static_cast<std::size_t>(token) >= vocab_size_) {
      raise(
          {Code::kInvalidArgument,
           "[generate_step] token " + std::to_string(token) +
               " is not in the vocabulary of " + std::to_string(vocab_size_)}
      );
    }
    logits_.reset();
    tokens_.push_back(token);
    TokenOut out;
    out.token = token;
    generation_->choose(std::move(out));
  }

  const std::vector<Token>& tokens() const { return tokens_; }
  std::size_t cached_tokens() const { return cached_; }
  CacheHistory history() const {
    if (computed_ == 0) {
      raise(
          {Code::kInvalidArgument,
           "[generate_step] there is no history before the first logits"}
      );
    }
    return CacheHistory(
        std::make_shared<const HistoryState>(generation_, computed_)
    );
  }

 private:
  void on(const Progress& progress) {
    cached_ = progress.cached;
    if (options_.prompt_progress_callback) {
      options_.prompt_progress_callback(progress.done, progress.total);
    }
  }
  void on(Generation::Logits& logits) {
    logits_ = std::make_shared<std::vector<float>>(std::move(logits));
    computed_ = tokens_.size();
  }
  void on(const TokenOut&) {}  // the one that was accepted
  void on(const Finished& finished) {
    error_ = finished.reason == FinishReason::kLength
                 ? Error{Code::kInvalidArgument,
                         "[generate_step] max_tokens are accepted, or the "
                         "model's context is full"}
                 : Error{Code::kCancelled, "[generate_step] cancelled"};
  }
  void on(const Failed& failed) { error_ = failed.error; }

  const StepOptions options_;
  const std::size_t vocab_size_;
  std::vector<Token> tokens_;
  std::size_t cached_ = 0;
  std::size_t computed_ = 0;  // of tokens_, those with KV
  std::shared_ptr<Generation> generation_;
  std::shared_ptr<std::vector<float>> logits_;
  std::optional<Error> error_;
};

LogitsStream::LogitsStream(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
LogitsStream::~LogitsStream() = default;
LogitsStream::LogitsStream(LogitsStream&& other) noexcept = default;
LogitsStream& LogitsStream::operator=(LogitsStream&& other) noexcept = default;

std::shared_ptr<std::vector<float>> LogitsStream::logits() {
  return impl_->logits();
}
bool LogitsStream::wait_for(std::chrono::milliseconds at_most) {
  return impl_->work(Generation::after(at_most));
}
void LogitsStream::accept(Token token) {
  impl_->accept(token);
}
const std::vector<Token>& LogitsStream::tokens() const {
  return impl_->tokens();
}
std::size_t LogitsStream::cached_tokens() const {
  return impl_->cached_tokens();
}
CacheHistory LogitsStream::cache_history() const {
  return impl_->history();
}

LogitsStream generate_step(
    const Model& model, const Prompt& prompt, const StepOptions& options
) {
  return LogitsStream(
      std::make_unique<LogitsStream::Impl>(model, prompt, options)
  );
}

}  // namespace afterglow
