#include "store/temporary.h"

#include <unistd.h>

#include <atomic>
#include <random>

#include "store/names.h"

namespace afterglow {

namespace {

std::string unique_name() {
  static std::atomic<std::uint64_t> counter{0};
  std::random_device random;
  return std::string(names::kTemporary) + "/" + std::to_string(::getpid()) +
         "-" + std::to_string(random()) + "-" +
         std::to_string(counter.fetch_add(1));
}

/// Counts the files that nobody holds and for which visit(name) is true.
template <class Visit>
Result<std::size_t> count_dead(FileSystem& files, Visit visit) {
  Result<std::vector<std::string>> found = files.list(names::kTemporary);
  if (!found) {
    if (found.error().code == Code::kNotFound) {
      return std::size_t{0};
    }
    return found.error();
  }
  std::size_t count = 0;
  for (const std::string& base : *found) {
    std::string name = std::string(names::kTemporary) + "/" + base;
    Result<std::unique_ptr<File>> file = files.open(name);
    if (!file) {
      continue;  // gone already, or nothing of ours
    }
    Result<bool> dead = (*file)->try_lock();
    if (dead && *dead && visit(name)) {
      ++count;
    }
  }
  return count;
}

Result<bool> leads_to(
    FileSystem& files, const std::string& name, const File& file
) {
  auto held = file.info();
  if (!held) {
    return held.error();
  }
  auto named = files.info(name);
  if (!named && named.error().code != Code::kNotFound) {
    return named.error();
  }
  return named && named->inode == held->inode;
}

}  // namespace

Result<Temporary> Temporary::create(FileSystem& files) {
  for (;;) {
    std::string name = unique_name();
    Result<std::unique_ptr<File>> file = files.create(name);
    if (!file) {
      if (file.error().code == Code::kExists) {
        continue;
      }
      return file.error();
    }
    Temporary temporary(files, std::move(*file), name);
    Result<bool> locked = temporary.file_->try_lock();
    if (!locked) {
      return locked.error();
    }
    // A cleaner that looked between the two calls holds it or removed it.
    Result<bool> named = leads_to(files, name, temporary.file());
    if (!named) {
      return named.error();
    }
    if (*locked && *named) {
      return temporary;
    }
  }
}

Temporary::~Temporary() {
  if (file_ && !name_.empty()) {
    // Failing that, whoever opens the directory next removes it.
    (void)files_->remove(name_);
  }
}

Status replace_file(
    FileSystem& files,
    const std::string& directory,
    const std::string& name,
    std::string_view text
) {
  Result<Temporary> temporary = Temporary::create(files);
  if (!temporary) {
    return temporary.error();
  }
  auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  if (Status written = temporary->file().write_at(0, bytes); !written) {
    return written;
  }
  if (Status synced = temporary->file().sync(); !synced) {
    return synced;
  }
  if (Status renamed = files.rename(temporary->name(), name); !renamed) {
    return renamed;
  }
  temporary->release();
  return files.sync_directory(directory);
}

Result<std::size_t> count_dead_temporaries(FileSystem& files) {
  return count_dead(files, [](const std::string&) { return true; });
}

Result<std::size_t> remove_dead_temporaries(FileSystem& files) {
  return count_dead(files, [&](const std::string& name) {
    return files.remove(name).ok();
  });
}

}  // namespace afterglow
