#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "afterglow/model.h"
#include "base/result.h"

namespace afterglow {

struct FetchOptions {
  std::string revision = "main";  // a branch, tag or commit
  /// Ask the hub for a newer version even when a whole one is here.
  bool refresh = false;
  /// Never ask the hub: what is not here is kNotFound.
  bool local_only = false;
  /// Called several times a second, on the calling thread, with the file that
  /// comes now and the bytes of all files, earlier downloads included. What it
  /// throws ends the download and comes out of fetch_model.
  std::function<void(const DownloadProgress&)> progress;
  std::stop_token cancel;
};

/// The path of a model: `name` itself where such a file or folder exists, else
/// that of a model on the Hugging Face hub, `organization/name`, or one GGUF
/// file of it, `organization/name:Q4_K_M` or `organization/name:file.gguf`.
/// What is in the hub's cache as a whole needs no network and is not looked
/// for; the rest is downloaded, and what an earlier call began is continued.
/// The cache and the environment variables are those of huggingface_hub.
/// Errors: kNotFound, kInvalidArgument for a name that is none or fits several
/// files, kPermission, kUnavailable (network, hub), kCorrupt (other bytes than
/// the hub's sum says), kNoSpace, kIo, kCancelled.
/// Thread: any; processes that download the same file wait for each other.
Result<std::string> fetch_model(
    const std::string& name, const FetchOptions& options = {}
);

}  // namespace afterglow
