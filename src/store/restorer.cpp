#include "store/restorer.h"

#include <spdlog/spdlog.h>

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
  BlockId root;
  std::vector<Token> prompt;
  Match match;
  std::function<void(Restored)> done;
  Clock::time_point begin = Clock::now();

  std::vector<Step> steps;
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> usable{0};  // steps before the first that failed
  std::atomic<int> workers{0};

  /// Takes over the match: whole blocks, then the next ones by name, or the
  /// last block of the match if it agrees in part.
  void add_matched();
  bool needs_disk() const;
  /// The name of the full block after the last step; null when the prompt
  /// has no such block.
  BlockPtr next_full_block() const;
};

void Restorer::Job::add_matched() {
  const auto& path = match.path();
  std::size_t full = std::min(match.tokens() / kPageTokens, path.size());
  for (std::size_t i = 0; i < full; ++i) {
    steps.push_back({path[i].block, kPageTokens, path[i].page});
  }
}

BlockPtr Restorer::Job::next_full_block() const {
  std::size_t start = steps.size() * kPageTokens;
  if (prompt.size() < start + kPageTokens) {
    return nullptr;
  }
  const BlockId& parent = steps.empty() ? root : steps.back().block->id;
  return make_block(
      parent, start, std::span(prompt).subspan(start, kPageTokens)
  );
}

bool Restorer::Job::needs_disk() const {
  std::size_t covered = 0;
  for (const PathBlock& block : match.path()) {
    if (!block.page) {
      return true;
    }
    covered += block.block->full() ? kPageTokens : 0;
  }
  // A further full block may be on disk under its name.
  std::size_t full = match.tokens() / kPageTokens * kPageTokens;
  return prompt.size() - std::min(prompt.size(), full) >= kPageTokens;
}

void Restorer::restore(
    const BlockId& root,
    std::vector<Token> prompt,
    Match match,
    std::function<void(Restored)> done
) {
  auto job = std::make_shared<Job>();
  job->root = root;
  job->prompt = std::move(prompt);
  job->match = std::move(match);
  job->done = std::move(done);
  if (job->needs_disk()) {
    threads_.post([this, job] { plan(job); });
    return;
  }
  Restored restored;
  restored.path = job->match.path();
  restored.tokens = job->match.tokens();
  if (!restored.path.empty()) {
    threads_.post([this, id = restored.path.back().block->id] { touch(id); });
  }
  job->done(std::move(restored));
}

void Restorer::plan(const std::shared_ptr<Job>& job) {
  job->add_matched();
  std::size_t matched = job->steps.size();
  while (BlockPtr block = job->next_full_block()) {
    if (!context_.files->info(context_.file_of(block->id))) {
      break;
    }
    job->steps.push_back({block, kPageTokens, nullptr, true});
  }
  const auto& path = job->match.path();
  if (job->steps.size() == matched && path.size() > matched) {
    std::size_t rest = job->match.tokens() - matched * kPageTokens;
    job->steps.push_back({path[matched].block, rest, path[matched].page});
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
    auto head = read_block_twice(context_, step.block->id, *page);
    if (head) {
      step.file_bytes = head->file_bytes;
      step.page = std::move(page);
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
  restored.seconds = seconds_since(job.begin);
  context_.count([&](StoreStats& stats) {
    stats.read_blocks += blocks;
    stats.read_bytes += bytes;
    stats.read_seconds += blocks > 0 ? restored.seconds : 0;
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
  job.done(std::move(restored));
  job.done = nullptr;
  job.match = Match();

  // What follows keeps nobody waiting.
  if (last) {
    touch(*last);
  }
  for (const Step& step : job.steps) {
    if (step.error && step.error->code == Code::kCorrupt) {
      damage_.confirm(step.block->id, *step.error);
    } else if (step.error && step.error->code != Code::kNotFound) {
      spdlog::warn("[store.read] {}", step.error->message);
    }
  }
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
