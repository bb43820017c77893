#include "server/private_file.h"

#include <sys/stat.h>

namespace afterglow {

bool is_exposed(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         (info.st_mode & (S_IRWXG | S_IRWXO)) != 0;
}

}  // namespace afterglow
