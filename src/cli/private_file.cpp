#include "cli/private_file.h"

#include <sys/stat.h>

#include <cstdlib>

namespace afterglow {

bool is_exposed(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         (info.st_mode & (S_IRWXG | S_IRWXO)) != 0;
}

bool is_credential(const std::string& path) {
  const char* folder = std::getenv("CREDENTIALS_DIRECTORY");
  return folder != nullptr && *folder != 0 &&
         path.starts_with(std::string(folder) + "/");
}

}  // namespace afterglow
