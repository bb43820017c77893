#include "store/secret.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/faulty_file_system.h"
#include "base/memory_file_system.h"
#include "store/testing.h"

namespace afterglow {
namespace {

using namespace testing;

TEST(Secret, IsMadeOnceAndTheSameForAll) {
  TemporaryDirectory directory;
  auto files = [&] { return *open_posix_file_system(directory.path()); };
  Process a(files());
  Process b(files());
  auto first = a.store().namespace_secret();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->size(), kSecretBytes);
  EXPECT_EQ(*b.store().namespace_secret(), *first);
  struct stat status;
  ASSERT_EQ(::stat((directory.path() + "/v1/secret").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  TemporaryDirectory elsewhere;
  Process c(*open_posix_file_system(elsewhere.path()));
  EXPECT_NE(*c.store().namespace_secret(), *first);
}

TEST(Secret, WhoeverIsFirstDecides) {
  MemoryDisk disk;
  std::string theirs;
  auto other = disk.file_system();
  ASSERT_TRUE(other->make_directory("v1"));
  ASSERT_TRUE(other->make_directory("v1/tmp"));
  auto files = make_faulty_file_system(
      disk.file_system(),
      [&](auto operation, auto) -> std::optional<Error> {
        if (operation == "link") {
          theirs = *read_or_make_secret(*other);
        }
        return std::nullopt;
      }
  );
  auto secret = read_or_make_secret(*files);
  ASSERT_TRUE(secret);
  EXPECT_EQ(*secret, theirs);
  EXPECT_TRUE(list(*other, "v1/tmp").empty());
}

TEST(Secret, AnyFailureIsAnErrorAndAPowerCutLosesNoneThatWasGiven) {
  for (std::uint64_t n = 0;; ++n) {
    SCOPED_TRACE(n);
    MemoryDisk disk;
    auto plain = disk.file_system();
    for (const char* name : {"v1", "v1/tmp"}) {
      ASSERT_TRUE(plain->make_directory(name));
    }
    ASSERT_TRUE(plain->sync_directory(""));
    ASSERT_TRUE(plain->sync_directory("v1"));
    std::uint64_t count = 0;
    auto files = make_faulty_file_system(
        disk.file_system(),
        [&](auto, auto) -> std::optional<Error> {
          return count++ == n ? std::optional(Error{Code::kIo, "[test]"})
                              : std::nullopt;
        }
    );
    auto given = read_or_make_secret(*files);
    disk.power_cut();
    auto after = read_or_make_secret(*plain);
    ASSERT_TRUE(after);
    if (given) {
      EXPECT_EQ(*after, *given);
    }
    if (count <= n) {
      EXPECT_GE(n, 6u);
      break;
    }
  }
}

TEST(Secret, AnotherLengthIsRefused) {
  MemoryDisk disk;
  auto files = disk.file_system();
  ASSERT_TRUE(files->make_directory("v1"));
  ASSERT_TRUE(files->make_directory("v1/tmp"));
  for (std::size_t bytes : {0, 31, 33, 500}) {
    write_file(*files, "v1/secret", std::vector<std::byte>(bytes));
    auto secret = read_or_make_secret(*files);
    ASSERT_FALSE(secret) << bytes;
    EXPECT_EQ(secret.error().code, Code::kCorrupt);
  }
}

}  // namespace
}  // namespace afterglow
