#include "server/answer.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace afterglow {

Answer::Answer(
    const CompletionRequest& request,
    AnswerIdentity identity,
    const AnswerReading& reading,
    const std::vector<PreparedPrompt>& prompts,
    const Tokenizer& tokenizer
)
    : identity_(std::move(identity)),
      stream_(request.stream),
      include_usage_(request.include_usage),
      choices_of_a_prompt_(request.n) {
  for (const PreparedPrompt& prompt : prompts) {
    prompt_tokens_ += prompt.tokens.size();
    for (std::size_t i = 0; i < request.n; ++i) {
      parts_.push_back({Choice(request, reading, prompt.begins, tokenizer)});
    }
  }
}

void Answer::on(std::size_t choice, Event&& event) {
  Part& part = parts_[choice];
  if (done_ || part.choice.finished()) return;
  std::visit([&](const auto& one) { on_event(part, one); }, event);
}

void Answer::fail(const ApiError& error) {
  if (done_) return;
  done_ = true;
  error_ = error;
  if (!head_sent_) {
    output_ = error_output(error);
    output_.head->headers.emplace_back("X-Request-Id", identity_.id);
    return;
  }
  output_.body += "data: " + to_json(error) + "\n\n";
  output_.body += openai::kDone;
  output_.done = true;
}

void Answer::on_event(Part&, const Progress& progress) {
  if (!stream_) return;
  begin_stream();
  output_.body += openai::comment(
      "keepalive " + std::to_string(progress.done) + "/" +
      std::to_string(progress.total)
  );
}

void Answer::on_event(Part& part, const TokenOut& token) {
  part.choice.add(token);
  if (stream_) send_delta(part);
}

void Answer::on_event(Part& part, const Finished& finished) {
  if (finished.reason == FinishReason::kCancelled && !part.choice.stopped()) {
    // Not by its client: only an engine that stops does that.
    fail(stopping_error());
    return;
  }
  part.choice.finish(finished);
  done_ = std::all_of(parts_.begin(), parts_.end(), [](const Part& one) {
    return one.choice.finished();
  });
  if (stream_) {
    send_delta(part);
    send_end(part);
  }
  if (!done_) return;
  if (stream_) {
    end_stream();
  } else {
    end_whole();
  }
  output_.done = true;
}

void Answer::on_event(Part&, const Failed& failed) {
  fail(to_api_error(failed.error));
}

std::size_t Answer::index_of(const Part& part) const {
  return static_cast<std::size_t>(&part - parts_.data());
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

void Answer::send_delta(Part& part) {
  begin_stream();
  const ChoiceDelta delta = part.choice.take();
  if (delta.empty()) return;
  output_.body += openai::event(openai::chunk(
      identity_,
      index_of(part),
      delta,
      !part.role_sent,
      {},
      part.choice.take_logprobs()
  ));
  part.role_sent = true;
}

void Answer::send_end(Part& part) {
  openai::json last = openai::chunk(
      identity_,
      index_of(part),
      {},
      !part.role_sent,
      part.choice.finish_reason(),
      part.choice.take_logprobs()
  );
  part.role_sent = true;
  if (done_ && !include_usage_) last["timings"] = openai::timings(timings());
  output_.body += openai::event(last);
}

void Answer::end_stream() {
  if (include_usage_) {
    openai::json chunk = openai::usage_chunk(identity_, usage());
    chunk["timings"] = openai::timings(timings());
    output_.body += openai::event(chunk);
  }
  output_.body += openai::kDone;
}

void Answer::end_whole() {
  openai::json choices = openai::json::array();
  for (Part& part : parts_) {
    choices.push_back(openai::whole_choice(
        identity_,
        index_of(part),
        part.choice.take(),
        part.choice.finish_reason(),
        part.choice.take_logprobs()
    ));
  }
  openai::json body = openai::whole(identity_, std::move(choices), usage());
  body["timings"] = openai::timings(timings());
  output_.head.emplace();
  output_.head->headers.emplace_back("X-Request-Id", identity_.id);
  output_.body = openai::dump(body);
}

Usage Answer::usage() const {
  const Timings all = timings();
  return {
      .prompt_tokens = prompt_tokens_,
      .completion_tokens = all.predicted_n,
      .cached_tokens = all.cache_n,
  };
}

const std::string& Answer::finish_reason() const {
  return parts_.front().choice.finish_reason();
}

Timings Answer::timings() const {
  Timings all;
  for (const Part& part : parts_) {
    const Timings& one = part.choice.timings();
    if (index_of(part) % choices_of_a_prompt_ == 0) {
      all.cache_n += one.cache_n;
      all.cache_ram_n += one.cache_ram_n;
      all.cache_disk_n += one.cache_disk_n;
      all.prompt_n += one.prompt_n;
      all.cache_store = one.cache_store;
      all.queue_ms = std::max(all.queue_ms, one.queue_ms);
      all.restore_ms = std::max(all.restore_ms, one.restore_ms);
      all.prompt_ms = std::max(all.prompt_ms, one.prompt_ms);
    }
    all.predicted_n += one.predicted_n;
    all.predicted_ms = std::max(all.predicted_ms, one.predicted_ms);
  }
  return all;
}

}  // namespace afterglow
