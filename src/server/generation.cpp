#include "server/generation.h"

#include <spdlog/spdlog.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/answer.h"
#include "server/generation_mailbox.h"
#include "server/log_value.h"

namespace afterglow {
namespace {

class Generation : public Exchange {
 public:
  Generation(
      Engine& engine,
      Workers& workers,
      CompletionRequest request,
      RequestOwner owner
  )
      : workers_(workers),
        mailbox_(std::make_shared<GenerationMailbox>(
            engine, std::move(request), std::move(owner)
        )),
        cancelled_(mailbox_->choices()) {}

  ~Generation() override {
    if (!done_) {
      spdlog::info("request id={} finish=cancelled", mailbox_->id());
    }
    mailbox_->close();
    mailbox_->cancel_all();
  }

  void start(std::function<void()> wake) override {
    mailbox_->open(std::move(wake));
    workers_.post(mailbox_->client(), [mailbox = mailbox_] { mailbox->run(); });
  }

  Output take() override {
    if (done_) return std::exchange(last_, {});
    GenerationMailbox::Mail mail = mailbox_->take();
    if (mail.answer) answer_ = std::move(mail.answer);
    if (mail.failure) {
      fail(*mail.failure);
      return std::exchange(last_, {});
    }
    if (!answer_) return {};
    for (auto& [choice, event] : mail.events) {
      answer_->on(choice, std::move(event));
    }
    if (answer_->done()) {
      done_ = true;
      if (answer_->error()) {
        mailbox_->cancel_all();
        log(*answer_->error());
      } else {
        log();
      }
    } else {
      cancel_stopped();
    }
    return answer_->take_output();
  }

  void fail(const ApiError& error) override {
    if (done_) return;
    done_ = true;
    mailbox_->cancel_all();
    if (answer_) {
      answer_->fail(error);
      last_ = answer_->take_output();
    } else {
      last_ = error_output(error);
      last_.head->headers.emplace_back("X-Request-Id", mailbox_->id());
    }
    log(error);
  }

 private:
  void cancel_stopped() {
    for (std::size_t i = 0; i < cancelled_.size(); ++i) {
      if (cancelled_[i] || !answer_->stopped(i)) continue;
      cancelled_[i] = true;
      mailbox_->cancel(i, FinishReason::kStop);
    }
  }

  /// What is wrong with a request may quote it, and is its client's to know.
  void log(const ApiError& error) const {
    const bool ours = error.status >= 500;
    spdlog::log(
        ours ? spdlog::level::warn : spdlog::level::info,
        "request id={} finish=error status={}{}{}",
        mailbox_->id(),
        error.status,
        fault_for_log(error),
        ours ? " error=" + log_value(text_for_log(error)) : ""
    );
  }

  void log() const {
    const Timings timings = answer_->timings();
    spdlog::info(
        "request id={} choices={} finish={} prompt_n={} cache_ram_n={} "
        "cache_disk_n={} predicted_n={} queue_ms={:.1f} restore_ms={:.1f} "
        "prompt_ms={:.1f} predicted_ms={:.1f}",
        mailbox_->id(),
        mailbox_->choices(),
        answer_->finish_reason(),
        timings.prompt_n,
        timings.cache_ram_n,
        timings.cache_disk_n,
        timings.predicted_n,
        timings.queue_ms,
        timings.restore_ms,
        timings.prompt_ms,
        timings.predicted_ms
    );
  }

  Workers& workers_;
  const std::shared_ptr<GenerationMailbox> mailbox_;
  std::unique_ptr<Answer> answer_;
  std::vector<bool> cancelled_;  // choices
  bool done_ = false;
  Output last_;  // of a failure
};

}  // namespace

std::unique_ptr<Exchange> make_generation(
    Engine& engine,
    Workers& workers,
    CompletionRequest request,
    RequestOwner owner
) {
  return std::make_unique<Generation>(
      engine, workers, std::move(request), std::move(owner)
  );
}

}  // namespace afterglow
