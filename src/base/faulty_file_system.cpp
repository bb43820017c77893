#include "base/faulty_file_system.h"

#include <string>
#include <utility>

namespace afterglow {

namespace {

/// The two hooks around each operation.
struct Hooks {
  FaultHook before;
  AfterHook after;

  /// Runs the operation unless the hook objects.
  template <class Run>
  auto around(std::string_view operation, std::string_view name, Run run) const
      -> decltype(run()) {
    return around(operation, name, run, [](const Error& error) {
      return error;
    });
  }

  /// The same; when the hook objects, refused(error) runs instead.
  template <class Run, class Refused>
  auto around(
      std::string_view operation,
      std::string_view name,
      Run run,
      Refused refused
  ) const -> decltype(run()) {
    auto error = before(operation, name);
    decltype(run()) result = error ? decltype(run())(refused(*error)) : run();
    if (after) {
      after(operation, name);
    }
    return result;
  }
};

class FaultyFile final : public File {
 public:
  FaultyFile(
      std::unique_ptr<File> inner,
      std::string name,
      std::shared_ptr<const Hooks> hooks
  )
      : inner_(std::move(inner)),
        name_(std::move(name)),
        hooks_(std::move(hooks)) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out)
      const override {
    return hooks_->around("read", name_, [&] {
      return inner_->read_at(offset, out);
    });
  }
  Status write_at(std::uint64_t offset, std::span<const std::byte> data)
      override {
    return hooks_->around(
        "write",
        name_,
        [&] { return inner_->write_at(offset, data); },
        [&](const Error& error) {
          (void)inner_->write_at(offset, data.first(data.size() / 2));
          return error;
        }
    );
  }
  Status sync() override {
    return hooks_->around(
        "sync",
        name_,
        [&] { return lost_ ? Status() : inner_->sync(); },
        [&](const Error& error) {
          lost_ = true;
          return error;
        }
    );
  }
  Status truncate(std::uint64_t bytes) override {
    return hooks_->around("truncate", name_, [&] {
      return inner_->truncate(bytes);
    });
  }
  Result<FileInfo> info() const override {
    return hooks_->around("file_info", name_, [&] { return inner_->info(); });
  }
  Status set_mtime(std::int64_t mtime_ns) override {
    return hooks_->around("set_mtime", name_, [&] {
      return inner_->set_mtime(mtime_ns);
    });
  }
  Status lock() override {
    return hooks_->around("lock", name_, [&] { return inner_->lock(); });
  }
  Result<bool> try_lock() override {
    return hooks_->around("try_lock", name_, [&] {
      return inner_->try_lock();
    });
  }
  Status unlock() override {
    return hooks_->around("unlock", name_, [&] { return inner_->unlock(); });
  }

 private:
  std::unique_ptr<File> inner_;
  std::string name_;
  std::shared_ptr<const Hooks> hooks_;
  bool lost_ = false;
};

class FaultyFileSystem final : public FileSystem {
 public:
  FaultyFileSystem(std::unique_ptr<FileSystem> inner, Hooks hooks)
      : inner_(std::move(inner)),
        hooks_(std::make_shared<const Hooks>(std::move(hooks))) {}

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
    return hooks_->around("make_directory", name, [&] {
      return inner_->make_directory(name);
    });
  }
  Status link(std::string_view from, std::string_view to) override {
    return hooks_->around("link", from, [&] { return inner_->link(from, to); });
  }
  Status rename(std::string_view from, std::string_view to) override {
    return hooks_->around("rename", from, [&] {
      return inner_->rename(from, to);
    });
  }
  Status remove(std::string_view name) override {
    return hooks_->around("remove", name, [&] { return inner_->remove(name); });
  }
  Result<FileInfo> info(std::string_view name) override {
    return hooks_->around("info", name, [&] { return inner_->info(name); });
  }
  Result<std::vector<std::string>> list(std::string_view name) override {
    return hooks_->around("list", name, [&] { return inner_->list(name); });
  }
  Status sync_directory(std::string_view name) override {
    return hooks_->around("sync_directory", name, [&] {
      return inner_->sync_directory(name);
    });
  }
  Result<FreeSpace> free_space() override {
    return hooks_->around("free_space", "", [&] {
      return inner_->free_space();
    });
  }
  bool is_network() const override { return inner_->is_network(); }

 private:
  template <class Open>
  Result<std::unique_ptr<File>> wrap(
      std::string_view operation, std::string_view name, Open open
  ) {
    Result<std::unique_ptr<File>> file =
        hooks_->around(operation, name, [&] { return open(); });
    if (!file) {
      return file.error();
    }
    return std::unique_ptr<File>(std::make_unique<FaultyFile>(
        std::move(*file), std::string(name), hooks_
    ));
  }

  std::unique_ptr<FileSystem> inner_;
  std::shared_ptr<const Hooks> hooks_;
};

}  // namespace

std::unique_ptr<FileSystem> make_faulty_file_system(
    std::unique_ptr<FileSystem> inner, FaultHook hook, AfterHook after
) {
  return std::make_unique<FaultyFileSystem>(
      std::move(inner), Hooks{std::move(hook), std::move(after)}
  );
}

}  // namespace afterglow
