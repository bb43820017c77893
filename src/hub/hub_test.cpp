#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <thread>

#include "hub/fetch_model.h"
#include "hub/installed.h"

namespace afterglow {
namespace {

namespace fs = std::filesystem;

const std::string kCommit(40, 'a');

/// A home for the hub of its own, and no network.
class Hub : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "agXXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    set("HF_HOME", (root_ / "home").string());
    for (const char* other :
         {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_ENDPOINT", "HF_TOKEN"}) {
      set(other, "");
    }
    set("HF_HUB_OFFLINE", "1");
  }
  void TearDown() override {
    for (const auto& [name, value] : before_) {
      value ? ::setenv(name.c_str(), value->c_str(), 1)
            : ::unsetenv(name.c_str());
    }
    fs::remove_all(root_);
  }
  void set(const std::string& name, const std::string& value) {
    const char* old = ::getenv(name.c_str());
    before_.try_emplace(
        name, old == nullptr ? std::nullopt : std::optional<std::string>(old)
    );
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  void write(const fs::path& path, std::size_t size) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << std::string(size, 'x');
  }
  fs::path repository(const std::string& folder) {
    return root_ / "home/hub" / folder;
  }
  void add(const std::string& folder, const std::string& file, int size) {
    write(repository(folder) / "snapshots" / kCommit / file, size);
    fs::create_directories(repository(folder) / "refs");
    std::ofstream(repository(folder) / "refs/main") << kCommit;
  }
  /// The error's text, which must begin so.
  std::string refusal(const std::string& name, Code code) {
    const auto fetched = fetch_model(name);
    EXPECT_FALSE(fetched.ok()) << name;
    if (fetched.ok()) return "";
    EXPECT_EQ(fetched.error().code, code) << fetched.error().message;
    EXPECT_TRUE(fetched.error().message.starts_with("[hub.fetch] "));
    return fetched.error().message;
  }

  fs::path root_;

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(Hub, APathThatExistsWins) {
  write(root_ / "o/n", 1);
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  const auto fetched = fetch_model("o/n");
  fs::current_path(before);
  ASSERT_TRUE(fetched.ok()) << fetched.error().message;
  EXPECT_EQ(*fetched, "o/n");
}

TEST_F(Hub, WhatLooksLikeAPathIsNotLookedForElsewhere) {
  for (const char* name :
       {"/none/m.gguf",
        "./o/n",
        "../n",
        "~/n",
        "models/m.gguf",
        "n",
        "a/b/c"}) {
    const std::string message = refusal(name, Code::kNotFound);
    EXPECT_NE(message.find("no file or folder"), std::string::npos) << message;
    EXPECT_NE(message.find(name), std::string::npos) << message;
  }
}

TEST_F(Hub, APathThatCannotBeLookedAtIsLeftToTheLoader) {
  const fs::path loop = root_ / "loop";
  fs::create_symlink(loop, loop);
  const std::string name = (loop / "m.gguf").string();
  const auto fetched = fetch_model(name);
  ASSERT_TRUE(fetched.ok()) << fetched.error().message;
  EXPECT_EQ(*fetched, name);
}

TEST_F(Hub, ABadNameIsRefused) {
  const std::string message = refusal("o/n m", Code::kInvalidArgument);
  EXPECT_NE(message.find("organization/name"), std::string::npos) << message;
}

TEST_F(Hub, OfflineWhatIsMissingIsNamed) {
  const std::string message = refusal("o/n", Code::kNotFound);
  for (const char* part :
       {"o/n", "home/hub", "HF_HUB_OFFLINE", "no file or folder 'o/n'"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST_F(Hub, LocalOnlyAsksNobody) {
  set("HF_HUB_OFFLINE", "0");
  set("HF_ENDPOINT", "http://127.0.0.1:1");
  FetchOptions options;
  options.local_only = options.refresh = true;
  const auto missing = fetch_model("o/n", options);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Code::kNotFound) << missing.error().message;
  EXPECT_EQ(missing.error().message.find("HF_HUB_OFFLINE"), std::string::npos);
  add("models--o--n", "m-Q8_0.gguf", 10);
  EXPECT_TRUE(fetch_model("o/n", options).ok());
}

TEST_F(Hub, AnUnreachableHubIsNamed) {
  set("HF_HUB_OFFLINE", "0");
  set("NO_PROXY", "127.0.0.1");
  set("HF_ENDPOINT", "http://127.0.0.1:1");
  const std::string message = refusal("o/n", Code::kUnavailable);
  EXPECT_NE(message.find("http://127.0.0.1:1"), std::string::npos) << message;
}

TEST_F(Hub, AWholeModelNeedsNoNetwork) {
  for (const char* file : {"config.json", "model.safetensors"}) {
    add("models--o--n", file, 10);
  }
  refusal("o/n", Code::kNotFound);  // the tokenizer is missing
  add("models--o--n", "tokenizer.json", 10);
  const auto fetched = fetch_model("o/n");
  ASSERT_TRUE(fetched.ok()) << fetched.error().message;
  EXPECT_EQ(
      *fetched, (repository("models--o--n") / "snapshots" / kCommit).string()
  );
}

TEST_F(Hub, ANameThatFitsSeveralFilesListsThem) {
  add("models--o--n", "m-Q4_0.gguf", 10);
  add("models--o--n", "m-Q8_0.gguf", 10);
  EXPECT_TRUE(fetch_model("o/n:Q8_0").ok());
  const std::string message = refusal("o/n", Code::kInvalidArgument);
  EXPECT_NE(message.find("o/n:m-Q4_0.gguf"), std::string::npos) << message;
}

TEST_F(Hub, ADownloadCanBeStoppedBeforeItsFirstByte) {
  set("HF_HUB_OFFLINE", "0");
  set("NO_PROXY", "127.0.0.1");
  set("HF_ENDPOINT", "http://127.0.0.1:1");
  std::stop_source stop;
  stop.request_stop();
  const auto stopped = fetch_model("o/n", {.cancel = stop.get_token()});
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, Code::kCancelled);
}

TEST_F(Hub, WhatProgressThrowsComesOut) {
  set("HF_HUB_OFFLINE", "0");
  set("NO_PROXY", "127.0.0.1");
  set("HF_ENDPOINT", "http://127.0.0.1:1");
  FetchOptions options;
  options.progress = [](const DownloadProgress&) {
    throw std::runtime_error("enough");
  };
  EXPECT_THROW((void)fetch_model("o/n", options), std::runtime_error);
}

TEST_F(Hub, ModelsOfTheCacheAndOfFoldersAreListed) {
  add("models--o--n", "m-Q4_0.gguf", 10);
  write(repository("models--o--begun") / "blobs/e.incomplete", 7);
  write(root_ / "models/local.gguf", 20);
  write(root_ / "models/notes.txt", 20);
  write(root_ / "models/folder/config.json", 5);
  write(root_ / "models/folder/model.safetensors", 25);

  const fs::path folders[] = {root_ / "none", root_ / "models"};
  const auto models = installed_models(folders);
  ASSERT_TRUE(models.ok()) << models.error().message;
  ASSERT_EQ(models->size(), 4u);
  const InstalledModel& folder = models->at(0);
  EXPECT_EQ(folder.name, (root_ / "models/folder").string());
  EXPECT_EQ(folder.bytes, 30u);
  EXPECT_EQ(folder.format, "safetensors");
  EXPECT_EQ(models->at(1).path, (root_ / "models/local.gguf").string());
  const InstalledModel& begun = models->at(2);
  EXPECT_EQ(begun.name, "o/begun");
  EXPECT_FALSE(begun.complete);
  EXPECT_EQ(begun.bytes, 7u);
  const InstalledModel& hub = models->at(3);
  EXPECT_EQ(hub.name, "o/n:m-Q4_0.gguf");
  EXPECT_EQ(hub.revision, "main");
  EXPECT_TRUE(hub.complete);
  EXPECT_EQ(fetch_model(hub.name).value(), hub.path);
}

TEST_F(Hub, AnEmptyMachineHasNoModels) {
  const auto models = installed_models({});
  ASSERT_TRUE(models.ok());
  EXPECT_TRUE(models->empty());
  EXPECT_EQ(hub_cache().value(), (root_ / "home/hub").string());
}

}  // namespace
}  // namespace afterglow
