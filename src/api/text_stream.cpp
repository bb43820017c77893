#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "afterglow/generate.h"
#include "api/generation.h"
#include "api/history_state.h"
#include "api/progress_bar.h"
#include "api/raise.h"
#include "api/request_builder.h"
#include "api/token_chooser.h"
#include "api/verbose.h"
#include "base/memory_size.h"
#include "engine/text_assembler.h"

namespace afterglow {
namespace {

using Clock = std::chrono::steady_clock;

GenerationRequest to_request(
    const Model& model, const Prompt& prompt, const GenerateOptions& options
) {
  GenerationRequest request =
      build_request(model, prompt, options.cache_history);
  request.sampling = options.sampling;
  request.max_tokens = options.max_tokens;
  request.stop_tokens = model.info().stop_tokens;
  request.stop_tokens.insert(
      request.stop_tokens.end(),
      options.stop_tokens.begin(),
      options.stop_tokens.end()
  );
  request.logprobs = options.logprobs;
  request.top_logprobs = options.top_logprobs;
  request.return_history = options.return_cache;
  return request;
}

void check(const GenerateOptions& options) {
  if (std::ranges::any_of(options.stop, &std::string::empty)) {
    raise({Code::kInvalidArgument, "[generate] a stop text is empty"});
  }
  if (options.top_logprobs > 0 && !options.logprobs) {
    raise({Code::kInvalidArgument, "[generate] top_logprobs needs logprobs"});
  }
}

double per_second(std::size_t count, double ms) {
  return ms > 0 ? 1000.0 * static_cast<double>(count) / ms : 0;
}

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start)
      .count();
}

}  // namespace

class TextStream::Impl {
 public:
  Impl(const Model& model, const Prompt& prompt, GenerateOptions options)
      : options_(std::move(options)),
        text_(model.state()->engine().tokenizer(), options_.stop) {
    GenerationRequest request = to_request(model, prompt, options_);
    const bool choose = TokenChooser::needed(options_);
    if (choose) tokens_ = request.prompt;
    so_far_.prompt_tokens = request.prompt.size();
    limit_ = std::min(
        options_.max_tokens,
        model.info().context_length -
            std::min(model.info().context_length, request.prompt.size())
    );
    generation_ = std::make_shared<Generation>(
        model.state(), std::move(request), choose, options_.cancel
    );
    if (choose) chooser_.emplace(options_);
  }
  ~Impl() { end(); }

  /// Works until an output is ready, the end, or the deadline. False: then.
  bool work(const Generation::Deadline& deadline) {
    while (!ready_ && !over_) {
      auto happening = generation_->next(deadline);
      if (!happening) return false;
      try {
        std::visit([this](auto& one) { on(one); }, *happening);
      } catch (...) {
        end();
        throw;
      }
    }
    return true;
  }

  /// The output that is ready. None: there is no more, which is the time for
  /// statistics, all text being with the caller.
  std::optional<StepOutput> take() {
    if (!ready_ && statistics_) {
      print_statistics(*statistics_, any_text_);
      statistics_.reset();
    }
    return std::exchange(ready_, {});
  }

 private:
  void on(const Progress& progress) {
    so_far_.cached_tokens = progress.cached;
    if (options_.verbose) bar_.show(progress.done, progress.total);
    if (options_.prompt_progress_callback) {
      options_.prompt_progress_callback(progress.done, progress.total);
    }
    if (progress.done == progress.total) {
      so_far_.prompt_tps = per_second(
          progress.total - progress.cached, milliseconds_since(began_)
      );
      began_ = Clock::now();
    }
  }

  void on(Generation::Logits& logits) {
    if (text_.stopped()) return;  // nobody is to choose any more
    generation_->choose(chooser_->choose(tokens_, std::move(logits)));
  }

  void on(TokenOut& token) {
    if (chooser_) tokens_.push_back(token.token);
    if (text_.stopped()) return;  // computed before the engine knew
    ++so_far_.generation_tokens;
    so_far_.text += text_.push(token.token);
    so_far_.token = token.token;
    so_far_.logprob = token.logprob;
    so_far_.top_logprobs = std::move(token.top_logprobs);
    if (text_.stopped()) {
      generation_->cancel(FinishReason::kStop);
    } else if (so_far_.generation_tokens < limit_) {
      so_far_.generation_tps =
          per_second(so_far_.generation_tokens, milliseconds_since(began_));
      give(generation_, all_tokens() - 1);
    }
    // The last one waits for the reason of the end.
  }

  void on(const Finished& finished) {
    so_far_.text += text_.finish();
    so_far_.finish_reason =
        text_.stopped() ? FinishReason::kStop : finished.reason;
    if (finished.stop_token && !text_.stopped()) {
      so_far_.token = *finished.stop_token;
    }
    const Timings& timings = finished.timings;
    so_far_.cached_tokens = timings.cache_n;
    so_far_.prompt_tps = per_second(timings.prompt_n, timings.prompt_ms);
    so_far_.generation_tps =
        per_second(timings.predicted_n, timings.predicted_ms);
    give(finished.history, all_tokens());
    end();
    if (options_.verbose) statistics_ = *ready_;
  }

  void on(const Failed& failed) { raise(failed.error); }

  std::size_t all_tokens() const {
    return so_far_.prompt_tokens + so_far_.generation_tokens;
  }

  template <class Source>
  void give(const Source& source, std::size_t length) {
    any_text_ = any_text_ || !so_far_.text.empty();
    if (any_text_) bar_.clear();
    so_far_.peak_memory = peak_memory();
    ready_ = so_far_;
    if (options_.return_cache && source) {
      ready_->cache_history =
          CacheHistory(std::make_shared<const HistoryState>(source, length));
    }
    so_far_.text.clear();
    so_far_.token = kUnknownToken;
    so_far_.logprob = 0;
    so_far_.top_logprobs.clear();
  }

  void end() {
    over_ = true;
    bar_.clear();
    // Histories that were given out may keep it.
    if (generation_) generation_->cancel(FinishReason::kCancelled);
    generation_.reset();
  }

  GenerateOptions options_;
  TextAssembler text_;
  std::vector<Token> tokens_;  // for a chooser
  std::optional<TokenChooser> chooser_;
  std::shared_ptr<Generation> generation_;
  ProgressBar bar_;
  std::size_t limit_ = 0;
  StepOutput so_far_;  // of the next output
  std::optional<StepOutput> ready_;
  std::optional<StepOutput> statistics_;  // of the whole, to be printed
  bool any_text_ = false;
  bool over_ = false;
  Clock::time_point began_ = Clock::now();
};

TextStream::TextStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TextStream::~TextStream() = default;
TextStream::TextStream(TextStream&& other) noexcept = default;
TextStream& TextStream::operator=(TextStream&& other) noexcept = default;

std::optional<StepOutput> TextStream::next() {
  impl_->work(std::nullopt);
  return impl_->take();
}

bool TextStream::wait_for(std::chrono::milliseconds at_most) {
  return impl_->work(Generation::after(at_most));
}

TextStream stream_generate(
    const Model& model, const Prompt& prompt, const GenerateOptions& options
) {
  check(options);
  return TextStream(std::make_unique<TextStream::Impl>(model, prompt, options));
}

StepOutput generate(
    const Model& model, const Prompt& prompt, const GenerateOptions& options
) {
  TextStream stream = stream_generate(model, prompt, options);
  std::string text;
  StepOutput last;
  while (auto output = stream.next()) {
    if (options.verbose) {
      std::fwrite(output->text.data(), 1, output->text.size(), stdout);
      if (output->finish_reason) std::printf("\n");
      std::fflush(stdout);
    }
    text += output->text;
    last = *std::move(output);
  }
  last.text = std::move(text);
  return last;
}

}  // namespace afterglow
