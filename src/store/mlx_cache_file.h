#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "base/hash.h"
#include "base/kv_layout.h"
#include "base/page.h"
#include "base/result.h"
#include "base/token.h"
#include "store/mlx_cache_file_header.h"

namespace afterglow {

// Prompt-cache files of mlx_lm 0.32: written so that load_prompt_cache opens
// them, read also in the layout of versions before. Ours carry a stamp besides,
// in the metadata: afterglow.sum (XXH3-128 of all bytes before the data, its
// own digits counted as '0'), afterglow.sums (XXH3-64 of each array, in the
// file's order), afterglow.fingerprint, afterglow.spec, afterglow.tokens
// (decimal, separated by spaces).

/// What all names of the stamp in the metadata begin with.
inline constexpr std::string_view kMlxStampPrefix = "afterglow.";

/// What a file of ours says that mlx_lm's do not.
struct MlxCacheStamp {
  Sha256Digest fingerprint{};
  Sha256Digest spec{};
  std::vector<Token> tokens;
};

/// A prompt-cache file, its header verified. KV is read on request.
/// Thread: const members from any thread.
class MlxCacheFile {
 public:
  /// Errors: those of the file system; kCorrupt, kUnsupported. Each names
  /// the file and what is wrong with it.
  static Result<MlxCacheFile> open(const std::string& path);
  /// The same for an open file; `path` is for messages.
  static Result<MlxCacheFile> open(
      std::unique_ptr<File> file, const std::string& path
  );

  const std::string& path() const { return path_; }
  /// Tokens whose KV it holds; at least 1.
  std::size_t tokens() const { return tokens_; }
  const MlxCacheHeader& header() const { return header_; }
  /// Set for a file of ours whose sum over the header is right.
  const std::optional<MlxCacheStamp>& stamp() const { return stamp_; }

  /// As a model that keeps KV in the file's types would have it.
  KvLayout layout() const;
  /// Whether its arrays are what a model of that layout keeps; types may
  /// differ. Errors: kInvalidArgument, naming layer and sizes.
  Status check_layout(const KvLayout& model) const;

  /// Reads all KV, verifies the sums of a stamp, and fills pages, converting
  /// types. Holds one array of one layer besides the pages.
  /// Requires: a page for each kPageTokens tokens begun.
  /// Errors: as check_layout; kCorrupt also for values that are not finite or
  /// too large for the layout's type.
  Status read(
      const KvLayout& layout, std::span<const std::shared_ptr<Page>> pages
  ) const;

 private:
  MlxCacheFile(std::unique_ptr<File> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  Status read_header();
  Status read_offset();
  Status read_stamp(std::string_view text);
  Error at_fault(Error error) const;
  Result<std::vector<std::byte>> read_used(const TensorEntry& tensor) const;
  Status verify(const TensorEntry& tensor, std::span<const std::byte> bytes)
      const;

  std::unique_ptr<File> file_;
  std::string path_;
  std::uint64_t data_at_ = 0;  // bytes from the file's start
  std::size_t tokens_ = 0;
  MlxCacheHeader header_;
  std::optional<MlxCacheStamp> stamp_;
  std::vector<std::pair<std::string, std::uint64_t>> sums_;  // by array name
};

/// Where a writer takes KV from, one layer of one block at a time.
class KvSource {
 public:
  /// K as [kv_heads][k_dim][width], V as [kv_heads][width][v_dim].
  struct Part {
    std::span<const std::byte> k;
    std::span<const std::byte> v;
    std::size_t width = 0;
  };

  virtual ~KvSource() = default;
  /// The spans are valid until the next call.
  virtual Result<Part> read(std::size_t block, std::size_t layer) = 0;
};

/// What the user of mlx_lm finds in a file besides KV: names and values. For
/// mlx_lm.generate these are "model" (it compares) and "tokenizer_config".
using MlxCacheNotes = std::vector<std::pair<std::string, std::string>>;

/// Writes a stamped file, layer by layer: holds one array besides what the
/// source does. Types are those of the layout.
/// Requires: the file is empty; stamp.tokens is not; the source has a block
/// for each kPageTokens tokens begun.
/// Errors: those of the source and the file.
Status write_mlx_cache_file(
    File& file,
    const KvLayout& layout,
    const MlxCacheStamp& stamp,
    const MlxCacheNotes& notes,
    KvSource& source
);

}  // namespace afterglow
