#include "server/http_wire.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

namespace afterglow {
namespace {

Output whole(std::string body) {
  Output output;
  output.head.emplace();
  output.body = std::move(body);
  output.done = true;
  return output;
}

TEST(HttpWire, AWholeBodyHasItsLength) {
  WireWriter wire({});
  EXPECT_EQ(
      wire.write(whole("{}")),
      "HTTP/1.1 200 OK\r\nServer: afterglow\r\n"
      "Content-Type: application/json\r\nContent-Length: 2\r\n"
      "Connection: keep-alive\r\n\r\n{}"
  );
  EXPECT_TRUE(wire.done());
}

TEST(HttpWire, DatesAreAsHttpWritesThem) {
  const auto at = [](std::time_t seconds) {
    return http_date(std::chrono::system_clock::from_time_t(seconds));
  };
  EXPECT_EQ(at(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(at(1709164800), "Thu, 29 Feb 2024 00:00:00 GMT");
}

TEST(HttpWire, ATargetMayNameItsHost) {
  const auto parts = [](std::string_view target) {
    const Target split = split_target(target);
    return std::pair(std::string(split.host), std::string(split.rest));
  };
  using Parts = std::pair<std::string, std::string>;
  EXPECT_EQ(parts("/a?b=http://c"), Parts("", "/a?b=http://c"));
  EXPECT_EQ(parts("http://h:1/a?b"), Parts("h:1", "/a?b"));
  EXPECT_EQ(parts("https://h"), Parts("h", "/"));
  EXPECT_EQ(parts("http://h?q"), Parts("h", "?q"));
  EXPECT_EQ(parts("*"), Parts("", "*"));
}

TEST(HttpWire, AStreamIsChunked) {
  WireWriter wire({});
  Output first;
  first.head.emplace();
  first.head->streaming = true;
  const std::string head = wire.write(first);
  EXPECT_NE(head.find("Transfer-Encoding: chunked\r\n"), std::string::npos);
  EXPECT_EQ(head.find("Content-Length"), std::string::npos);
  Output piece;
  piece.body = std::string(26, 'x');
  EXPECT_EQ(wire.write(piece), "1a\r\n" + piece.body + "\r\n");
  EXPECT_EQ(wire.write({}), "");  // an empty chunk would end the stream
  Output last;
  last.body = "y";
  last.done = true;
  EXPECT_EQ(wire.write(last), "1\r\ny\r\n0\r\n\r\n");
  EXPECT_TRUE(wire.keep_alive());
}

TEST(HttpWire, AnOldClientsStreamEndsWithTheConnection) {
  WireWriter wire({.http11 = false});
  Output first;
  first.head.emplace();
  first.head->streaming = true;
  first.body = "abc";
  const std::string text = wire.write(first);
  EXPECT_EQ(text.find("chunked"), std::string::npos);
  EXPECT_NE(text.find("Connection: close\r\n\r\nabc"), std::string::npos);
  EXPECT_FALSE(wire.keep_alive());
}

TEST(HttpWire, HeadHasNoBody) {
  WireWriter wire({.head_only = true});
  const std::string text = wire.write(whole("{}"));
  EXPECT_NE(text.find("Content-Length: 2\r\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\r\n\r\n"));
}

TEST(HttpWire, NoContentHasNeitherLengthNorType) {
  WireWriter wire({.headers = {{"Vary", "Origin"}}});
  Output output = whole("");
  output.head->status = 204;
  EXPECT_EQ(
      wire.write(output),
      "HTTP/1.1 204 No Content\r\nServer: afterglow\r\nVary: Origin\r\n"
      "Connection: keep-alive\r\n\r\n"
  );
}

TEST(HttpWire, PathsAreDecoded) {
  EXPECT_EQ(decode_path("/v1/models/a%2Fb?x=%20"), "/v1/models/a/b");
  EXPECT_EQ(decode_path("/%4"), "/%4");
  EXPECT_EQ(decode_path("/%zz%41"), "/%zzA");
  EXPECT_EQ(decode_path("/%"), "/%");
}

TEST(HttpWire, QueriesAreDecoded) {
  using Query = std::vector<QueryParameter>;
  EXPECT_EQ(decode_query("/a"), Query());
  EXPECT_EQ(decode_query("/a?"), Query());
  EXPECT_EQ(
      decode_query("/a?id=0f%3A12&x+y=1+2%2b3&&flag&=v&e=a=b#f"),
      (Query{
          {"id", "0f:12"},
          {"x y", "1 2+3"},
          {"flag", ""},
          {"", "v"},
          {"e", "a=b"}})
  );
  EXPECT_EQ(decode_query("/?a=%4&b=%zz"), (Query{{"a", "%4"}, {"b", "%zz"}}));
}

}  // namespace
}  // namespace afterglow
