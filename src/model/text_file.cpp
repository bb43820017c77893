#include "model/text_file.h"

#include "model/mapped_file.h"

namespace afterglow {

Result<std::string> read_text_file(const std::string& path) {
  constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
  const auto file = MappedFile::open(path);
  if (!file) {
    return file.error();
  }
  const auto bytes = file->bytes();
  if (bytes.size() > kMaxBytes) {
    return Error{
        Code::kInvalidArgument, "[model.open] " + path + ": over 256 MiB"};
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace afterglow
