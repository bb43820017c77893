#include <spdlog/sinks/ostream_sink.h>

#include <atomic>
#include <sstream>

#include "base/faulty_file_system.h"
#include "base/memory_file_system.h"
#include "store/testing.h"

namespace afterglow {
namespace {

using namespace testing;

/// Catches what is logged while it lives.
class CapturedLog {
 public:
  CapturedLog() : before_(spdlog::default_logger()) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
  }
  ~CapturedLog() { spdlog::set_default_logger(before_); }

  std::size_t count(std::string_view what) const {
    std::string text = text_.str();
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; ++at) {
      ++found;
    }
    return found;
  }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

std::string file_of(const Process& process, const BlockId& id) {
  return process.folder() + "/" + block_file_name(id);
}

TEST(StoreRestore, WhatRamHasIsAnsweredOnTheSpotAndDatesTheFile) {
  MemoryDisk disk;
  auto files = disk.file_system();
  std::atomic<bool> armed{false};
  std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> calls_of_caller{0};
  Process process(make_faulty_file_system(
      disk.file_system(),
      [&](auto, auto) -> std::optional<Error> {
        calls_of_caller += armed && std::this_thread::get_id() == caller;
        return std::nullopt;
      }
  ));
  auto tokens = make_tokens(kPageTokens + 40, 1);
  process.serve(tokens);
  ASSERT_TRUE(process.flush().complete);
  Match match = process.cache().lookup(root_of(process.key()), tokens);
  ASSERT_EQ(match.tokens(), tokens.size());
  std::string last = file_of(process, match.path().back().block->id);
  ASSERT_TRUE((*files->open(last))->set_mtime(1));

  armed = true;
  std::thread::id answered;
  process.store().restore(
      {.root = root_of(process.key()),
       .prompt = tokens,
       .match = std::move(match),
       .done =
           [&](Restored restored) {
             answered = std::this_thread::get_id();
             EXPECT_EQ(restored.tokens, tokens.size());
             EXPECT_EQ(restored.disk_tokens, 0u);
           }}
  );
  EXPECT_EQ(answered, caller);
  EXPECT_EQ(calls_of_caller, 0);
  EXPECT_TRUE(eventually([&] { return files->info(last)->mtime_ns > 1; }));
  EXPECT_EQ(process.store().stats().restores, 1u);  // the one of serve
}

TEST(StoreRestore, APartOfABlockIsReadOnlyWhenThatSavesTime) {
  MemoryDisk disk;
  auto tokens = make_tokens(2 * kPageTokens, 1);
  {
    Process process(disk.file_system());
    process.serve(tokens);
    ASSERT_TRUE(process.flush().complete);
  }
  auto half = join(
      std::vector<Token>(tokens.begin(), tokens.begin() + kPageTokens + 100),
      make_tokens(20, 2)
  );
  constexpr double kSlow = 1e3;
  constexpr double kFast = 1e-15;
  for (auto [seconds_per_token, reads] :
       {std::pair(kFast, false),
        std::pair(kSlow, true),
        std::pair(0.0, true)}) {
    SCOPED_TRACE(seconds_per_token);
    Process process(disk.file_system());
    ASSERT_TRUE(process.wait_for_index());
    // The first block is whole and measures how long a read takes.
    auto first =
        std::vector<Token>(tokens.begin(), tokens.begin() + kPageTokens);
    EXPECT_EQ(process.restore(first, {}, kFast).tokens, kPageTokens);
    EXPECT_GT(process.store().stats().read_seconds, 0);
    Restored restored = process.restore(half, {}, seconds_per_token);
    EXPECT_EQ(restored.tokens, kPageTokens + (reads ? 100 : 0));
    EXPECT_EQ(process.store().stats().read_blocks, reads ? 2u : 1u);
    // What is in RAM is used whatever it would have cost.
    process.restore(tokens);
    EXPECT_EQ(process.restore(half, {}, kFast).tokens, kPageTokens + 100);
  }
}

TEST(StoreRestore, ReadErrorsAreCountedAndLoggedOnceAMinute) {
  MemoryDisk disk;
  auto tokens = make_tokens(kPageTokens, 1);
  {
    Process process(disk.file_system());
    process.serve(tokens);
    ASSERT_TRUE(process.flush().complete);
  }
  CapturedLog log;
  std::atomic<int> code{-1};
  {
    Process process(make_faulty_file_system(
        disk.file_system(),
        [&](auto operation, auto name) -> std::optional<Error> {
          bool fails = code >= 0 && operation == "read" &&
                       name.ends_with(".safetensors");
          return fails ? std::optional(Error{
                             static_cast<Code>(code.load()), "[test] unlucky"})
                       : std::nullopt;
        }
    ));
    ASSERT_TRUE(process.wait_for_index());
    for (Code kind : {Code::kIo, Code::kExhausted}) {
      code = static_cast<int>(kind);
      for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(process.restore(tokens).tokens, 0u);
      }
    }
    EXPECT_TRUE(eventually([&] {
      return process.store().stats().read_errors == 10;
    }));
    code = -1;
    EXPECT_EQ(process.restore(tokens).tokens, tokens.size());
  }
  EXPECT_EQ(log.count("[test] unlucky"), 2u);
}

TEST(StoreRestore, AMissingBlockIsNoError) {
  MemoryDisk disk;
  auto files = disk.file_system();
  auto tokens = make_tokens(kPageTokens, 1);
  {
    Process process(disk.file_system());
    process.serve(tokens);
    ASSERT_TRUE(process.flush().complete);
  }
  Process process(disk.file_system());
  ASSERT_TRUE(process.wait_for_index());
  ASSERT_TRUE(files->remove(
      process.folder() + "/" + list(*files, process.folder()).front()
  ));
  EXPECT_EQ(process.restore(tokens).tokens, 0u);
  EXPECT_EQ(process.restore(tokens).tokens, 0u);
  EXPECT_EQ(process.store().stats().read_errors, 0u);
  EXPECT_TRUE(process.cache().durable_blocks().empty());
}

}  // namespace
}  // namespace afterglow
