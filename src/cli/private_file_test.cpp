#include "cli/private_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace afterglow {
namespace {

TEST(PrivateFile, AFileOpenToOthersIsNoticed) {
  std::string name =
      (std::filesystem::temp_directory_path() / "afterglow-private-XXXXXX")
          .string();
  const std::filesystem::path folder = ::mkdtemp(name.data());
  const std::string path = (folder / "keys").string();
  std::ofstream(path) << "alpha\n";
  for (const mode_t mode : {0640, 0604, 0620, 0644}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_TRUE(is_exposed(path)) << std::oct << mode;
  }
  for (const mode_t mode : {0600, 0400}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_FALSE(is_exposed(path)) << std::oct << mode;
  }
  EXPECT_FALSE(is_exposed((folder / "missing").string()));
  EXPECT_FALSE(is_exposed("/dev/null"));
  std::filesystem::remove_all(folder);
}

TEST(PrivateFile, CredentialsOfSystemdAreKnownByTheirFolder) {
  ::unsetenv("CREDENTIALS_DIRECTORY");
  EXPECT_FALSE(is_credential("/run/credentials/a.service/keys"));
  ::setenv("CREDENTIALS_DIRECTORY", "/run/credentials/a.service", 1);
  EXPECT_TRUE(is_credential("/run/credentials/a.service/keys"));
  EXPECT_FALSE(is_credential("/run/credentials/a.service2/keys"));
  EXPECT_FALSE(is_credential("/etc/keys"));
  ::unsetenv("CREDENTIALS_DIRECTORY");
}

}  // namespace
}  // namespace afterglow
