#include "base/memory_file_system.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <random>

namespace afterglow {

namespace {

using Bytes = std::vector<std::byte>;

struct Inode {
  bool is_directory = false;
  Bytes content;
  Bytes synced;
  std::int64_t mtime_ns = 0;
  std::uint64_t number = 0;
  const void* lock_holder = nullptr;
};

using InodePtr = std::shared_ptr<Inode>;
using Names = std::map<std::string, InodePtr>;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch()
  )
      .count();
}

std::string parent_of(const std::string& name) {
  std::size_t slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

Error failure(Code code, const char* operation, std::string_view name) {
  return {
      code,
      std::string("[files.") + operation + "] " + std::string(name) + ": " +
          to_string(code)};
}

}  // namespace

struct MemoryDisk::Impl {
  std::mutex mutex;
  std::condition_variable unlocked;
  Names names;    // by full name, without the root
  Names durable;  // what a power cut leaves
  std::uint64_t next_inode = 1;
  bool lying_sync = false;
  FreeSpace space{std::uint64_t{1} << 40, std::uint64_t{1} << 40};

  InodePtr find(const std::string& name) {
    auto found = names.find(name);
    return found == names.end() ? nullptr : found->second;
  }
  bool has_directory(const std::string& name) {
    InodePtr inode = name.empty() ? nullptr : find(name);
    return name.empty() || (inode && inode->is_directory);
  }
  InodePtr add(const std::string& name, bool is_directory) {
    auto inode = std::make_shared<Inode>();
    inode->is_directory = is_directory;
    inode->mtime_ns = now_ns();
    inode->number = next_inode++;
    names[name] = inode;
    return inode;
  }
};

class MemoryFile final : public File {
 public:
  MemoryFile(MemoryDisk::Impl& disk, InodePtr inode, bool writable)
      : disk_(disk), inode_(std::move(inode)), writable_(writable) {}
  ~MemoryFile() override { (void)unlock(); }

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out)
      const override {
    std::lock_guard guard(disk_.mutex);
    const Bytes& content = inode_->content;
    if (offset >= content.size()) {
      return std::size_t{0};
    }
    std::size_t count = std::min<std::size_t>(
        out.size(), content.size() - static_cast<std::size_t>(offset)
    );
    if (count > 0) {
      std::memcpy(out.data(), content.data() + offset, count);
    }
    return count;
  }

  Status write_at(std::uint64_t offset, std::span<const std::byte> data)
      override {
    std::lock_guard guard(disk_.mutex);
    if (!writable_) {
      return failure(Code::kIo, "write", "file opened for reading");
    }
    Bytes& content = inode_->content;
    std::size_t end = static_cast<std::size_t>(offset) + data.size();
    content.resize(std::max(content.size(), end));
    if (!data.empty()) {
      std::memcpy(content.data() + offset, data.data(), data.size());
    }
    inode_->mtime_ns = now_ns();
    return {};
  }

  Status sync() override {
    std::lock_guard guard(disk_.mutex);
    if (!disk_.lying_sync) {
      inode_->synced = inode_->content;
    }
    return {};
  }

  Status truncate(std::uint64_t bytes) override {
    std::lock_guard guard(disk_.mutex);
    inode_->content.resize(static_cast<std::size_t>(bytes));
    return {};
  }

  Result<FileInfo> info() const override {
    std::lock_guard guard(disk_.mutex);
    return FileInfo{
        inode_->content.size(),
        inode_->mtime_ns,
        inode_->number,
        inode_->is_directory,
        !inode_->is_directory};
  }

  Status set_mtime(std::int64_t mtime_ns) override {
    std::lock_guard guard(disk_.mutex);
    inode_->mtime_ns = mtime_ns;
    return {};
  }

  Status lock() override {
    std::unique_lock guard(disk_.mutex);
    disk_.unlocked.wait(guard, [&] { return take(); });
    return {};
  }

  Result<bool> try_lock() override {
    std::lock_guard guard(disk_.mutex);
    return take();
  }

  Status unlock() override {
    std::lock_guard guard(disk_.mutex);
    if (inode_->lock_holder == this) {
      inode_->lock_holder = nullptr;
      disk_.unlocked.notify_all();
    }
    return {};
  }

 private:
  bool take() {
    if (inode_->lock_holder != nullptr && inode_->lock_holder != this) {
      return false;
    }
    inode_->lock_holder = this;
    return true;
  }

  MemoryDisk::Impl& disk_;
  InodePtr inode_;
  bool writable_;
};

class MemoryFileSystem final : public FileSystem {
 public:
  explicit MemoryFileSystem(MemoryDisk::Impl& disk) : disk_(disk) {}

  Result<std::unique_ptr<File>> open(std::string_view name) override {
    return open_file("open", name, false, false, false);
  }
  Result<std::unique_ptr<File>> create(std::string_view name) override {
    return open_file("create", name, true, true, true);
  }
  Result<std::unique_ptr<File>> open_or_create(std::string_view name) override {
    return open_file("open", name, true, true, false);
  }

  Status make_directory(std::string_view name) override {
    std::lock_guard guard(disk_.mutex);
    std::string path(name);
    if (Status valid = check("mkdir", path); !valid) {
      return valid;
    }
    if (InodePtr inode = disk_.find(path)) {
      return inode->is_directory ? Status()
                                 : failure(Code::kExists, "mkdir", name);
    }
    disk_.add(path, true);
    return {};
  }

  Status link(std::string_view from, std::string_view to) override {
    std::lock_guard guard(disk_.mutex);
    if (Status valid = check("link", std::string(to)); !valid) {
      return valid;
    }
    InodePtr inode = disk_.find(std::string(from));
    if (!inode) {
      return failure(Code::kNotFound, "link", from);
    }
    if (!disk_.names.emplace(to, inode).second) {
      return failure(Code::kExists, "link", to);
    }
    return {};
  }

  Status rename(std::string_view from, std::string_view to) override {
    std::lock_guard guard(disk_.mutex);
    if (Status valid = check("rename", std::string(to)); !valid) {
      return valid;
    }
    auto found = disk_.names.find(std::string(from));
    if (found == disk_.names.end()) {
      return failure(Code::kNotFound, "rename", from);
    }
    InodePtr inode = found->second;
    disk_.names.erase(found);
    disk_.names[std::string(to)] = inode;
    return {};
  }

  Status remove(std::string_view name) override {
    std::lock_guard guard(disk_.mutex);
    InodePtr inode = disk_.find(std::string(name));
    if (!inode) {
      return failure(Code::kNotFound, "remove", name);
    }
    if (inode->is_directory) {
      return failure(Code::kPermission, "remove", name);
    }
    disk_.names.erase(std::string(name));
    return {};
  }

  Result<FileInfo> info(std::string_view name) override {
    std::lock_guard guard(disk_.mutex);
    InodePtr inode = disk_.find(std::string(name));
    if (!inode) {
      return failure(Code::kNotFound, "info", name);
    }
    return FileInfo{
        inode->content.size(),
        inode->mtime_ns,
        inode->number,
        inode->is_directory,
        !inode->is_directory};
  }

  Result<std::vector<std::string>> list(std::string_view name) override {
    std::lock_guard guard(disk_.mutex);
    std::string path(name);
    if (!disk_.has_directory(path)) {
      return failure(Code::kNotFound, "list", name);
    }
    std::vector<std::string> bases;
    for (const auto& [full, inode] : disk_.names) {
      if (parent_of(full) == path) {
        bases.push_back(full.substr(path.empty() ? 0 : path.size() + 1));
      }
    }
    return bases;
  }

  Status sync_directory(std::string_view name) override {
    std::lock_guard guard(disk_.mutex);
    std::string path(name);
    if (!disk_.has_directory(path)) {
      return failure(Code::kNotFound, "sync", name);
    }
    if (disk_.lying_sync) {
      return {};
    }
    std::erase_if(disk_.durable, [&](const auto& item) {
      return parent_of(item.first) == path;
    });
    for (const auto& [full, inode] : disk_.names) {
      if (parent_of(full) == path) {
        disk_.durable[full] = inode;
      }
    }
    return {};
  }

  Result<FreeSpace> free_space() override {
    std::lock_guard guard(disk_.mutex);
    return disk_.space;
  }

 private:
  Status check(const char* operation, const std::string& name) {
    if (Status valid = check_file_name(operation, name, false); !valid) {
      return valid;
    }
    if (!disk_.has_directory(parent_of(name))) {
      return failure(Code::kNotFound, operation, name);
    }
    return {};
  }

  Result<std::unique_ptr<File>> open_file(
      const char* operation,
      std::string_view name,
      bool writable,
      bool may_create,
      bool must_create
  ) {
    std::lock_guard guard(disk_.mutex);
    std::string path(name);
    if (Status valid = check(operation, path); !valid) {
      return valid.error();
    }
    InodePtr inode = disk_.find(path);
    if (inode && must_create) {
      return failure(Code::kExists, operation, name);
    }
    if (!inode && !may_create) {
      return failure(Code::kNotFound, operation, name);
    }
    if (inode && inode->is_directory) {
      return failure(Code::kPermission, operation, name);
    }
    if (!inode) {
      inode = disk_.add(path, false);
    }
    return std::unique_ptr<File>(
        std::make_unique<MemoryFile>(disk_, inode, writable)
    );
  }

  MemoryDisk::Impl& disk_;
};

MemoryDisk::MemoryDisk() : impl_(std::make_unique<Impl>()) {}

MemoryDisk::~MemoryDisk() = default;

std::unique_ptr<FileSystem> MemoryDisk::file_system() {
  return std::make_unique<MemoryFileSystem>(*impl_);
}

void MemoryDisk::power_cut(std::uint64_t seed) {
  std::lock_guard guard(impl_->mutex);
  std::mt19937_64 random(seed);
  auto keeps = [&] { return seed != 0 && random() % 2 == 0; };
  Names left;
  // Names of either state, in order, so that directories come first.
  Names all = impl_->names;
  all.insert(impl_->durable.begin(), impl_->durable.end());
  for (const auto& [name, unused] : all) {
    const Names& from = keeps() ? impl_->names : impl_->durable;
    auto found = from.find(name);
    std::string parent = parent_of(name);
    if (found != from.end() && (parent.empty() || left.count(parent) > 0)) {
      left[name] = found->second;
    }
  }
  for (const auto& [name, inode] : left) {
    inode->lock_holder = nullptr;
    if (inode->content == inode->synced) {
      continue;
    }
    Bytes survived = inode->synced;
    if (keeps()) {
      // Some pages arrived, others read as zeros.
      survived = inode->content;
      constexpr std::size_t kSector = 512;
      for (std::size_t at = 0; at < survived.size(); at += kSector) {
        if (random() % 2 == 0) {
          std::size_t end = std::min(at + kSector, survived.size());
          std::fill(
              survived.begin() + static_cast<std::ptrdiff_t>(at),
              survived.begin() + static_cast<std::ptrdiff_t>(end),
              std::byte{0}
          );
        }
      }
    }
    inode->content = survived;
    inode->synced = survived;
  }
  impl_->names = left;
  impl_->durable = left;
}

void MemoryDisk::set_lying_sync(bool lying) {
  std::lock_guard guard(impl_->mutex);
  impl_->lying_sync = lying;
}

void MemoryDisk::set_free_space(FreeSpace space) {
  std::lock_guard guard(impl_->mutex);
  impl_->space = space;
}

}  // namespace afterglow
