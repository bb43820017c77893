#include "server/logprobs.h"

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "base/utf8.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;

// JSON has no infinity; OpenAI writes -9999 for a token without chance.
json finite(float logprob) {
  return std::isfinite(logprob) ? json(logprob) : json(-9999.0);
}

std::size_t count_characters(std::string_view utf8) {
  std::size_t count = 0;
  for (const char byte : utf8) {
    count += (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  }
  return count;
}

/// How completions name a token: its text or, where that is no UTF-8, as OpenAI
/// does, "bytes:\xf0\x9f".
std::string name_of(std::string_view piece) {
  if (is_utf8(piece)) return std::string(piece);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name = "bytes:";
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F && c != '\\') {
      name += c;
    } else {
      name += "\\x";
      name += kDigits[byte >> 4];
      name += kDigits[byte & 15];
    }
  }
  return name;
}

}  // namespace

LogprobsWriter::LogprobsWriter(const Tokenizer& tokenizer, bool chat, bool top)
    : tokenizer_(tokenizer), chat_(chat), top_(top) {
  clear();
}

void LogprobsWriter::clear() {
  empty_ = true;
  if (chat_) {
    pending_ = {{"content", json::array()}, {"refusal", nullptr}};
  } else {
    pending_ = {
        {"tokens", json::array()},
        {"token_logprobs", json::array()},
        {"top_logprobs", top_ ? json::array() : json(nullptr)},
        {"text_offset", json::array()},
    };
  }
}

json LogprobsWriter::chat_entry(Token token, float logprob) const {
  const std::string_view piece = tokenizer_.piece(token);
  json bytes = json::array();
  for (const char byte : piece) {
    bytes.push_back(static_cast<unsigned char>(byte));
  }
  return {
      {"token", std::string(piece)},
      {"logprob", finite(logprob)},
      {"bytes", std::move(bytes)},
  };
}

json LogprobsWriter::text_top(const TokenOut& token) const {
  json alternatives = json::object();
  for (const TokenLogprob& one : token.top_logprobs) {
    const std::string name = name_of(tokenizer_.piece(one.token));
    // Two tokens may look alike; the likelier one stands.
    if (!alternatives.contains(name)) alternatives[name] = finite(one.logprob);
  }
  return alternatives;
}

void LogprobsWriter::add(const TokenOut& token) {
  empty_ = false;
  if (chat_) {
    json entry = chat_entry(token.token, token.logprob);
    entry["top_logprobs"] = json::array();
    if (top_) {
      for (const TokenLogprob& one : token.top_logprobs) {
        entry["top_logprobs"].push_back(chat_entry(one.token, one.logprob));
      }
    }
    pending_["content"].push_back(std::move(entry));
    return;
  }
  const std::string_view piece = tokenizer_.piece(token.token);
  pending_["tokens"].push_back(name_of(piece));
  pending_["token_logprobs"].push_back(finite(token.logprob));
  pending_["text_offset"].push_back(text_offset_);
  if (top_) pending_["top_logprobs"].push_back(text_top(token));
  text_offset_ += count_characters(piece);
}

json LogprobsWriter::take() {
  if (empty_) return nullptr;
  json taken = std::move(pending_);
  clear();
  return taken;
}

}  // namespace afterglow
