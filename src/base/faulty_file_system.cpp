#include "base/faulty_file_system.h"

#include <string>
#include <utility>

namespace afterglow {

namespace {

class FaultyFile final : public File {
 public:
  FaultyFile(std::unique_ptr<File> inner, std::string name, FaultHook hook)
      : inner_(std::move(inner)),
        name_(std::move(name)),
        hook_(std::move(hook)) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out)
      const override {
    if (auto error = hook_("read", name_)) {
      return *error;
    }
    return inner_->read_at(offset, out);
  }
  Status write_at(std::uint64_t offset, std::span<const std::byte> data)
      override {
    if (auto error = hook_("write", name_)) {
      (void)inner_->write_at(offset, data.first(data.size() / 2));
      return *error;
    }
    return inner_->write_at(offset, data);
  }
  Status sync() override {
    if (auto error = hook_("sync", name_)) {
      lost_ = true;
      return *error;
    }
    return lost_ ? Status() : inner_->sync();
  }
  Status truncate(std::uint64_t bytes) override {
    if (auto error = hook_("truncate", name_)) {
      return *error;
    }
    return inner_->truncate(bytes);
  }
  Result<FileInfo> info() const override {
    if (auto error = hook_("file_info", name_)) {
      return *error;
    }
    return inner_->info();
  }
  Status set_mtime(std::int64_t mtime_ns) override {
    if (auto error = hook_("set_mtime", name_)) {
      return *error;
    }
    return inner_->set_mtime(mtime_ns);
  }
  Status lock() override {
    if (auto error = hook_("lock", name_)) {
      return *error;
    }
    return inner_->lock();
  }
  Result<bool> try_lock() override {
    if (auto error = hook_("try_lock", name_)) {
      return *error;
    }
    return inner_->try_lock();
  }
  Status unlock() override {
    if (auto error = hook_("unlock", name_)) {
      return *error;
    }
    return inner_->unlock();
  }

 private:
  std::unique_ptr<File> inner_;
  std::string name_;
  FaultHook hook_;
  bool lost_ = false;
};

class FaultyFileSystem final : public FileSystem {
 public:
  FaultyFileSystem(std::unique_ptr<FileSystem> inner, FaultHook hook)
      : inner_(std::move(inner)), hook_(std::move(hook)) {}

  Result<std::unique_ptr<File>> open(std::string_view name) override {
    return wrap("open", name, [&] { return inner_->open(name); });
  }
  Result<std::unique_ptr<File>> create(std::string_view name) override {
    return wrap("create", name, [&] { return inner_->create(name); });
  }
  Result<std::unique_ptr<File>> open_or_create(std::string_view name) override {
    return wrap("open_or_create", name, [&] {
      return inner_->open_or_create(name);
    });
  }
  Status make_directory(std::string_view name) override {
    if (auto error = hook_("make_directory", name)) {
      return *error;
    }
    return inner_->make_directory(name);
  }
  Status link(std::string_view from, std::string_view to) override {
    if (auto error = hook_("link", from)) {
      return *error;
    }
    return inner_->link(from, to);
  }
  Status rename(std::string_view from, std::string_view to) override {
    if (auto error = hook_("rename", from)) {
      return *error;
    }
    return inner_->rename(from, to);
  }
  Status remove(std::string_view name) override {
    if (auto error = hook_("remove", name)) {
      return *error;
    }
    return inner_->remove(name);
  }
  Result<FileInfo> info(std::string_view name) override {
    if (auto error = hook_("info", name)) {
      return *error;
    }
    return inner_->info(name);
  }
  Result<std::vector<std::string>> list(std::string_view name) override {
    if (auto error = hook_("list", name)) {
      return *error;
    }
    return inner_->list(name);
  }
  Status sync_directory(std::string_view name) override {
    if (auto error = hook_("sync_directory", name)) {
      return *error;
    }
    return inner_->sync_directory(name);
  }
  Result<FreeSpace> free_space() override {
    if (auto error = hook_("free_space", "")) {
      return *error;
    }
    return inner_->free_space();
  }
  bool is_network() const override { return inner_->is_network(); }

 private:
  template <class Open>
  Result<std::unique_ptr<File>> wrap(
      std::string_view operation, std::string_view name, Open open
  ) {
    if (auto error = hook_(operation, name)) {
      return *error;
    }
    Result<std::unique_ptr<File>> file = open();
    if (!file) {
      return file.error();
    }
    return std::unique_ptr<File>(
        std::make_unique<FaultyFile>(std::move(*file), std::string(name), hook_)
    );
  }

  std::unique_ptr<FileSystem> inner_;
  FaultHook hook_;
};

}  // namespace

std::unique_ptr<FileSystem> make_faulty_file_system(
    std::unique_ptr<FileSystem> inner, FaultHook hook
) {
  return std::make_unique<FaultyFileSystem>(std::move(inner), std::move(hook));
}

}  // namespace afterglow
