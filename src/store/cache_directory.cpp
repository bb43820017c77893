#include "store/cache_directory.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "store/clock.h"
#include "store/disk_files.h"
#include "store/names.h"

namespace afterglow {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLockPatience{10};
constexpr std::size_t kMinFolderDigits = 6;

Error open_error(Code code, const std::string& path, const std::string& why) {
  return {code, "[cache.open] " + path + ": " + why};
}

Error no_cache(const std::string& path, bool is_later) {
  if (is_later) {
    return open_error(
        Code::kUnsupported,
        path,
        "was made by a later version of afterglow; use that version's tools"
    );
  }
  return open_error(
      Code::kInvalidArgument,
      path,
      "is no prompt-cache directory (it has no folder v1); give the one that "
      "a server was started with (serve --prompt-cache-dir)"
  );
}

}  // namespace

Result<CacheDirectory> CacheDirectory::open(const std::string& path) {
  // Looked at first, since opening a file system makes what is missing.
  struct stat status;
  if (::stat(path.c_str(), &status) < 0) {
    if (errno != ENOENT && errno != ENOTDIR) {
      return open_error(
          errno == EACCES ? Code::kPermission : Code::kIo,
          path,
          std::generic_category().message(errno)
      );
    }
    return open_error(
        Code::kNotFound,
        path,
        "there is no such directory; give the one that a server was started "
        "with (serve --prompt-cache-dir)"
    );
  }
  if (!S_ISDIR(status.st_mode)) {
    return open_error(
        Code::kInvalidArgument, path, "is a file, not a directory"
    );
  }
  // Nor should advice on its mode be given for a place of another kind.
  std::string version = path + "/" + names::kVersion;
  if (::stat(version.c_str(), &status) < 0 && errno == ENOENT) {
    return no_cache(path, ::stat((path + "/v2").c_str(), &status) == 0);
  }
  auto files = open_posix_file_system(path);
  if (!files) {
    return files.error();
  }
  return open(std::move(*files), path);
}

Result<CacheDirectory> CacheDirectory::open(
    std::unique_ptr<FileSystem> files, const std::string& path
) {
  auto found = files->list("");
  if (!found) {
    return found.error();
  }
  auto has = [&](const std::string& name) {
    return std::find(found->begin(), found->end(), name) != found->end();
  };
  if (!has(names::kVersion)) {
    return no_cache(path, has("v2"));
  }
  return CacheDirectory(std::move(files), path);
}

Result<DiskTransaction> CacheDirectory::begin() const {
  auto end = Clock::now() + kLockPatience;
  auto lock =
      DiskTransaction::begin(*files_, [&] { return Clock::now() > end; });
  if (!lock && lock.error().code == Code::kCancelled) {
    return Error{
        Code::kOverloaded,
        "[cache.lock] another process has held " + path_ + "/v1/lock for " +
            std::to_string(kLockPatience.count()) + " s; try again"};
  }
  return lock;
}

Result<std::vector<std::string>> CacheDirectory::find_models(
    const CacheContents& contents, const std::string& name
) const {
  std::vector<std::string> folders;
  std::string known;
  for (const auto& model : contents.models) {
    bool by_folder =
        name.size() >= kMinFolderDigits && model->folder.starts_with(name);
    if (model->name == name || by_folder) {
      folders.push_back(model->folder);
    }
    known += (known.empty() ? "" : ", ") +
             (model->name.empty() ? model->folder.substr(0, 12) : model->name);
  }
  if (folders.empty()) {
    return Error{
        Code::kNotFound,
        "[cache.model] no model '" + name + "' in " + path_ +
            (known.empty() ? "; it holds none" : "; it holds: " + known)};
  }
  return folders;
}

Status CacheDirectory::tidy_manifest(
    DiskTransaction&, const std::function<bool(const ManifestEntry&)>& leave_out
) {
  auto read = read_manifest(*files_);
  if (!read) {
    if (read.error().code == Code::kNotFound) {
      return {};
    }
    if (read.error().code != Code::kCorrupt) {
      return read.error();
    }
  }
  std::string before = read ? format_manifest(*read) : "";
  Manifest manifest = read ? std::move(*read) : Manifest{};
  if (leave_out) {
    std::erase_if(manifest.entries, leave_out);
  }
  std::set<std::string> folders;
  for (const ManifestEntry& entry : manifest.entries) {
    folders.insert(entry.model);
  }
  for (const std::string& folder : folders) {
    auto stored = stored_blocks(*files_, folder);
    if (!stored && stored.error().code != Code::kNotFound) {
      return stored.error();
    }
    keep_stored(manifest, folder, stored ? *stored : std::set<BlockId>());
  }
  manifest = merge_manifests(manifest, {});
  if (format_manifest(manifest) == before) {
    return {};
  }
  if (Status made = files_->make_directory(names::kTemporary); !made) {
    return made;
  }
  return write_manifest(*files_, manifest);
}

Result<bool> CacheDirectory::set_pinned(const StoredEntry& entry, bool pinned) {
  auto lock = begin();
  if (!lock) {
    return lock.error();
  }
  const std::string& folder = entry.model->folder;
  for (const BlockId& id : entry.record.path) {
    auto info = files_->info(block_path(folder, id));
    if (!info) {
      return info.error().code == Code::kNotFound
                 ? Error{
                       Code::kNotFound,
                       "[cache.pin] the entry's blocks were just removed"}
                 : info.error();
    }
  }
  auto manifest = read_manifest(*files_);
  if (!manifest && manifest.error().code != Code::kNotFound &&
      manifest.error().code != Code::kCorrupt) {
    return manifest.error();
  }
  Manifest changed = manifest ? std::move(*manifest) : Manifest{};
  auto same = [&](const ManifestEntry& other) {
    return other.model == folder &&
           other.record.length == entry.record.length &&
           other.record.path.back() == entry.record.path.back();
  };
  auto at = std::find_if(changed.entries.begin(), changed.entries.end(), same);
  if (at == changed.entries.end()) {
    at = changed.entries.insert(at, {folder, entry.record});
    at->record.pinned = false;
  }
  if (at->record.pinned == pinned) {
    return false;
  }
  at->record.pinned = pinned;
  at->record.last_use_ns = unix_now_ns();
  at->record.pin_time_ns = at->record.last_use_ns;
  if (Status made = files_->make_directory(names::kTemporary); !made) {
    return made.error();
  }
  if (Status written = write_manifest(*files_, changed); !written) {
    return written.error();
  }
  return true;
}

}  // namespace afterglow
