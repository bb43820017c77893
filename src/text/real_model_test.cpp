#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "text/chat_template.h"
#include "text/detokenizer.h"
#include "text/testing.h"
#include "text/tokenizer.h"

namespace afterglow {
namespace {

/// The tokenizer's fields of a GGUF file, read without the model directory,
/// which lies above this one. Trusts the file.
class GgufMetadata {
 public:
  explicit GgufMetadata(std::string bytes) : bytes_(std::move(bytes)) {
    at_ = 16;
    for (auto count = take<std::uint64_t>(); count > 0; --count) {
      const std::string key = text();
      value(key, take<std::uint32_t>());
    }
  }

  std::map<std::string, std::vector<std::string>> texts;
  std::map<std::string, std::vector<std::int64_t>> integers;

 private:
  static constexpr std::uint32_t kString = 8;
  static constexpr std::uint32_t kArray = 9;

  template <class T>
  T take() {
    T result;
    std::memcpy(&result, bytes_.data() + at_, sizeof result);
    at_ += sizeof result;
    return result;
  }

  std::string text() {
    const auto size = take<std::uint64_t>();
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

  void value(const std::string& key, std::uint32_t type) {
    static constexpr int kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == kArray) {
      const auto element = take<std::uint32_t>();
      for (auto count = take<std::uint64_t>(); count > 0; --count) {
        value(key, element);
      }
    } else if (type == kString) {
      texts[key].push_back(text());
    } else {
      std::int64_t number = 0;
      std::memcpy(&number, bytes_.data() + at_, kSizes[type]);
      at_ += kSizes[type];
      integers[key].push_back(number);
    }
  }

  std::string bytes_;
  std::size_t at_ = 0;
};

class TextRealModel : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* from_env = std::getenv("AFTERGLOW_MODEL");
    const std::string path = from_env ? from_env : AFTERGLOW_DEFAULT_MODEL;
    if (path.empty()) {
      GTEST_SKIP() << "set AFTERGLOW_MODEL to the default model's file";
    }
    GgufMetadata file(testing::read_file(path));
    const std::string prefix = "tokenizer.ggml.";
    GgufVocab vocab{
        .model = file.texts[prefix + "model"].at(0),
        .pre = file.texts[prefix + "pre"].at(0),
        .tokens = file.texts[prefix + "tokens"],
        .merges = file.texts[prefix + "merges"],
        .bos = file.integers[prefix + "bos_token_id"].at(0),
        .eos = file.integers[prefix + "eos_token_id"].at(0)};
    for (const auto type : file.integers[prefix + "token_type"]) {
      vocab.types.push_back(static_cast<std::int32_t>(type));
    }
    const auto start = std::chrono::steady_clock::now();
    auto made = Tokenizer::from_gguf(vocab);
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - start;
    ASSERT_TRUE(made.ok()) << made.error().message;
    RecordProperty("load_ms", std::to_string(spent.count()));
    tokenizer_ = *std::move(made);
    template_ = file.texts["tokenizer.chat_template"].at(0);
  }

  std::optional<Tokenizer> tokenizer_;
  std::string template_;
};

TEST_F(TextRealModel, GivesTheIdsOfHuggingFace) {
  const auto all = testing::golden("tokens.json");
  const auto& wanted = all["sets"]["smollm2"];
  for (std::size_t i = 0; i < all["corpus"].size(); ++i) {
    const std::string text = all["corpus"][i];
    SCOPED_TRACE("text " + std::to_string(i) + ": " + text);
    using Ids = std::vector<Token>;
    const auto plain = tokenizer_->encode(text, false, false);
    const auto parsed = tokenizer_->encode(text, false, true);
    ASSERT_TRUE(plain.ok() && parsed.ok());
    EXPECT_EQ(*plain, wanted["plain"][i].get<Ids>());
    EXPECT_EQ(*parsed, wanted["parsed"][i].get<Ids>());
    EXPECT_EQ(tokenizer_->decode(*parsed, false), wanted["decoded"][i]);
    EXPECT_EQ(tokenizer_->decode(*parsed, true), wanted["skipped"][i]);
    Detokenizer stream(*tokenizer_);
    std::string streamed;
    for (const Token id : *parsed) {
      streamed += stream.push(id);
    }
    EXPECT_EQ(streamed + stream.flush(), wanted["skipped"][i]);
  }
}

TEST_F(TextRealModel, ItsTemplateBecomesItsTokens) {
  const auto chat = ChatTemplate::create(
      template_, ChatTemplate::SpecialTokens::of(*tokenizer_)
  );
  ASSERT_TRUE(chat.ok()) << chat.error().message;
  const auto text =
      chat->render(R"([{"role": "user", "content": "Hi"}])", "", true, "");
  ASSERT_TRUE(text.ok()) << text.error().message;
  const auto ids = tokenizer_->encode(*text, false, true);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(std::count(ids->begin(), ids->end(), *tokenizer_->bos()), 3);
  EXPECT_EQ(std::count(ids->begin(), ids->end(), *tokenizer_->eos()), 2);
  EXPECT_EQ(tokenizer_->decode(*ids, false), *text);
}

}  // namespace
}  // namespace afterglow
