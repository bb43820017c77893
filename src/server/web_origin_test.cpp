#include "server/web_origin.h"

#include <gtest/gtest.h>

namespace afterglow {
namespace {

TEST(WebOrigin, AuthoritiesAreRead) {
  EXPECT_EQ(parse_authority("Name.Example"), (Authority{"name.example", ""}));
  EXPECT_EQ(
      parse_authority("localhost:8080"), (Authority{"localhost", "8080"})
  );
  EXPECT_EQ(parse_authority("[::1]:80"), (Authority{"::1", "80"}));
  EXPECT_EQ(parse_authority("[FE80::1]"), (Authority{"fe80::1", ""}));
  for (const char* bad :
       {"",
        ":80",
        "a:b",
        "a:123456",
        "a b",
        "a/b",
        "user@a",
        "[::1",
        "[a]",
        "[]",
        "[::1]80",
        "::1",
        "a:80:80",
        "\xc3\xbc",
        "a,b"}) {
    EXPECT_FALSE(parse_authority(bad)) << bad;
  }
}

TEST(WebOrigin, OriginsAreReadAndWrittenAlike) {
  const auto text = [](const char* given) {
    const auto origin = parse_origin(given);
    return origin ? origin->text() : "none";
  };
  EXPECT_EQ(text("HTTP://A.Example:80"), "http://a.example");
  EXPECT_EQ(text("https://a.example:443"), "https://a.example");
  EXPECT_EQ(text("http://a.example:443"), "http://a.example:443");
  EXPECT_EQ(text("http://[::1]:3000"), "http://[::1]:3000");
  EXPECT_EQ(text("chrome-extension://abc"), "chrome-extension://abc");
  for (const char* bad :
       {"",
        "null",
        "a.example",
        "://a",
        "http://",
        "http://a/b",
        "ht tp://a",
        "http:/a",
        "file://"}) {
    EXPECT_EQ(text(bad), "none") << bad;
  }
}

TEST(WebOrigin, SameOriginIsSameNameAndPort) {
  const auto same = [](const char* origin, const char* host) {
    return is_same_origin(*parse_origin(origin), *parse_authority(host));
  };
  EXPECT_TRUE(same("http://localhost:8080", "LocalHost:8080"));
  EXPECT_TRUE(same("https://a.example", "a.example"));
  EXPECT_TRUE(same("https://a.example", "a.example:443"));
  EXPECT_FALSE(same("http://localhost:8081", "localhost:8080"));
  EXPECT_FALSE(same("http://localhost", "localhost:8080"));
  EXPECT_FALSE(same("http://127.0.0.1:8080", "localhost:8080"));
  EXPECT_FALSE(same("http://a.example", "b.example"));
}

TEST(WebOrigin, OnlyNamesThatNobodyElseGivesAreSure) {
  for (const char* host :
       {"localhost",
        "a.localhost",
        "127.0.0.1",
        "::1",
        "192.168.1.7",
        "fe80::1"}) {
    EXPECT_TRUE(is_sure_host(host)) << host;
  }
  for (const char* host :
       {"",
        "example.org",
        "localhost.example.org",
        "notlocalhost",
        "127.0.0.1.nip.example",
        "1.2.3",
        "2130706433x"}) {
    EXPECT_FALSE(is_sure_host(host)) << host;
  }
}

TEST(WebOrigin, TheListAllowsWhatItNames) {
  const auto list = AllowedOrigins::make(
      {"http://localhost:3000/", "https://Chat.Example:443"}
  );
  ASSERT_TRUE(list.ok());
  EXPECT_TRUE(list->contain("http://localhost:3000"));
  EXPECT_TRUE(list->contain("https://chat.example"));
  EXPECT_FALSE(list->contain("http://chat.example"));
  EXPECT_FALSE(list->contain("http://localhost:3001"));
  EXPECT_FALSE(list->contain("null"));
  EXPECT_FALSE(list->contain(""));
  EXPECT_TRUE(list->contain_host("chat.example"));
  EXPECT_FALSE(list->contain_host("example"));
  EXPECT_FALSE(list->all());

  const auto all = AllowedOrigins::make({"*"});
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(all->contain("null"));
  EXPECT_TRUE(all->contain_host("any"));
  const auto none = AllowedOrigins::make({});
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->none());
  EXPECT_FALSE(none->contain("http://localhost:3000"));
}

TEST(WebOrigin, WhatIsNoOriginIsNamed) {
  for (const char* bad :
       {"",
        "null",
        "localhost:3000",
        "http://a/path",
        "*.example",
        "http://*"}) {
    const auto list = AllowedOrigins::make({"http://good", bad});
    ASSERT_FALSE(list.ok()) << bad;
    EXPECT_NE(
        list.error().message.find("'" + std::string(bad) + "'"),
        std::string::npos
    );
  }
}

}  // namespace
}  // namespace afterglow
