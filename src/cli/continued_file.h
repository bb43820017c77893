#pragma once

#include <optional>
#include <string>
#include <utility>

#include "afterglow/cache_history.h"
#include "afterglow/model.h"

namespace afterglow {

/// A prompt-cache file that a prompt goes on from, as with
/// mlx_lm.generate --prompt-cache-file.
class ContinuedFile {
 public:
  /// Throws: as load_cache.
  explicit ContinuedFile(const std::string& path);

  const CacheHistory& history() const { return history_; }

  /// The model to load where the command line names none: the one that the
  /// file names, or "" where that is neither a path nor a name of the hub.
  /// Throws: kNotFound for one that is not on this machine: a file does not
  /// decide what is downloaded.
  std::string model() const;
  /// A text for the user when nothing but names tells whether the file is of
  /// the model that was `named` on the command line, and they differ; else "".
  std::string doubt(const std::string& named) const;
  /// A further token that ends answers, by its text: --eos-token of
  /// cache-prompt. Throws: kCorrupt for a field that is not as mlx_lm writes
  /// it.
  std::optional<std::string> eos_token() const;

  /// The full prompt: the file's content and what follows it.
  Prompt full_prompt(const Prompt& rest) const;

 private:
  ContinuedFile(
      const std::string& path, std::pair<CacheHistory, Metadata> loaded
  );
  std::string field(const std::string& name) const;
  /// The file says which tokens it holds.
  bool tells_tokens() const;

  std::string path_;
  CacheHistory history_;
  Metadata metadata_;
};

}  // namespace afterglow
