#include "store/restorer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>

#include "store/clock.h"

namespace afterglow {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// One block on the way, in order of the prompt.
struct Step {
  BlockPtr block;
  std::size_t matched = 0;  // of its tokens
  PagePtr page;             // from the start, or once read
  bool is_new = false;      // found by name, not known to the cache
  // Of a block that was read:
  std::uint64_t file_bytes = 0;
  std::optional<Error> error;
};

}  // namespace

/// A restore under way. The threads that work on it claim steps by a counter;
/// the last to leave finishes it.
struct Restorer::Job {
  explicit Job(RestoreRequest wanted) : request(std::move(wanted)) {}

  RestoreRequest request;
  Clock::time_point begin = Clock::now();

  std::vector<Step> steps;      // whole blocks
  std::optional<Step> partial;  // after them, unless disk has a whole one
  bool asked_disk = false;
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> usable{0};  // steps before the first that failed
  std::atomic<int> workers{0};

  /// Takes over the match. A block that agrees in part and has to be read,
  /// which takes block_seconds, is left out unless that pays.
  void add_matched(double block_seconds);
  /// Whether there is anything to read or to look for.
  bool needs_disk() const;
  bool may_have_next() const;
  /// The name of the full block after the last step.
  /// Requires: may_have_next().
  BlockPtr next_full_block() const;
};

void Restorer::Job::add_matched(double block_seconds) {
  const auto& path = request.match.path();
  std::size_t full =
      std::min(request.match.tokens() / kPageTokens, path.size());
  for (std::size_t i = 0; i < full; ++i) {
    steps.push_back({path[i].block, kPageTokens, path[i].page});
  }
  if (path.size() == full) {
    return;
  }
  std::size_t rest = request.match.tokens() - full * kPageTokens;
  double saved = static_cast<double>(rest) * request.seconds_per_token;
  bool pays = request.seconds_per_token <= 0 || saved > block_seconds;
  if (path[full].page || pays) {
    partial = {path[full].block, rest, path[full].page};
  }
}

bool Restorer::Job::may_have_next() const {
  return request.prompt.size() >= (steps.size() + 1) * kPageTokens;
}

BlockPtr Restorer::Job::next_full_block() const {
  std::size_t start = steps.size() * kPageTokens;
  const BlockId& parent = steps.empty() ? request.root : steps.back().block->id;
  return make_block(
      parent, start, std::span(request.prompt).subspan(start, kPageTokens)
  );
}

bool Restorer::Job::needs_disk() const {
  bool reads = partial && !partial->page;
  for (const Step& step : steps) {
    reads = reads || !step.page;
  }
  return reads || may_have_next();
}

void Restorer::restore(RestoreRequest request) {
  auto job = std::make_shared<Job>(std::move(request));
  job->add_matched(block_seconds_);
  if (job->needs_disk()) {
    job->asked_disk = true;
    threads_.post([this, job] { plan(job); });
    return;
  }
  if (job->partial) {
    job->steps.push_back(std::move(*job->partial));
  }
  Restored restored;
  for (Step& step : job->steps) {
    restored.path.push_back({step.block, step.page});
    restored.tokens += step.matched;
  }
  if (!restored.path.empty()) {
    threads_.post([this, id = restored.path.back().block->id] { touch(id); });
  }
  answer(*job, std::move(restored));
}

void Restorer::plan(const std::shared_ptr<Job>& job) {
  std::size_t matched = job->steps.size();
  while (job->may_have_next()) {
    BlockPtr block = job->next_full_block();
    if (!context_.files->info(context_.file_of(block->id))) {
      break;
    }
    job->steps.push_back({block, kPageTokens, nullptr, true});
  }
  if (job->steps.size() == matched && job->partial) {
    job->steps.push_back(std::move(*job->partial));
  }
  job->usable = job->steps.size();
  auto to_read =
      std::count_if(job->steps.begin(), job->steps.end(), [](const Step& step) {
        return step.page == nullptr;
      });
  int workers = static_cast<int>(std::clamp<std::ptrdiff_t>(
      to_read, 1, static_cast<std::ptrdiff_t>(threads_.threads())
  ));
  job->workers = workers;
  for (int i = 1; i < workers; ++i) {
    threads_.post([this, job] { work(job); });
  }
  work(job);
}

void Restorer::work(const std::shared_ptr<Job>& job) {
  for (;;) {
    std::size_t i = job->next.fetch_add(1);
    if (i >= job->usable || context_.stopping) {
      break;
    }
    Step& step = job->steps[i];
    if (step.page) {
      continue;
    }
    std::shared_ptr<Page> page = context_.pool.make();
    Clock::time_point begin = Clock::now();
    auto head = read_block_twice(context_, step.block->id, *page);
    if (head) {
      step.file_bytes = head->file_bytes;
      step.page = std::move(page);
      measure(seconds_since(begin));
      continue;
    }
    step.error = head.error();
    std::size_t usable = job->usable;
    while (i < usable && !job->usable.compare_exchange_weak(usable, i)) {
    }
  }
  if (job->workers.fetch_sub(1) == 1) {
    finish(*job);
  }
}

void Restorer::finish(Job& job) {
  Restored restored;
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  for (std::size_t i = 0; i < job.usable; ++i) {
    Step& step = job.steps[i];
    if (!step.page) {
      break;  // stopping
    }
    const BlockId& id = step.block->id;
    if (step.file_bytes > 0) {
      bytes += step.file_bytes;
      ++blocks;
      restored.disk_tokens += step.matched;
      if (step.is_new) {
        context_.cache.add_disk_block(
            step.block, step.file_bytes, unix_now_ns()
        );
      }
      step.page = context_.cache.attach_page(id, std::move(step.page));
    }
    restored.path.push_back({step.block, step.page});
    restored.tokens += step.matched;
  }
  context_.count([&](StoreStats& stats) {
    stats.read_blocks += blocks;
    stats.read_bytes += bytes;
  });
  std::optional<BlockId> last;
  if (!restored.path.empty()) {
    last = restored.path.back().block->id;
  }
  for (const Step& step : job.steps) {
    bool is_gone = step.error && (step.error->code == Code::kNotFound ||
                                  step.error->code == Code::kCorrupt);
    if (is_gone && !step.is_new) {
      context_.cache.forget_disk(step.block->id);
    }
  }
  answer(job, std::move(restored));

  // What follows keeps nobody waiting.
  if (last) {
    touch(*last);
  }
  for (const Step& step : job.steps) {
    if (step.error && step.error->code == Code::kCorrupt) {
      damage_.confirm(step.block->id, *step.error);
    } else if (step.error && step.error->code != Code::kNotFound) {
      context_.reading_failed(*step.error);
    }
  }
}

void Restorer::answer(Job& job, Restored restored) {
  restored.seconds = seconds_since(job.begin);
  if (job.asked_disk) {
    context_.count([&](StoreStats& stats) {
      ++stats.restores;
      stats.restore_seconds += restored.seconds;
    });
  }
  job.request.done(std::move(restored));
  job.request.done = nullptr;
  job.request.match = Match();
}

void Restorer::measure(double seconds) {
  constexpr double kWeight = 0.2;
  context_.count([&](StoreStats& stats) {
    stats.read_seconds += seconds;
    double before = block_seconds_;
    block_seconds_ =
        before == 0 ? seconds : before + kWeight * (seconds - before);
  });
}

void Restorer::touch(const BlockId& id) {
  if (context_.stopping) {
    return;
  }
  // A block without a file has no date; one that cannot be dated keeps its
  // old one: an earlier eviction at worst.
  if (auto file = context_.files->open(context_.file_of(id))) {
    (void)(*file)->set_mtime(unix_now_ns());
  }
}

}  // namespace afterglow
