#include "store/secret.h"

#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "store/names.h"
#include "store/temporary.h"

namespace afterglow {

namespace {

Result<std::string> read_secret(FileSystem& files) {
  auto file = files.open(names::kSecret);
  if (!file) {
    return file.error();
  }
  std::string secret(kSecretBytes + 1, '\0');
  auto count = (*file)->read_at(
      0, std::as_writable_bytes(std::span(secret.data(), secret.size()))
  );
  if (!count) {
    return count.error();
  }
  if (*count != kSecretBytes) {
    return Error{
        Code::kCorrupt,
        std::string("[store.secret] ") + names::kSecret + " is not " +
            std::to_string(kSecretBytes) +
            " bytes long; remove it to get a new one, which makes the blocks "
            "of all namespaces useless"};
  }
  secret.resize(kSecretBytes);
  return secret;
}

Status make_secret(FileSystem& files) {
  std::array<std::byte, kSecretBytes> bytes;
  if (::getentropy(bytes.data(), bytes.size()) != 0) {
    return Error{
        Code::kIo,
        std::string("[store.secret] no random bytes: ") + std::strerror(errno)};
  }
  auto temporary = Temporary::create(files);
  if (!temporary) {
    return temporary.error();
  }
  if (Status written = temporary->file().write_at(0, bytes); !written) {
    return written;
  }
  if (Status synced = temporary->file().sync(); !synced) {
    return synced;
  }
  // Never replaced: whoever is first decides for all.
  Status linked = files.link(temporary->name(), names::kSecret);
  if (!linked && linked.error().code != Code::kExists) {
    return linked;
  }
  return files.sync_directory(names::kVersion);
}

}  // namespace

Result<std::string> read_or_make_secret(FileSystem& files) {
  auto secret = read_secret(files);
  if (secret || secret.error().code != Code::kNotFound) {
    return secret;
  }
  if (Status made = make_secret(files); !made) {
    return made.error();
  }
  return read_secret(files);
}

}  // namespace afterglow
