#include "api/generation.h"

#include "api/raise.h"

namespace afterglow {

Generation::Generation(
    std::shared_ptr<ModelState> model,
    GenerationRequest request,
    bool caller_chooses,
    std::stop_token stop
)
    : model_(std::move(model)) {
  request.sink = inbox_;
  if (caller_chooses) request.logits_sink = inbox_;
  id_ = require(model_->engine().submit(std::move(request)), "generate");
  on_stop_.emplace(std::move(stop), Cut{this});
}

KvHistoryPtr Generation::history() {
  if (!inbox_->ended()) {
    if (KvHistoryPtr so_far = model_->engine().history(id_)) return so_far;
  }
  return inbox_->wait_for_history();  // it has just ended, or soon will
}

bool Generation::Inbox::send(Event event) {
  return std::visit(
      [this](auto&& one) { return add(std::move(one)); }, std::move(event)
  );
}

bool Generation::Inbox::send_logits(Logits logits) {
  return add(std::move(logits));
}

bool Generation::Inbox::add(Happening happening) {
  const std::lock_guard lock(mutex_);
  if (const auto* finished = std::get_if<Finished>(&happening)) {
    history_ = finished->history;
    ended_ = true;
  } else if (const auto* failed = std::get_if<Failed>(&happening)) {
    history_ = failed->history;
    ended_ = true;
  }
  waiting_.push_back(std::move(happening));
  changed_.notify_all();
  return true;
}

std::optional<Generation::Happening> Generation::Inbox::next(
    const Deadline& deadline
) {
  std::unique_lock lock(mutex_);
  const auto any = [this] { return !waiting_.empty(); };
  if (!deadline) {
    changed_.wait(lock, any);
  } else if (!changed_.wait_until(lock, *deadline, any)) {
    return std::nullopt;
  }
  Happening happening = std::move(waiting_.front());
  waiting_.pop_front();
  return happening;
}

bool Generation::Inbox::ended() {
  const std::lock_guard lock(mutex_);
  return ended_;
}

KvHistoryPtr Generation::Inbox::wait_for_history() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_; });
  return history_;
}

}  // namespace afterglow
