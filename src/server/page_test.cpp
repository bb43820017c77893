#include "server/page.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "server/api_fixture.h"
#include "server/embedded_file.h"

namespace afterglow {
namespace {

namespace fs = std::filesystem;
using testing::ApiTest;
using testing::TestClient;

class PageTest : public ApiTest {};

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string header(const std::string& head, const std::string& name) {
  const std::size_t at = head.find("\r\n" + name + ": ");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + name.size() + 4;
  return head.substr(begin, head.find('\r', begin) - begin);
}

TEST_F(PageTest, EveryFileOfTheFolderIsServedAsItIs) {
  const fs::path folder = fs::path(AFTERGLOW_SOURCE_DIR) / "web" / "page";
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    const std::string name = fs::relative(entry.path(), folder);
    SCOPED_TRACE(name);
    const auto response = get("/" + name);
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, content(entry.path()));
    EXPECT_NE(
        header(response.head, "Content-Type"), "application/octet-stream"
    );
    EXPECT_EQ(header(response.head, "X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(header(response.head, "Referrer-Policy"), "no-referrer");
    EXPECT_EQ(header(response.head, "Cache-Control"), "no-cache");
    EXPECT_NE(
        header(response.head, "Content-Security-Policy")
            .find("default-src 'self'"),
        std::string::npos
    );
  }
  EXPECT_EQ(files, kPageFiles.size());
  EXPECT_GT(files, 10u);
}

TEST_F(PageTest, TheRootIsTheIndexBeforeAModelIsLoaded) {
  const auto root = get("/?utm=1");
  EXPECT_EQ(root.status, 200);
  EXPECT_EQ(header(root.head, "Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(root.body, get("/index.html").body);
}

TEST_F(PageTest, AFileThatTheClientHasIsNotSentAgain) {
  const std::string tag = header(get("/").head, "ETag");
  ASSERT_FALSE(tag.empty());
  for (const std::string& known :
       {tag, "W/" + tag, "\"other\" ,  " + tag, std::string("*")}) {
    SCOPED_TRACE(known);
    TestClient client(server_->port());
    client.request("GET", "/", "If-None-Match: " + known + "\r\n");
    ASSERT_TRUE(client.read_until("\r\n\r\n"));
    const std::string head = client.unread();
    EXPECT_EQ(head.find("HTTP/1.1 304 Not Modified\r\n"), 0u);
    EXPECT_EQ(header(head, "ETag"), tag);
    // No body follows: the next answer begins where the head ends.
    client.get("/health");
    ASSERT_TRUE(client.read_until("loading"));
    EXPECT_EQ(
        client.unread().find("\r\n\r\nHTTP/1.1 503"), head.find("\r\n\r\n")
    );
  }
  for (const std::string other : {"\"other\"", "", ",", "W/", "\"\""}) {
    const auto response =
        request("GET", "/", "If-None-Match: " + other + "\r\n");
    EXPECT_EQ(response.status, 200) << other;
  }
}

TEST_F(PageTest, DifferentFilesHaveDifferentTags) {
  EXPECT_NE(
      header(get("/").head, "ETag"), header(get("/js/main.js").head, "ETag")
  );
}

TEST_F(PageTest, HeadTellsTheLengthAndSendsNoBody) {
  const std::size_t size = get("/").body.size();
  TestClient client(server_->port());
  client.request("HEAD", "/", "Connection: close\r\n");
  ASSERT_TRUE(client.read_until("\r\n\r\n"));
  const std::string head = client.unread();
  EXPECT_EQ(header(head, "Content-Length"), std::to_string(size));
  EXPECT_FALSE(client.read_until("<!doctype html>"));
}

TEST_F(PageTest, TheDescriptionOfTheApiNamesItsPaths) {
  const auto response = get("/openapi.json");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(header(response.head, "Content-Type"), "application/json");
  const auto spec = nlohmann::json::parse(response.body);
  EXPECT_EQ(spec["openapi"], "3.1.0");
  EXPECT_TRUE(spec["paths"].contains("/v1/chat/completions"));
  EXPECT_EQ(spec["paths"]["/health"]["get"]["security"].size(), 0u);
}

TEST_F(PageTest, OtherMethodsAreRefused) {
  const auto response = request("POST", "/", {}, "{}");
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(header(response.head, "Allow"), "GET, HEAD");
}

TEST_F(PageTest, NothingElseIsAFile) {
  for (const std::string path :
       {"/js",
        "/js/",
        "/nothing.js",
        "//index.html",
        "/js/../index.html",
        "/%2e%2e/types.d.ts",
        "/index.html/",
        "/INDEX.HTML",
        "/types.d.ts"}) {
    EXPECT_EQ(get(path).status, 404) << path;
  }
}

}  // namespace
}  // namespace afterglow
