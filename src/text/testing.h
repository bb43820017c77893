#pragma once

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "text/tokenizer.h"

/// What the tests of this directory share; not part of the library.
namespace afterglow::testing {

using Json = nlohmann::ordered_json;

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.good(), "cannot read " + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A file made by tests/parity/text_goldens.py.
inline std::string golden_text(const std::string& name) {
  return read_file(
      std::string(AFTERGLOW_SOURCE_DIR) + "/tests/parity/text_golden/" + name
  );
}

inline Json golden(const std::string& name) {
  return Json::parse(golden_text(name));
}

/// The vocabulary of a byte-level tokenizer.json as a GGUF file holds it.
inline GgufVocab tiny_gpt2(const std::string& pre) {
  const Json model = golden("tiny_bpe.tokenizer.json")["model"];
  GgufVocab vocab{.model = "gpt2", .pre = pre};
  vocab.tokens.resize(model["vocab"].size());
  for (const auto& [token, id] : model["vocab"].items()) {
    vocab.tokens[id.get<std::size_t>()] = token;
  }
  for (const auto& merge : model["merges"]) {
    vocab.merges.push_back(
        merge[0].get<std::string>() + " " + merge[1].get<std::string>()
    );
  }
  vocab.types.assign(vocab.tokens.size(), 1);
  std::fill_n(vocab.types.begin(), 3, 3);
  return vocab;
}

/// The vocabulary of a SentencePiece model as a GGUF file holds it.
inline GgufVocab tiny_llama() {
  const Json spm = golden("tiny_spm.vocab.json");
  return {
      .model = "llama",
      .tokens = spm["tokens"],
      .scores = spm["scores"],
      .types = spm["types"],
      .add_bos = true,
      .add_space_prefix = true,
      .bos = 1,
      .eos = 2,
      .unk = 0,
  };
}

}  // namespace afterglow::testing
