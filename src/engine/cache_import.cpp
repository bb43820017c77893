#include "engine/cache_import.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/kv_history.h"
#include "engine/run_there.h"
#include "engine/scheduler.h"

namespace afterglow {
namespace {

Error refused(Code code, const std::string& path, const std::string& why) {
  return {code, "[engine.import] " + path + ": " + why};
}

}  // namespace

CacheImporter::CacheImporter(
    PromptCache& cache, PagePool pool, Model model, Post post
)
    : cache_(cache),
      pool_(std::move(pool)),
      model_(std::move(model)),
      post_(std::move(post)) {}

Result<ImportedCache> CacheImporter::import(const CacheImport& request) {
  auto file = MlxCacheFile::open(request.path);
  if (!file.ok()) {
    return file.error();
  }
  if (Status fits = file->check_layout(model_.layout); !fits.ok()) {
    return fits.error();
  }
  auto tokens = tokens_of(*file, request);
  if (!tokens.ok()) {
    return tokens.error();
  }
  std::vector<std::shared_ptr<Page>> writable;
  for (std::size_t at = 0; at < tokens->size(); at += kPageTokens) {
    writable.push_back(pool_.make());
  }
  if (Status read = file->read(model_.layout, writable); !read.ok()) {
    return read.error();
  }
  std::vector<PagePtr> pages(writable.begin(), writable.end());
  ImportedCache imported;
  imported.is_own = file->stamp() &&
                    file->stamp()->fingerprint == model_.fingerprint &&
                    file->stamp()->spec == model_.spec;
  if (!imported.is_own || request.check_all) {
    auto difference = check(*file, *tokens, pages, request.check_all);
    if (!difference.ok()) {
      return difference.error();
    }
    imported.difference = *difference;
  }
  BlockId root = root_id(
      model_.fingerprint,
      model_.spec,
      imported.is_own ? std::string_view() : kImportedNamespace
  );
  auto entry = store(root, *tokens, pages);
  if (!entry.ok()) {
    return refused(entry.error().code, request.path, entry.error().message);
  }
  imported.entry = *std::move(entry);
  return imported;
}

Result<std::vector<Token>> CacheImporter::tokens_of(
    const MlxCacheFile& file, const CacheImport& request
) const {
  auto wrong = [&](const std::string& why) {
    return refused(Code::kInvalidArgument, file.path(), why);
  };
  bool told = file.stamp() && unknown_tokens(file.stamp()->tokens) == 0;
  if (!request.tokens && !told) {
    return wrong(
        "does not say which prompt it holds, as files of mlx_lm do not; type: "
        "afterglow cache import '" +
        file.path() + "' --prompt TEXT --prompt-cache-dir DIR"
    );
  }
  std::vector<Token> tokens =
      request.tokens ? *request.tokens : file.stamp()->tokens;
  if (tokens.size() != file.tokens()) {
    return wrong(
        "holds " + std::to_string(file.tokens()) +
        " tokens, but the prompt has " + std::to_string(tokens.size()) +
        "; give the prompt that it was made with"
    );
  }
  if (told && tokens != file.stamp()->tokens) {
    return wrong("names other tokens than those of the prompt");
  }
  for (Token token : tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= model_.vocab_size) {
      return wrong(
          "token " + std::to_string(token) + " is not in the vocabulary of " +
          std::to_string(model_.vocab_size) + "; the file is another model's"
      );
    }
  }
  if (tokens.size() >= model_.context_length) {
    return wrong(
        std::to_string(tokens.size()) +
        " tokens leave no room in the model's context of " +
        std::to_string(model_.context_length)
    );
  }
  return tokens;
}

Result<KvDifference> CacheImporter::check(
    const MlxCacheFile& file,
    const std::vector<Token>& tokens,
    const std::vector<PagePtr>& pages,
    bool check_all
) const {
  const KvTolerance tolerance =
      kv_tolerance(file.header().layers.front().k.dtype, model_.rounding);
  KvDifference sum;
  for (const KvWindow& window : plan_kv_check(tokens.size(), check_all)) {
    // A task for each, so that requests go on between.
    auto compared = run_there<Result<KvDifference>>(post_, [&](Runner& runner) {
      return compare_kv(runner, tokens, pages, window);
    });
    if (!compared) {
      return Error{
          Code::kUnavailable, "[engine.import] the engine is stopping"};
    }
    const Result<KvDifference>& difference = *compared;
    if (!difference.ok()) {
      return difference.error();
    }
    sum.add(*difference);
    if (!tolerance.allows(*difference)) {
      return refused(
          Code::kInvalidArgument,
          file.path(),
          "is not this model's cache of this prompt: computed again, the " +
              std::string(difference->in_k ? "K" : "V") + " of token " +
              std::to_string(difference->position) + " in layer " +
              std::to_string(difference->layer) + " differs by " +
              std::to_string(difference->worst) + " of its size, all by " +
              std::to_string(difference->mean) + " on average"
      );
    }
  }
  return sum;
}

Result<EntryRecord> CacheImporter::store(
    const BlockId& root,
    const std::vector<Token>& tokens,
    const std::vector<PagePtr>& pages
) {
  {
    Trail trail =
        cache_.start(root, {}, {Boundary{EntryType::kSystem, tokens.size()}});
    for (std::size_t i = 0; i < pages.size(); ++i) {
      std::size_t start = i * kPageTokens;
      std::size_t count = std::min(kPageTokens, tokens.size() - start);
      trail.append(std::span(tokens).subspan(start, count), pages[i]);
    }
  }
  Match match = cache_.lookup(root, tokens);
  if (match.tokens() == tokens.size()) {
    const BlockId& last = match.path().back().block->id;
    if (cache_.set_pinned(last, tokens.size(), true, root)) {
      for (EntryRecord& entry : cache_.entries(root)) {
        if (entry.path.back() == last && entry.length == tokens.size()) {
          return std::move(entry);
        }
      }
    }
  }
  return Error{
      Code::kExhausted,
      "the prompt cache has no room for its " +
          std::to_string(pages.size() * pool_.page_bytes()) +
          " bytes; raise --prompt-cache-bytes"};
}

}  // namespace afterglow
