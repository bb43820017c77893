#include "server/request_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string_view>

namespace afterglow {
namespace {

using State = RequestReader::State;
using Buffer = boost::beast::flat_buffer;

void append(Buffer& buffer, std::string_view bytes) {
  std::memcpy(buffer.prepare(bytes.size()).data(), bytes.data(), bytes.size());
  buffer.commit(bytes.size());
}

/// What a reader makes of bytes, cut into pieces of this size.
struct Read {
  State state = State::kHead;
  HttpRequest request;
  unsigned status = 0;
  std::size_t rest = 0;
  std::size_t held = 0;  // most bytes that waited
};

Read read_all(
    std::string_view bytes, const HttpLimits& limits, std::size_t piece
) {
  RequestReader reader(limits);
  Buffer buffer;
  Read result;
  for (;;) {
    State before = reader.state();
    State state = reader.read(buffer);
    result.held = std::max(result.held, buffer.size());
    if (state == State::kDone || state == State::kFailed) break;
    if (state != before) continue;  // the head is there: the body next
    if (bytes.empty()) break;
    append(buffer, bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  result.state = reader.state();
  result.request = reader.request();
  result.rest = buffer.size() + bytes.size();
  if (result.state == State::kFailed) result.status = reader.error().status;
  return result;
}

std::string repeated(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

const std::string kHost = " HTTP/1.1\r\nHost: x\r\n";

TEST(RequestReader, ReadsHeadThenBody) {
  const HttpLimits limits;
  RequestReader reader(limits);
  Buffer buffer;
  EXPECT_EQ(reader.read(buffer), State::kHead);
  append(buffer, "POST /a%20b?c=d HTTP/1.1\r\nHost: h:1\r\nOrigin: o\r\n");
  EXPECT_EQ(reader.read(buffer), State::kHead);
  append(
      buffer,
      "Authorization: Bearer k\r\nX-Api-Key: y\r\nContent-Length: 4\r\n\r\nab"
  );
  EXPECT_EQ(reader.read(buffer), State::kBody);
  EXPECT_EQ(reader.request().method, "POST");
  EXPECT_EQ(reader.request().path, "/a b");
  EXPECT_EQ(reader.request().query.at(0).second, "d");
  EXPECT_EQ(reader.request().host, "h:1");
  EXPECT_EQ(reader.request().origin, "o");
  EXPECT_EQ(reader.request().authorization, "Bearer k");
  EXPECT_EQ(reader.request().x_api_key, "y");
  EXPECT_EQ(reader.read(buffer), State::kBody);
  append(buffer, "cdGET /next");
  EXPECT_EQ(reader.read(buffer), State::kDone);
  EXPECT_EQ(reader.request().body, "abcd");
  EXPECT_EQ(buffer.size(), 9U);  // the next request's
}

TEST(RequestReader, ATargetsHostGoesBeforeTheHeaders) {
  const HttpLimits limits;
  const std::string text =
      "\r\nGET http://h:1/a?b=c" + kHost + "Content-Encoding: gzip\r\n\r\n";
  const Read read = read_all(text, limits, text.size());
  EXPECT_EQ(read.state, State::kDone);
  EXPECT_EQ(read.request.host, "h:1");
  EXPECT_EQ(read.request.path, "/a");
  EXPECT_EQ(read.request.query.at(0).second, "c");
}

TEST(RequestReader, HowTheBytesAreCutDoesNotMatter) {
  HttpLimits limits;
  limits.header_bytes = 4096;
  limits.body_bytes = 1000;
  const std::vector<std::string> texts = {
      "GET /" + kHost + "\r\nrest",
      "POST /" + kHost + "Content-Length: 5\r\n\r\nhellorest",
      "POST /" + kHost + "Content-Length: 1001\r\n\r\nabc",
      "POST /" + kHost +
          "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n"
          "2\r\nde\r\n0\r\nTrailer: t\r\n\r\nrest",
      "POST /" + kHost + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcX\r\n",
      "POST /" + kHost + "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
      "POST /" + kHost + "Transfer-Encoding: chunked\r\n\r\n400\r\n" +
          std::string(1024, 'x') + "\r\n0\r\n\r\n",
      "GET / HTTP/1.1\r\n\r\n",
      "nonsense\r\n\r\n",
      "\r\nGET /" + kHost + "\r\nrest",
      "\r\n\r\nGET /" + kHost + "\r\n",
      "\rGET /" + kHost + "\r\n",
  };
  for (const std::string& text : texts) {
    const Read whole = read_all(text, limits, text.size());
    for (const std::size_t piece : {1, 2, 3, 7, 50}) {
      const Read cut = read_all(text, limits, piece);
      EXPECT_EQ(cut.state, whole.state) << text;
      EXPECT_EQ(cut.status, whole.status) << text;
      EXPECT_EQ(cut.request.body, whole.request.body) << text;
      if (whole.state == State::kDone) {
        EXPECT_EQ(cut.rest, whole.rest) << text;
      }
    }
  }
}

TEST(RequestReader, FaultsHaveTheirStatus) {
  HttpLimits limits;
  limits.header_bytes = 4096;
  limits.body_bytes = 1000;
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  struct Case {
    std::string text;
    unsigned status;
  };
  const Case table[] = {
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 400},
      {"GET /" + kHost + ": empty name\r\n\r\n", 400},
      {"GET /" + kHost + "Name : space\r\n\r\n", 400},
      {"POST /" + kHost + "Content-Length: -1\r\n\r\n", 400},
      {"POST /" + kHost + "Content-Length: 1, 2\r\n\r\n", 400},
      {"POST /" + kHost + "Content-Length: 2, 2\r\n\r\nab", 400},
      {"POST /" + kHost + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nab",
       400},
      {"POST /" + kHost + "Content-Length: 99999999999999999999\r\n\r\n", 400},
      {"POST /" + kHost + "Content-Length: 3\r\n" + chunked + "\r\n", 400},
      {"POST /" + kHost + chunked + "Content-Length: 3\r\n\r\n", 400},
      // What only some servers understand hides a second request.
      {"POST /" + kHost + "Transfer-Encoding: gzip\r\n\r\n", 400},
      {"POST /" + kHost + "Transfer-Encoding: gzip, chunked\r\n\r\n", 400},
      {"POST /" + kHost + "Transfer-Encoding: xchunked\r\n\r\n", 400},
      {"POST /" + kHost + chunked + chunked + "\r\n", 400},
      {"POST / HTTP/1.0\r\n" + chunked + "\r\n", 400},
      {"POST /" + kHost + "Content-Length: 1001\r\n\r\n", 413},
      {"POST /" + kHost + "Content-Length: 18446744073709551615\r\n\r\n", 413},
      {"POST /" + kHost + chunked + "\r\n3e9\r\n", 413},
      {"POST /" + kHost + chunked + "\r\nffffffffffffffff\r\n", 413},
      {"POST /" + kHost + chunked + "\r\n11111111111111111\r\n", 400},
      {"POST /" + kHost + "Expect: magic\r\nContent-Length: 1\r\n\r\nx", 417},
      {"POST /" + kHost +
           "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx",
       415},
      {"GET /" + std::string(5000, 'a') + kHost + "\r\n", 431},
      {"GET /" + kHost + "A: " + std::string(5000, 'a') + "\r\n\r\n", 431},
      {"GET /" + kHost + repeated("a: b\r\n", 800) + "\r\n", 431},
      {"GET /" + kHost + repeated("a: b\r\n", 800), 431},
      // Of a chunk, too, nothing grows without end.
      {"POST /" + kHost + chunked + "\r\n1;" + std::string(5000, 'a'), 431},
      {"POST /" + kHost + chunked + "\r\n0\r\nA: " + std::string(5000, 'a'),
       431},
  };
  for (const Case& c : table) {
    for (const std::size_t piece : {c.text.size(), std::size_t{11}}) {
      const Read read = read_all(c.text, limits, piece);
      EXPECT_EQ(read.state, State::kFailed) << c.text.substr(0, 90);
      EXPECT_EQ(read.status, c.status) << c.text.substr(0, 90);
    }
  }
}

TEST(RequestReader, OldClientsNeedNoHost) {
  const HttpLimits limits;
  const Read read = read_all("GET / HTTP/1.0\r\n\r\n", limits, 100);
  EXPECT_EQ(read.state, State::kDone);
  EXPECT_EQ(read.request.host, "");
}

TEST(RequestReader, AnExpectationIsToldBeforeTheBodyComes) {
  const HttpLimits limits;
  RequestReader reader(limits);
  Buffer buffer;
  append(
      buffer,
      "POST /" + kHost + "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\n"
  );
  EXPECT_EQ(reader.read(buffer), State::kBody);
  EXPECT_TRUE(reader.expects_continue());
  EXPECT_EQ(reader.read(buffer), State::kBody);
  append(buffer, "x");
  EXPECT_EQ(reader.read(buffer), State::kDone);
}

TEST(RequestReader, WhatWaitsIsBounded) {
  HttpLimits limits;
  limits.header_bytes = 2048;
  std::string text = "POST /" + kHost + "Transfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 500; ++i)
    text += "1;" + std::string(900, 'e') + "\r\nx\r\n";
  text += "0\r\n\r\n";
  const Read read = read_all(text, limits, 512);
  EXPECT_EQ(read.state, State::kDone);
  EXPECT_EQ(read.request.body, std::string(500, 'x'));
  EXPECT_LE(read.held, limits.header_bytes + 512);
}

}  // namespace
}  // namespace afterglow
