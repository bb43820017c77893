#include "engine/cache_import.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/collector.h"
#include "engine/fake_runner.h"
#include "engine/scheduler.h"

namespace afterglow {
namespace {

/// The KV that the fake model keeps for the tokens, as blocks of 256.
class FakeKv : public KvSource {
 public:
  explicit FakeKv(const Tokens& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i % kPageTokens == 0) {
        k_.emplace_back(kPageTokens);
        v_.emplace_back(kPageTokens);
      }
      k_.back()[i % kPageTokens] = static_cast<float>(tokens[i]);
      v_.back()[i % kPageTokens] = -static_cast<float>(tokens[i]);
    }
  }
  Result<Part> read(std::size_t block, std::size_t) override {
    return Part{
        std::as_bytes(std::span(k_[block])),
        std::as_bytes(std::span(v_[block])),
        kPageTokens};
  }

 private:
  std::vector<std::vector<float>> k_;
  std::vector<std::vector<float>> v_;
};

class Import : public ::testing::Test {
 protected:
  Import()
      : cache_(runner_.layout().page_bytes(), limits(), /*with_disk=*/false),
        scheduler_(runner_, cache_, nullptr, SchedulerOptions{}),
        thread_([this] { scheduler_.run(); }) {
    directory_ = std::filesystem::temp_directory_path() /
                 ("import_" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
  }
  ~Import() override {
    scheduler_.stop();
    thread_.join();
    std::filesystem::remove_all(directory_);
  }

  static CacheLimits limits() {
    CacheLimits limits;
    limits.ram_bytes = 8 * FakeRunner().layout().page_bytes();
    return limits;
  }

  std::string path() const { return (directory_ / "f.safetensors").string(); }

  /// Writes a file whose stamp and KV may be of different tokens.
  std::string write(
      const Tokens& named, const Tokens& kept, std::uint8_t spec = 0
  ) {
    FakeKv source(kept);
    MlxCacheStamp stamp;
    stamp.spec.fill(spec);
    stamp.tokens = named;
    EXPECT_TRUE(replace_user_file(path(), [&](File& file) {
      return write_mlx_cache_file(file, runner_.layout(), stamp, {}, source);
    }));
    return path();
  }

  CacheImporter importer() {
    return CacheImporter(
        cache_,
        runner_.pool(),
        {{},
         {},
         FakeRunner::kVocab,
         runner_.context_length(),
         runner_.layout(),
         0},
        [this](auto task) { return scheduler_.post(std::move(task)); }
    );
  }
  std::string refusal(const CacheImport& request) {
    auto imported = importer().import(request);
    EXPECT_TRUE(cache_.entries().empty());
    return imported ? "imported" : imported.error().message;
  }

  Timings ask(const Tokens& prompt, const std::string& name_space = "") {
    auto sink = std::make_shared<Collector>();
    GenerationRequest request;
    request.prompt = prompt;
    request.max_tokens = 4;
    request.cache_namespace = name_space;
    request.sink = sink;
    EXPECT_TRUE(scheduler_.submit(std::move(request)));
    EXPECT_TRUE(sink->wait());
    EXPECT_EQ(sink->tokens(), FakeRunner::answer(prompt, 4));
    return sink->finished()->timings;
  }
  BlockId imported_root() const {
    return scheduler_.root_of(std::string(kImportedNamespace));
  }

  FakeRunner runner_;
  PromptCache cache_;
  Scheduler scheduler_;
  std::thread thread_;
  std::filesystem::path directory_;
};

TEST_F(Import, OwnFileServesAsIfComputedHere) {
  Tokens prompt = random_tokens(700, 1);
  std::size_t before = runner_.computed_tokens;
  auto imported = importer().import({write(prompt, prompt), {}, false});
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_TRUE(imported->is_own);
  EXPECT_EQ(imported->difference.tokens, 0u);
  EXPECT_EQ(runner_.computed_tokens, before);
  EXPECT_EQ(imported->entry.length, 700u);
  EXPECT_TRUE(imported->entry.pinned);
  EXPECT_EQ(imported->entry.root, scheduler_.root_of(""));
  EXPECT_EQ(cache_.entries().size(), 1u);
  EXPECT_EQ(ask(prompt + random_tokens(20, 2)).cache_n, 700u);
}

TEST_F(Import, AnothersFileLiesBelowARootOfItsOwnAndIsFoundThere) {
  Tokens prompt = random_tokens(700, 1);
  auto imported = importer().import({write(prompt, prompt, 7), {}, false});
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_FALSE(imported->is_own);
  EXPECT_EQ(imported->difference.tokens, 512u);
  EXPECT_EQ(imported->difference.worst, 0);
  EXPECT_EQ(imported->entry.root, imported_root());

  // What follows lies below the same root, and is found by the next turn.
  Tokens first = prompt + random_tokens(20, 2);
  EXPECT_EQ(ask(first).cache_n, 700u);
  Tokens second = first + FakeRunner::answer(first, 4) + random_tokens(9, 3);
  EXPECT_EQ(ask(second).cache_n, 723u);
  EXPECT_EQ(cache_.entries(scheduler_.root_of("")).size(), 0u);

  // A prompt that the plain root knows better goes on there.
  Tokens other =
      Tokens(prompt.begin(), prompt.begin() + 300) + random_tokens(300, 4);
  EXPECT_EQ(ask(random_tokens(300, 5)).cache_n, 0u);
  EXPECT_EQ(ask(random_tokens(300, 5)).cache_n, 299u);
  EXPECT_EQ(cache_.entries(scheduler_.root_of("")).size(), 1u);
  EXPECT_EQ(ask(other).cache_n, 300u);
}

TEST_F(Import, OtherNamespacesDoNotSeeIt) {
  Tokens prompt = random_tokens(300, 1);
  ASSERT_TRUE(importer().import({write(prompt, prompt, 7), {}, false}));
  EXPECT_EQ(ask(prompt + Tokens{1}, "tenant").cache_n, 0u);
  EXPECT_EQ(ask(prompt + Tokens{1}).cache_n, 300u);
}

TEST_F(Import, OneWrongTokenInASampledPlaceIsRefused) {
  // 1,000 tokens: windows of 32 from about every 64th on, the last at 968.
  Tokens prompt = random_tokens(1000, 1);
  for (std::size_t at : {0, 31, 64, 530, 968, 999}) {
    Tokens wrong = prompt;
    wrong[at] = wrong[at] < 48 ? 96 : 1;
    std::string message = refusal({write(wrong, prompt, 7), wrong, false});
    EXPECT_NE(
        message.find("is not this model's cache of this prompt: computed "
                     "again, the "),
        std::string::npos
    ) << at
      << message;
    EXPECT_NE(
        message.find("of token " + std::to_string(at) + " in layer 0"),
        std::string::npos
    ) << message;
  }
}

TEST_F(Import, AllTokensAreComparedOnDemand) {
  Tokens prompt = random_tokens(1000, 1);
  Tokens wrong = prompt;
  wrong[40] = wrong[40] < 40 ? 90 : 5;  // between two windows
  std::string path = write(wrong, prompt, 7);
  EXPECT_NE(
      refusal({path, {}, true}).find("of token 40 in layer 0"),
      std::string::npos
  );
  EXPECT_TRUE(importer().import({path, {}, false}));
}

TEST_F(Import, WhatDoesNotFitIsNamed) {
  Tokens prompt = random_tokens(300, 1);
  std::string head = "[engine.import] " + path() + ": ";
  Tokens longer = prompt + Tokens{1};
  EXPECT_EQ(
      refusal({write(prompt, prompt, 7), longer, false}),
      head +
          "holds 300 tokens, but the prompt has 301; give the prompt that "
          "it was made with"
  );
  Tokens other = prompt;
  other[5] = other[5] == 1 ? 2 : 1;
  EXPECT_EQ(
      refusal({write(prompt, prompt, 7), other, false}),
      head + "names other tokens than those of the prompt"
  );
  Tokens foreign = prompt;
  foreign[3] = 97;
  EXPECT_EQ(
      refusal({write(foreign, foreign), {}, false}),
      head +
          "token 97 is not in the vocabulary of 97; the file is another "
          "model's"
  );
  Tokens endless = random_tokens(8192, 1);
  EXPECT_EQ(
      refusal({write(endless, endless), {}, false}),
      head + "8192 tokens leave no room in the model's context of 8192"
  );
  EXPECT_EQ(
      refusal({"/nonexistent/f", {}, false}),
      "[files.open] /nonexistent/f: No such file or directory"
  );
}

TEST_F(Import, ACacheWithoutRoomSaysSo) {
  Tokens prompt = random_tokens(9 * kPageTokens, 1);
  auto imported = importer().import({write(prompt, prompt), {}, false});
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().code, Code::kExhausted);
  EXPECT_EQ(
      imported.error().message,
      "[engine.import] " + path() +
          ": the prompt cache has no room for its 18432 bytes; raise "
          "--prompt-cache-bytes"
  );
}

TEST_F(Import, AStoppedEngineRefuses) {
  Tokens prompt = random_tokens(40, 1);
  write(prompt, prompt, 7);
  scheduler_.stop();
  EXPECT_EQ(
      refusal({path(), {}, false}), "[engine.import] the engine is stopping"
  );
}

TEST(KvCheck, TheRougherTheMoreIsAllowedButNeverAWrongWord) {
  double last = 0;
  for (const char* type : {"F32", "F16", "BF16"}) {
    for (double rounding : {0.0, 0.001, 0.03}) {
      KvTolerance tolerance = kv_tolerance(type, rounding);
      KvDifference wrong_word;
      wrong_word.worst = 1.1;
      wrong_word.mean = 0.04;
      EXPECT_FALSE(tolerance.allows(wrong_word));
      KvDifference rounded;
      rounded.worst = 5 * rounding;
      rounded.mean = rounding;
      EXPECT_TRUE(tolerance.allows(rounded));
    }
    double mean = kv_tolerance(type, 0).mean;
    EXPECT_GT(mean, last);
    last = mean;
  }
}

TEST(KvCheck, WindowsCoverShortPromptsWholly) {
  for (std::size_t tokens : {1, 31, 32, 33, 512}) {
    std::size_t next = 0;
    for (const KvWindow& window : plan_kv_check(tokens, false)) {
      EXPECT_EQ(window.begin, next);
      next = window.end;
    }
    EXPECT_EQ(next, tokens);
  }
}

TEST(KvCheck, WindowsOfLongPromptsBeginAndEndWithThem) {
  for (std::size_t tokens : {513, 514, 1000, 100000}) {
    std::vector<KvWindow> windows = plan_kv_check(tokens, false);
    EXPECT_EQ(windows.front().begin, 0u);
    EXPECT_EQ(windows.back().end, tokens);
    std::size_t sum = 0;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      sum += windows[i].end - windows[i].begin;
      if (i > 0) {
        EXPECT_GE(windows[i].begin, windows[i - 1].end);
      }
    }
    EXPECT_EQ(sum, 512u);
    EXPECT_EQ(plan_kv_check(tokens, true).size(), (tokens + 31) / 32);
  }
}

}  // namespace
}  // namespace afterglow
