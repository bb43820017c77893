#include "server/cache_api.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "server/api_fixture.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;
using testing::ApiTest;

class CacheApiTest : public ApiTest {
 protected:
  /// Leaves a prompt of that text in the cache.
  void fill(
      const std::string& prompt,
      const std::string& headers = {},
      const std::string& key = {}
  ) {
    json body = {{"prompt", prompt}};
    if (!key.empty()) body["prompt_cache_key"] = key;
    EXPECT_EQ(
        request("POST", "/v1/completions", headers, body.dump()).status, 200
    );
  }
  json entries(const std::string& headers = {}, const std::string& query = {}) {
    const auto response = request("GET", "/v1/cache" + query, headers);
    EXPECT_EQ(response.status, 200) << response.body;
    const json body = json::parse(response.body);
    EXPECT_EQ(body["entry_count"], body["entries"].size());
    return body["entries"];
  }
  json error_of(const testing::TestClient::Response& response, int status) {
    EXPECT_EQ(response.status, status) << response.body;
    return json::parse(response.body)["error"];
  }
};

std::string bearer(const std::string& key) {
  return "Authorization: Bearer " + key + "\r\n";
}

TEST(ApiKey, IsTakenFromEitherHeader) {
  const auto key = [](std::string authorization, std::string x_api_key) {
    HttpRequest request;
    request.authorization = std::move(authorization);
    request.x_api_key = std::move(x_api_key);
    return api_key_of(request);
  };
  EXPECT_EQ(key("", ""), "");
  EXPECT_EQ(key("Bearer sk-1", ""), "sk-1");
  EXPECT_EQ(key("bearer   sk-1", "sk-2"), "sk-1");
  EXPECT_EQ(key("", "sk-2"), "sk-2");
  EXPECT_EQ(key("Basic dTpw", ""), "Basic dTpw");
  EXPECT_EQ(key("Bearer", ""), "Bearer");
}

TEST_F(CacheApiTest, EntriesTellWhatTheyShareAndWhereTheyLie) {
  ready();
  fill(std::string(100, 'a') + std::string(500, 'b'));
  fill(std::string(300, 'a'));
  const json list = entries();
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0]["order"], 1);  // after "aaa..."
  EXPECT_EQ(list[0]["shared_tokens"], 100);
  EXPECT_EQ(list[0]["ram_blocks"], 3);
  EXPECT_EQ(list[0]["disk_blocks"], 0);
  EXPECT_EQ(list[1]["order"], 0);
  EXPECT_EQ(list[1]["shared_tokens"], 0);
  EXPECT_EQ(list[1]["ram_blocks"], 2);
  const double block = list[1]["bytes"].get<double>() / 2;
  EXPECT_GT(block, 0);
  EXPECT_EQ(list[0]["bytes"], 3 * block);
}

TEST_F(CacheApiTest, AnEntryIsPinnedUnpinnedAndDeleted) {
  ready();
  fill(std::string(300, 'a'));
  fill(std::string(600, 'b'));
  ASSERT_EQ(entries().size(), 2U);
  const json entry = entries()[1];
  EXPECT_EQ(entry["tokens"], 600);
  EXPECT_EQ(entry["blocks"], 3);
  EXPECT_EQ(entry["pinned"], false);
  EXPECT_TRUE(entry["ttl_seconds"].is_null());
  const std::string id = entry["id"];
  EXPECT_EQ(id.size(), 64U + 4U);

  const auto pinned = post("/v1/cache/pin", {{"id", id}});
  EXPECT_EQ(pinned.status, 200) << pinned.body;
  EXPECT_EQ(json::parse(pinned.body)["pinned"], true);
  EXPECT_EQ(json::parse(pinned.body)["id"], id);
  EXPECT_EQ(entries()[1]["pinned"], true);
  // A short form, in the query.
  const auto unpinned =
      request("POST", "/v1/cache/unpin?id=" + id.substr(0, 12));
  EXPECT_EQ(unpinned.status, 200) << unpinned.body;
  EXPECT_EQ(entries()[1]["pinned"], false);

  // Deleting by id asks for no unpinning.
  post("/v1/cache/pin", {{"id", id}});
  const auto deleted =
      request("DELETE", "/v1/cache", "", json{{"id", id}}.dump());
  EXPECT_EQ(deleted.status, 200) << deleted.body;
  EXPECT_EQ(json::parse(deleted.body)["entries"], 1);
  EXPECT_EQ(json::parse(deleted.body)["blocks"], 3);
  ASSERT_EQ(entries().size(), 1U);
  EXPECT_EQ(entries()[0]["tokens"], 300);
}

TEST_F(CacheApiTest, DeletingAllSaysWhatWent) {
  ready();
  fill(std::string(300, 'a'));
  fill(std::string(256, 'a') + std::string(300, 'b'));
  const auto deleted = request("DELETE", "/v1/cache");
  EXPECT_EQ(json::parse(deleted.body)["entries"], 2);
  EXPECT_EQ(json::parse(deleted.body)["blocks"], 4);  // one is shared
  EXPECT_EQ(entries().size(), 0U);
  const auto again = request("DELETE", "/v1/cache");
  EXPECT_EQ(json::parse(again.body)["blocks"], 0);
}

TEST_F(CacheApiTest, AnEntrysSharedBlocksStay) {
  ready();
  fill(std::string(300, 'a'));
  fill(std::string(256, 'a') + std::string(300, 'b'));
  const std::string id = entries()[1]["id"];
  const auto deleted = request("DELETE", "/v1/cache?id=" + id);
  EXPECT_EQ(json::parse(deleted.body)["blocks"], 2);
  EXPECT_EQ(entries()[0]["tokens"], 300);
}

/// Two prompts whose blocks' ids begin with the same four digits.
std::pair<std::string, std::string> alike_prompts() {
  std::map<std::string, std::string> seen;
  for (int i = 1000;; ++i) {
    const std::string prompt = "prompt " + std::to_string(i);
    const std::vector<Token> tokens(prompt.begin(), prompt.end());
    const std::string digits =
        block_id(root_id({}, {}, ""), 0, tokens).hex().substr(0, 4);
    const auto [first, is_new] = seen.emplace(digits, prompt);
    if (!is_new) return {first->second, prompt};
  }
}

TEST_F(CacheApiTest, WhatItCannotDoIsSaidByName) {
  ready();
  const auto [one, other] = alike_prompts();
  fill(one);
  fill(other);
  const std::string shared = entries()[0]["id"].get<std::string>().substr(0, 4);
  for (const char* path : {"/v1/cache/pin", "/v1/cache/unpin"}) {
    EXPECT_EQ(error_of(post(path, json::object()), 400)["param"], "id");
    const json missing =
        error_of(post(path, {{"id", std::string(64, '0')}}), 404);
    EXPECT_EQ(missing["param"], "id");
    EXPECT_EQ(missing["code"], "not_found");
    const json ambiguous = error_of(post(path, {{"id", shared}}), 400);
    EXPECT_EQ(ambiguous["param"], "id");
    EXPECT_NE(
        ambiguous["message"].get<std::string>().find("more than one"),
        std::string::npos
    );
    EXPECT_EQ(error_of(post(path, {{"id", "wxyz"}}), 400)["param"], "id");
    EXPECT_EQ(error_of(post(path, {{"id", 5}}), 400)["param"], "id");
  }
  for (const auto& [id, status] :
       {std::pair{std::string(64, 'f'), 404}, std::pair{shared, 400}}) {
    const auto refused = request("DELETE", "/v1/cache?id=" + id);
    EXPECT_EQ(error_of(refused, status)["param"], "id");
  }
  EXPECT_EQ(entries().size(), 2U);
}

TEST_F(CacheApiTest, UnknownAndRepeatedMembersAreRefused) {
  ready();
  const auto param = [&](const std::string& method,
                         const std::string& path,
                         const std::string& body = {}) {
    return error_of(request(method, path, "", body), 400)["param"];
  };
  EXPECT_EQ(param("GET", "/v1/cache?id=0"), "id");
  EXPECT_EQ(param("GET", "/v1/cache?limit=3"), "limit");
  EXPECT_EQ(param("POST", "/v1/cache/flush", R"({"id":"0"})"), "id");
  EXPECT_EQ(param("DELETE", "/v1/cache?all=true"), "all");
  EXPECT_EQ(param("DELETE", "/v1/cache?id=0&id=1"), "id");
  EXPECT_EQ(
      param(
          "DELETE",
          "/v1/cache?prompt_cache_key=a",
          R"({"prompt_cache_key":"a"})"
      ),
      "prompt_cache_key"
  );
  EXPECT_EQ(param("POST", "/v1/cache/pin", R"({"prompt_cache_key":1})"), "id");
  EXPECT_TRUE(param("DELETE", "/v1/cache", "[]").is_null());
  EXPECT_TRUE(param("DELETE", "/v1/cache", "{").is_null());
}

TEST_F(CacheApiTest, ATenantSeesAndChangesOnlyItsOwn) {
  engine_.namespaces.emplace(std::string(32, 's'));
  ready();
  fill(std::string(300, 'a'), bearer("one"));
  fill(std::string(400, 'b'), bearer("two"));
  fill(std::string(500, 'c'), bearer("two"), "team");
  fill(std::string(600, 'd'));
  const auto tokens = [&](const std::string& headers,
                          const std::string& query) {
    const json list = entries(headers, query);
    return list.size() == 1 ? list[0]["tokens"].get<int>() : -1;
  };
  EXPECT_EQ(tokens(bearer("one"), ""), 300);
  EXPECT_EQ(tokens(bearer("two"), ""), 400);
  EXPECT_EQ(tokens("X-Api-Key: two\r\n", ""), 400);
  EXPECT_EQ(tokens(bearer("two"), "?prompt_cache_key=team"), 500);
  EXPECT_EQ(tokens("", ""), 600);
  EXPECT_EQ(entries(bearer("three")).size(), 0U);

  const std::string id = entries(bearer("one"))[0]["id"];
  const std::string body = json{{"id", id}}.dump();
  for (const std::string& other : {bearer("two"), std::string()}) {
    for (const char* path : {"/v1/cache/pin", "/v1/cache/unpin"}) {
      error_of(request("POST", path, other, body), 404);
    }
    error_of(request("DELETE", "/v1/cache", other, body), 404);
  }
  EXPECT_EQ(request("POST", "/v1/cache/pin", bearer("one"), body).status, 200);
  EXPECT_EQ(
      request("POST", "/v1/cache/pin?id=" + id.substr(0, 4), bearer("one"))
          .status,
      200
  );

  const auto cleared = request("DELETE", "/v1/cache", bearer("two"));
  EXPECT_EQ(json::parse(cleared.body)["entries"], 1);
  EXPECT_EQ(entries(bearer("two")).size(), 0U);
  EXPECT_EQ(tokens(bearer("one"), ""), 300);
  EXPECT_EQ(tokens(bearer("two"), "?prompt_cache_key=team"), 500);

  request("POST", "/v1/cache/flush", bearer("one"));
  EXPECT_EQ(
      engine_.flushed(),
      std::vector<std::string>{engine_.namespaces->name("one", "")}
  );
}

TEST_F(CacheApiTest, WithoutNamespacesAllClientsShare) {
  ready();
  fill(std::string(300, 'a'), bearer("one"), "team");
  EXPECT_EQ(engine_.last_request().cache_namespace, "");
  EXPECT_EQ(entries(bearer("two")).size(), 1U);
  EXPECT_EQ(entries("", "?prompt_cache_key=x").size(), 1U);
}

TEST_F(CacheApiTest, ARequestThatKeepsNothingSaysSo) {
  ready();
  for (const bool store : {true, false}) {
    for (const bool stream : {true, false}) {
      const auto response = post(
          "/v1/completions",
          {{"prompt", "hi"}, {"cache", {{"store", store}}}, {"stream", stream}}
      );
      const std::string told =
          std::string("\"cache_store\":") + (store ? "true" : "false");
      EXPECT_NE(response.body.find(told), std::string::npos) << response.body;
      EXPECT_EQ(engine_.last_request().cache_store, store);
      EXPECT_TRUE(engine_.last_request().cache_read);
    }
  }
  EXPECT_EQ(entries().size(), 1U);
}

}  // namespace
}  // namespace afterglow
