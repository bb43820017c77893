#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/file_system.h"
#include "base/posix_platform.h"

namespace afterglow {

namespace {

Code code_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return Code::kNotFound;
    case EEXIST:
      return Code::kExists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return Code::kNoSpace;
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:  // O_NOFOLLOW, RESOLVE_NO_SYMLINKS
    case EXDEV:  // RESOLVE_BENEATH
      return Code::kPermission;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Code::kExhausted;
    default:
      return Code::kIo;
  }
}

Error failure(const char* operation, std::string_view name, int error) {
  std::string why = error == ELOOP ? "a symbolic link is refused"
                                   : std::generic_category().message(error);
  return {
      code_of(error),
      std::string("[files.") + operation + "] " + std::string(name) + ": " +
          why};
}

/// Repeats a system call that a signal interrupted.
template <class Call>
auto retry(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

FileInfo info_of(const struct stat& status) {
  FileInfo info;
  info.bytes = static_cast<std::uint64_t>(status.st_size);
  info.mtime_ns = platform_mtime_ns(status);
  info.inode = status.st_ino;
  info.is_directory = S_ISDIR(status.st_mode);
  info.is_regular = S_ISREG(status.st_mode);
  return info;
}

class PosixFile final : public File {
 public:
  PosixFile(Descriptor fd, std::string name)
      : fd_(std::move(fd)), name_(std::move(name)) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out)
      const override {
    std::size_t done = 0;
    while (done < out.size()) {
      ssize_t n = retry([&] {
        return ::pread(
            fd_.get(),
            out.data() + done,
            out.size() - done,
            static_cast<off_t>(offset + done)
        );
      });
      if (n < 0) {
        return failure("read", name_, errno);
      }
      if (n == 0) {
        break;
      }
      done += static_cast<std::size_t>(n);
    }
    return done;
  }

  Status write_at(std::uint64_t offset, std::span<const std::byte> data)
      override {
    std::size_t done = 0;
    while (done < data.size()) {
      ssize_t n = retry([&] {
        return ::pwrite(
            fd_.get(),
            data.data() + done,
            data.size() - done,
            static_cast<off_t>(offset + done)
        );
      });
      if (n < 0) {
        return failure("write", name_, errno);
      }
      if (n == 0) {  // no progress and no reason: never spin on it
        return failure("write", name_, EIO);
      }
      done += static_cast<std::size_t>(n);
    }
    return {};
  }

  Status sync() override {
    // No retry of a real failure: the kernel may have dropped the pages.
    if (retry([&] { return platform_sync_data(fd_.get()); }) < 0) {
      return failure("sync", name_, errno);
    }
    return {};
  }

  Status truncate(std::uint64_t bytes) override {
    auto call = [&] {
      return ::ftruncate(fd_.get(), static_cast<off_t>(bytes));
    };
    if (retry(call) < 0) {
      return failure("truncate", name_, errno);
    }
    return {};
  }

  Result<FileInfo> info() const override {
    struct stat status;
    if (::fstat(fd_.get(), &status) < 0) {
      return failure("info", name_, errno);
    }
    return info_of(status);
  }

  Status set_mtime(std::int64_t mtime_ns) override {
    constexpr std::int64_t kSecond = 1'000'000'000;
    struct timespec times[2] = {};
    times[0].tv_nsec = UTIME_OMIT;
    times[1].tv_sec = mtime_ns / kSecond;
    times[1].tv_nsec = mtime_ns % kSecond;
    if (times[1].tv_nsec < 0) {
      times[1].tv_nsec += kSecond;
      times[1].tv_sec -= 1;
    }
    if (::futimens(fd_.get(), times) < 0) {
      return failure("touch", name_, errno);
    }
    return {};
  }

  Status lock() override {
    if (retry([&] { return ::flock(fd_.get(), LOCK_EX); }) < 0) {
      return failure("lock", name_, errno);
    }
    return {};
  }

  Result<bool> try_lock() override {
    if (retry([&] { return ::flock(fd_.get(), LOCK_EX | LOCK_NB); }) == 0) {
      return true;
    }
    if (errno == EWOULDBLOCK) {
      return false;
    }
    return failure("lock", name_, errno);
  }

  Status unlock() override {
    if (::flock(fd_.get(), LOCK_UN) < 0) {
      return failure("unlock", name_, errno);
    }
    return {};
  }

 private:
  Descriptor fd_;
  std::string name_;
};

/// A name split at its last '/'.
struct SplitName {
  std::string parent;
  std::string base;
};

SplitName split(std::string_view name) {
  std::size_t slash = name.rfind('/');
  if (slash == std::string_view::npos) {
    return {"", std::string(name)};
  }
  return {
      std::string(name.substr(0, slash)), std::string(name.substr(slash + 1))};
}

class PosixFileSystem final : public FileSystem {
 public:
  PosixFileSystem(Descriptor root, bool is_network, bool has_openat2)
      : root_(std::move(root)),
        is_network_(is_network),
        has_openat2_(has_openat2) {}

  Result<std::unique_ptr<File>> open(std::string_view name) override {
    return open_file("open", name, O_RDONLY, 0);
  }

  Result<std::unique_ptr<File>> create(std::string_view name) override {
    return open_file("create", name, O_RDWR | O_CREAT | O_EXCL, 0600);
  }

  Result<std::unique_ptr<File>> open_or_create(std::string_view name) override {
    return open_file("open", name, O_RDWR | O_CREAT, 0600);
  }

  Status make_directory(std::string_view name) override {
    return in_parent("mkdir", name, [](int parent, const char* base) {
      int result = ::mkdirat(parent, base, 0700);
      struct stat status;
      if (result < 0 && errno == EEXIST &&
          ::fstatat(parent, base, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
          S_ISDIR(status.st_mode)) {
        return 0;
      }
      return result;
    });
  }

  Status link(std::string_view from, std::string_view to) override {
    return between("link", from, to, [](auto a, auto x, auto b, auto y) {
      return ::linkat(a, x, b, y, 0);
    });
  }

  Status rename(std::string_view from, std::string_view to) override {
    return between("rename", from, to, [](auto a, auto x, auto b, auto y) {
      return ::renameat(a, x, b, y);
    });
  }

  Status remove(std::string_view name) override {
    return in_parent("remove", name, [](int parent, const char* base) {
      return ::unlinkat(parent, base, 0);
    });
  }

  Result<FileInfo> info(std::string_view name) override {
    struct stat status;
    Status found = in_parent("info", name, [&](int parent, const char* base) {
      return ::fstatat(parent, base, &status, AT_SYMLINK_NOFOLLOW);
    });
    if (!found) {
      return found.error();
    }
    return info_of(status);
  }

  Result<std::vector<std::string>> list(std::string_view name) override {
    Result<Descriptor> directory = open_directory("list", name);
    if (!directory) {
      return directory.error();
    }
    DIR* stream = ::fdopendir(directory->get());
    if (stream == nullptr) {
      return failure("list", name, errno);
    }
    directory->release();  // closedir closes it
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(stream)) {
      std::string_view base = entry->d_name;
      if (base != "." && base != "..") {
        names.emplace_back(base);
      }
    }
    int error = errno;
    ::closedir(stream);
    if (error != 0) {
      return failure("list", name, error);
    }
    return names;
  }

  Status sync_directory(std::string_view name) override {
    Result<Descriptor> directory = open_directory("sync", name);
    if (!directory) {
      return directory.error();
    }
    if (retry([&] { return platform_sync_directory(directory->get()); }) < 0) {
      return failure("sync", name, errno);
    }
    return {};
  }

  Result<FreeSpace> free_space() override {
    struct statvfs status;
    if (retry([&] { return ::fstatvfs(root_.get(), &status); }) < 0) {
      return failure("free_space", "", errno);
    }
    std::uint64_t unit = status.f_frsize;
    return FreeSpace{status.f_bavail * unit, status.f_blocks * unit};
  }

  bool is_network() const override { return is_network_; }

 private:
  static constexpr int kCommonFlags =
      O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

  /// A descriptor of `name` below the root, through no symbolic link.
  int open_beneath(const std::string& name, int flags, mode_t mode) {
    flags |= kCommonFlags;
    if (has_openat2_.load(std::memory_order_relaxed)) {
      int fd = retry([&] {
        return platform_open_beneath(root_.get(), name.c_str(), flags, mode);
      });
      // ENOSYS: an old kernel; EPERM: also a sandbox that filters the call.
      if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) {
        return fd;
      }
      if (errno == ENOSYS) {
        has_openat2_.store(false, std::memory_order_relaxed);
      }
    }
    return open_by_parts(name, flags, mode);
  }

  int open_by_parts(const std::string& name, int flags, mode_t mode) {
    Descriptor current;
    std::size_t begin = 0;
    int parent = root_.get();
    for (std::size_t slash;
         (slash = name.find('/', begin)) != std::string::npos;
         begin = slash + 1) {
      std::string part = name.substr(begin, slash - begin);
      int next = retry([&] {
        return ::openat(
            parent, part.c_str(), O_RDONLY | O_DIRECTORY | kCommonFlags
        );
      });
      if (next < 0) {
        name_symbolic_link(parent, part);
        return -1;
      }
      current = Descriptor(next);
      parent = current.get();
    }
    return retry([&] {
      return ::openat(parent, name.c_str() + begin, flags, mode);
    });
  }

  /// With O_DIRECTORY Linux says ENOTDIR for a symbolic link: say ELOOP.
  static void name_symbolic_link(int parent, const std::string& part) {
    int error = errno;
    struct stat status;
    bool is_link =
        ::fstatat(parent, part.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(status.st_mode);
    errno = is_link ? ELOOP : error;
  }

  Result<Descriptor> open_directory(
      const char* operation, std::string_view name
  ) {
    if (Status valid = check_file_name(operation, name, true); !valid) {
      return valid.error();
    }
    std::string path = name.empty() ? "." : std::string(name);
    Descriptor fd(open_beneath(path, O_RDONLY | O_DIRECTORY, 0));
    if (fd.get() < 0) {
      name_symbolic_link(root_.get(), path);
      return failure(operation, name, errno);
    }
    return fd;
  }

  Result<std::unique_ptr<File>> open_file(
      const char* operation, std::string_view name, int flags, mode_t mode
  ) {
    if (Status valid = check_file_name(operation, name, false); !valid) {
      return valid.error();
    }
    Descriptor fd(open_beneath(std::string(name), flags, mode));
    if (fd.get() < 0) {
      return failure(operation, name, errno);
    }
    struct stat status;
    if (::fstat(fd.get(), &status) < 0) {
      return failure(operation, name, errno);
    }
    if (!S_ISREG(status.st_mode)) {
      return Error{
          Code::kPermission,
          std::string("[files.") + operation + "] " + std::string(name) +
              ": not a regular file"};
    }
    return std::unique_ptr<File>(
        std::make_unique<PosixFile>(std::move(fd), std::string(name))
    );
  }

  /// Runs call(parent descriptor, base name), which returns < 0 with errno.
  template <class Call>
  Status in_parent(const char* operation, std::string_view name, Call call) {
    if (Status valid = check_file_name(operation, name, false); !valid) {
      return valid;
    }
    SplitName parts = split(name);
    Result<Descriptor> parent = open_directory(operation, parts.parent);
    if (!parent) {
      return parent.error();
    }
    if (retry([&] { return call(parent->get(), parts.base.c_str()); }) < 0) {
      return failure(operation, name, errno);
    }
    return {};
  }

  template <class Call>
  Status between(
      const char* operation,
      std::string_view from,
      std::string_view to,
      Call call
  ) {
    if (Status valid = check_file_name(operation, from, false); !valid) {
      return valid;
    }
    SplitName parts = split(from);
    Result<Descriptor> source = open_directory(operation, parts.parent);
    if (!source) {
      return source.error();
    }
    return in_parent(operation, to, [&](int parent, const char* base) {
      return call(source->get(), parts.base.c_str(), parent, base);
    });
  }

  Descriptor root_;
  bool is_network_;
  std::atomic<bool> has_openat2_;
};

Error refused(const std::string& path, const std::string& why) {
  return {Code::kPermission, "[files.open] " + path + ": " + why};
}

std::string octal(mode_t mode) {
  char text[8];
  std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode & 07777));
  return text;
}

}  // namespace

Result<std::unique_ptr<FileSystem>> open_posix_file_system(
    const std::string& path, bool use_openat2
) {
  if (path.empty()) {
    return Error{Code::kInvalidArgument, "[files.open] empty directory path"};
  }
  // Missing parents are made too, as private as the directory itself.
  for (std::size_t slash = path.find('/', 1);;
       slash = path.find('/', slash + 1)) {
    std::string prefix = path.substr(0, slash);
    if (::mkdir(prefix.c_str(), 0700) < 0 && errno != EEXIST &&
        slash == std::string::npos) {
      // The directory may be there although it cannot be made (read-only).
      struct stat status;
      int error = errno;
      if (::stat(prefix.c_str(), &status) < 0) {
        return failure("open", path, error);
      }
    }
    if (slash == std::string::npos) {
      break;
    }
  }
  Descriptor root(retry([&] {
    return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }));
  struct stat status;
  if (root.get() < 0 || ::fstat(root.get(), &status) < 0) {
    return failure("open", path, errno);
  }
  if (status.st_uid != ::geteuid()) {
    return refused(
        path,
        "belongs to user id " + std::to_string(status.st_uid) +
            ", not to this user (" + std::to_string(::geteuid()) +
            "); use a directory of your own"
    );
  }
  if ((status.st_mode & 0022) != 0) {
    return refused(
        path,
        "others may write to it (mode " + octal(status.st_mode) +
            "); type: chmod 700 '" + path + "'"
    );
  }
  bool is_network = platform_is_network(root.get());
  return std::unique_ptr<FileSystem>(std::make_unique<PosixFileSystem>(
      std::move(root), is_network, use_openat2
  ));
}

Result<std::unique_ptr<File>> open_user_file(const std::string& path) {
  // O_NONBLOCK: a FIFO is told apart below, not waited for.
  Descriptor fd(retry([&] {
    return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  }));
  struct stat status;
  if (fd.get() < 0 || ::fstat(fd.get(), &status) < 0) {
    return failure("open", path, errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return refused(path, "not a regular file");
  }
  return std::unique_ptr<File>(std::make_unique<PosixFile>(std::move(fd), path)
  );
}

Status replace_user_file(
    const std::string& path, const std::function<Status(File&)>& write
) {
  struct stat status;
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return refused(path, "not a regular file");
  }
  std::string temporary = path + ".XXXXXX";
  Descriptor fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (fd.get() < 0) {
    return failure("create", path, errno);
  }
  PosixFile file(std::move(fd), path);
  Status written = write(file);
  if (written) {
    written = file.sync();
  }
  if (written && ::rename(temporary.c_str(), path.c_str()) < 0) {
    written = failure("rename", path, errno);
  }
  if (!written) {
    ::unlink(temporary.c_str());
    return written;
  }
  std::size_t slash = path.rfind('/');
  std::string parent = slash == std::string::npos ? "."
                       : slash == 0               ? "/"
                                                  : path.substr(0, slash);
  Descriptor directory(retry([&] {
    return ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }));
  if (directory.get() < 0 ||
      retry([&] { return platform_sync_directory(directory.get()); }) < 0) {
    return failure("sync", parent, errno);
  }
  return {};
}

}  // namespace afterglow
