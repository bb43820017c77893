#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "kv/entry_list.h"
#include "server/exchange.h"
#include "text/tokenizer.h"

namespace afterglow {

/// What a request may be told of the entries' texts. Those it lists must be
/// its own: of a namespace that its key makes, or of a server that asks for no
/// key and is reached from this machine, by no page of another origin. Else
/// many people's prompts lie together, and each would read the others'. See
/// docs/security.md.
class TextRight {
 public:
  explicit TextRight(const HttpRequest& request);

  /// Whether it reaches the entries of that namespace.
  bool covers(const std::string& cache_namespace) const;

 private:
  bool has_key_;
  bool is_local_;
};

/// The member `texts` of an entry: where each of its branches begins, and a
/// line of its text from there, or from where its message begins when that is
/// near.
nlohmann::ordered_json entry_texts_json(
    const ListedEntry& entry, const Tokenizer& tokenizer
);

}  // namespace afterglow
