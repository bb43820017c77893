#include "cli/continued_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "api/raise.h"
#include "hub/fetch_model.h"

namespace afterglow {

ContinuedFile::ContinuedFile(const std::string& path)
    : ContinuedFile(path, load_cache(path)) {}

ContinuedFile::ContinuedFile(
    const std::string& path, std::pair<CacheHistory, Metadata> loaded
)
    : path_(path),
      history_(std::move(loaded.first)),
      metadata_(std::move(loaded.second)) {}

std::string ContinuedFile::field(const std::string& name) const {
  const auto found = metadata_.find(name);
  return found == metadata_.end() ? "" : found->second;
}

bool ContinuedFile::tells_tokens() const {
  const std::vector<Token> tokens = history_.tokens();
  return std::ranges::find(tokens, kUnknownToken) == tokens.end();
}

std::string ContinuedFile::model() const {
  const std::string name = field("model");
  FetchOptions options;
  options.local_only = true;
  const auto here = fetch_model(name, options);
  if (here.ok()) return name;
  if (name.find('/') == std::string::npos) return "";
  raise(
      {here.error().code,
       "[cli.cache_file] " + path_ + " was made with the model '" + name +
           "', which is not downloaded because of a file; name the model with "
           "--model. " +
           here.error().message}
  );
}

std::string ContinuedFile::doubt(const std::string& named) const {
  const std::string name = field("model");
  if (tells_tokens() || name.empty() || name == named) return "";
  return path_ + " was made with the model '" + name + "', and nothing in it " +
         "tells whether '" + named + "' is the same one; if it is not, the " +
         "answer means nothing";
}

std::optional<std::string> ContinuedFile::eos_token() const {
  const std::string text = field("tokenizer_config");
  if (text.empty()) return std::nullopt;
  const auto config = nlohmann::json::parse(text, nullptr, false);
  const auto found =
      config.is_object() ? config.find("eos_token") : config.end();
  if (!config.is_object() ||
      (found != config.end() && !found->is_string() && !found->is_null())) {
    raise(
        {Code::kCorrupt,
         "[cli.cache_file] " + path_ +
             ": its tokenizer_config is not as mlx_lm writes it"}
    );
  }
  if (found == config.end() || found->is_null()) return std::nullopt;
  return found->get<std::string>();
}

Prompt ContinuedFile::full_prompt(const Prompt& rest) const {
  if (!tells_tokens() || !rest.tokens()) return rest;
  std::vector<Token> tokens = history_.tokens();
  tokens.insert(tokens.end(), rest.tokens()->begin(), rest.tokens()->end());
  return tokens;
}

}  // namespace afterglow
