#include "server/answer.h"

#include <utility>
#include <variant>

namespace afterglow {

Answer::Answer(
    const CompletionRequest& request,
    AnswerIdentity identity,
    std::size_t prompt_tokens,
    const Tokenizer& tokenizer
)
    : identity_(std::move(identity)),
      stream_(request.stream),
      include_usage_(request.include_usage),
      prompt_tokens_(prompt_tokens),
      text_(tokenizer, request.stops) {
  if (request.logprobs) {
    logprobs_.emplace(tokenizer, request.chat(), request.top_logprobs > 0);
  }
}

void Answer::on(Event&& event) {
  if (done_) return;
  std::visit([this](const auto& one) { on_event(one); }, event);
}

void Answer::fail(const ApiError& error) {
  if (done_) return;
  done_ = true;
  finish_reason_ = "error";
  if (!head_sent_) {
    output_ = error_output(error);
    return;
  }
  output_.body += "data: " + to_json(error) + "\n\n";
  output_.body += openai::kDone;
  output_.done = true;
}

void Answer::on_event(const Progress& progress) {
  if (!stream_) return;
  begin_stream();
  output_.body += openai::comment(
      "keepalive " + std::to_string(progress.done) + "/" +
      std::to_string(progress.total)
  );
}

void Answer::on_event(const TokenOut& token) {
  if (text_.stopped()) return;  // computed before the cancel took effect
  ++tokens_;
  if (logprobs_) logprobs_->add(token);
  const std::string text = text_.push(token.token);
  if (!stream_) {
    whole_text_ += text;
    return;
  }
  begin_stream();
  if (!text.empty()) send_delta(text);
}

void Answer::on_event(const Finished& finished) {
  const bool stopped_by_text = text_.stopped();
  if (finished.reason == FinishReason::kCancelled && !stopped_by_text) {
    fail(to_api_error(
        {Code::kUnavailable, "[http.answer] the request was cancelled"}
    ));
    return;
  }
  const std::string rest = text_.finish();
  finish_reason_ =
      stopped_by_text || text_.stopped() ? "stop" : to_string(finished.reason);
  timings_ = finished.timings;
  // Tokens computed past a stop string are nobody's.
  if (stopped_by_text) timings_->predicted_n = tokens_;

  Usage usage;
  usage.prompt_tokens = prompt_tokens_;
  usage.completion_tokens = timings_->predicted_n;
  usage.cached_tokens = timings_->cache_n;
  done_ = true;
  if (stream_) {
    begin_stream();
    if (!rest.empty()) send_delta(rest);
    end_stream(usage);
  } else {
    whole_text_ += rest;
    end_whole(usage);
  }
  output_.done = true;
}

void Answer::on_event(const Failed& failed) {
  fail(to_api_error(failed.error));
}

void Answer::begin_stream() {
  if (head_sent_) return;
  head_sent_ = true;
  output_.head.emplace();
  output_.head->content_type = "text/event-stream";
  output_.head->headers.emplace_back("Cache-Control", "no-cache");
  output_.head->headers.emplace_back("X-Request-Id", identity_.id);
  output_.head->streaming = true;
}

void Answer::send_delta(const std::string& text) {
  const openai::json logprobs = logprobs_ ? logprobs_->take() : nullptr;
  output_.body +=
      openai::event(openai::delta(identity_, text, !role_sent_, logprobs));
  role_sent_ = true;
}

void Answer::end_stream(const Usage& usage) {
  const openai::json logprobs = logprobs_ ? logprobs_->take() : nullptr;
  openai::json last =
      openai::last_delta(identity_, !role_sent_, finish_reason_, logprobs);
  if (!include_usage_) last["timings"] = openai::timings(*timings_);
  output_.body += openai::event(last);
  if (include_usage_) {
    openai::json chunk = openai::usage_chunk(identity_, usage);
    chunk["timings"] = openai::timings(*timings_);
    output_.body += openai::event(chunk);
  }
  output_.body += openai::kDone;
}

void Answer::end_whole(const Usage& usage) {
  const openai::json logprobs = logprobs_ ? logprobs_->take() : nullptr;
  openai::json body =
      openai::whole(identity_, whole_text_, finish_reason_, logprobs, usage);
  body["timings"] = openai::timings(*timings_);
  output_.head.emplace();
  output_.head->headers.emplace_back("X-Request-Id", identity_.id);
  output_.body = openai::dump(body);
}

}  // namespace afterglow
