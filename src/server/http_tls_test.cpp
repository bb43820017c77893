#include <gtest/gtest.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "server/http_server.h"
#include "server/test_certificate.h"
#include "server/test_client.h"
#include "server/tls_context.h"

namespace afterglow {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using testing::TestCertificate;
using testing::TestClient;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

class HttpTlsTest : public ::testing::Test {
 protected:
  void serve(HttpLimits limits = {}) {
    HttpOptions options;
    options.port = 0;
    options.limits = limits;
    options.ssl_cert_file = certificate_.cert_file();
    options.ssl_key_file = certificate_.key_file();
    auto started = HttpServer::start(options, [](HttpRequest request) {
      return respond(
          ResponseHead{},
          request.path + " " + std::to_string(request.body.size()) +
              std::string(request.path == "/big" ? 1 << 20 : 0, '.')
      );
    });
    ASSERT_TRUE(started.ok()) << started.error().message;
    server_ = *std::move(started);
  }

  TestCertificate certificate_;
  std::unique_ptr<HttpServer> server_;
};

/// A blocking client by TLS.
class TlsClient {
 public:
  explicit TlsClient(std::uint16_t port)
      : ssl_(asio::ssl::context::tls_client), stream_(io_, ssl_) {
    stream_.next_layer().connect({asio::ip::address_v4::loopback(), port});
    stream_.handshake(asio::ssl::stream_base::client, error_);
  }

  bool send(const std::string& text) {
    asio::write(stream_, asio::buffer(text), error_);
    return !error_;
  }
  /// Everything until the connection ends.
  std::string rest() {
    std::string all;
    asio::read(stream_, asio::dynamic_buffer(all), error_);
    return all;
  }
  std::string until(const std::string& text) {
    asio::read_until(stream_, asio::dynamic_buffer(data_), text, error_);
    return data_;
  }
  const error_code& error() const { return error_; }
  /// What the server showed, as its public key's bytes.
  std::string certificate() {
    const std::unique_ptr<X509, decltype(&X509_free)> shown(
        SSL_get1_peer_certificate(stream_.native_handle()), X509_free
    );
    if (shown == nullptr) return {};
    const ASN1_BIT_STRING* key = X509_get0_pubkey_bitstr(shown.get());
    return {
        reinterpret_cast<const char*>(ASN1_STRING_get0_data(key)),
        static_cast<std::size_t>(ASN1_STRING_length(key))};
  }
  std::string version() { return SSL_get_version(stream_.native_handle()); }

 private:
  asio::io_context io_;
  asio::ssl::context ssl_;
  asio::ssl::stream<tcp::socket> stream_;
  error_code error_;
  std::string data_;
};

TEST_F(HttpTlsTest, AnswersAndEndsProperly) {
  serve();
  EXPECT_TRUE(server_->url().starts_with("https://"));
  TlsClient client(server_->port());
  ASSERT_FALSE(client.error()) << client.error().message();
  EXPECT_EQ(client.version(), "TLSv1.3");
  ASSERT_TRUE(client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_NE(client.until("/a 0").find("200 OK"), std::string::npos);
  ASSERT_TRUE(client.send(
      "POST /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
      "Content-Length: 500000\r\n\r\n" +
      std::string(500'000, 'x')
  ));
  const std::string rest = client.rest();
  EXPECT_NE(rest.find("/big 500000"), std::string::npos);
  EXPECT_GT(rest.size(), 1U << 20);
  // Not stream_truncated: the server said goodbye.
  EXPECT_EQ(client.error(), asio::error::eof);
}

TEST_F(HttpTlsTest, ReadsAheadWhileItWrites) {
  serve();
  TlsClient client(server_->port());
  std::thread sender([&client] {
    std::string all;
    for (int i = 0; i < 20; ++i) all += "GET /big HTTP/1.1\r\nHost: x\r\n\r\n";
    client.send(
        all + "GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    );
  });
  sender.join();
  const std::string rest = client.rest();
  EXPECT_GT(rest.size(), 20U << 20);
  EXPECT_TRUE(rest.ends_with("/end 0"));
}

TEST_F(HttpTlsTest, PlainHttpIsToldSo) {
  serve();
  TestClient client(server_->port());
  ASSERT_TRUE(client.get("/"));
  const auto response = client.response();
  EXPECT_EQ(response.status, 400);
  EXPECT_NE(response.body.find("https://"), std::string::npos);
  EXPECT_TRUE(client.at_end());
}

TEST_F(HttpTlsTest, AHandshakeThatDragsIsCut) {
  HttpLimits limits;
  limits.handshake = 100ms;
  serve(limits);
  TestClient silent(server_->port());
  TestClient slow(server_->port());
  ASSERT_TRUE(slow.send("\x16\x03\x01"));
  EXPECT_TRUE(silent.at_end());
  EXPECT_TRUE(slow.at_end());
  EXPECT_TRUE(server_->wait_drained(steady_clock::now() + 10s));
}

TEST_F(HttpTlsTest, DrainEndsIdleConnections) {
  serve();
  TlsClient client(server_->port());
  ASSERT_TRUE(client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
  client.until("/a 0");
  TestClient silent(server_->port());
  TestClient slow(server_->port());
  ASSERT_TRUE(slow.send("\x16\x03\x01"));
  TlsClient next(server_->port());  // those before it were taken in
  server_->drain();
  client.rest();
  EXPECT_TRUE(client.error());
  EXPECT_TRUE(silent.at_end());
  EXPECT_TRUE(slow.at_end());
  // A handshake may take far longer.
  EXPECT_TRUE(server_->wait_drained(steady_clock::now() + 5s));
}

TEST_F(HttpTlsTest, ARenewedCertificateIsForNewConnections) {
  serve();
  TlsClient before(server_->port());
  const std::string old = before.certificate();
  const TestCertificate other;
  std::filesystem::copy_file(
      other.cert_file(),
      certificate_.cert_file(),
      std::filesystem::copy_options::overwrite_existing
  );
  const Status half = server_->renew_tls();
  ASSERT_FALSE(half.ok());
  EXPECT_NE(half.error().message.find("not the key"), std::string::npos);
  EXPECT_EQ(TlsClient(server_->port()).certificate(), old);
  std::filesystem::copy_file(
      other.key_file(),
      certificate_.key_file(),
      std::filesystem::copy_options::overwrite_existing
  );
  ASSERT_TRUE(server_->renew_tls().ok());
  const std::string now = TlsClient(server_->port()).certificate();
  EXPECT_NE(now, old);
  EXPECT_FALSE(now.empty());
  ASSERT_TRUE(before.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_NE(before.until("/a 0").find("200 OK"), std::string::npos);
}

TEST_F(HttpTlsTest, WithoutTlsThereIsNothingToRenew) {
  HttpOptions plain;
  plain.port = 0;
  auto started = HttpServer::start(plain, [](HttpRequest) {
    return respond(ResponseHead{}, "");
  });
  ASSERT_TRUE(started.ok());
  EXPECT_TRUE((*started)->renew_tls().ok());
  EXPECT_TRUE((*started)->url().starts_with("http://"));
}

TEST_F(HttpTlsTest, WrongFilesAreNamed) {
  const TestCertificate other;
  const std::string cert = certificate_.cert_file();
  const std::string key = certificate_.key_file();
  struct Case {
    std::string cert;
    std::string key;
    std::string names;
    std::string says;
  };
  const Case table[] = {
      {cert + "x", key, cert + "x", "No such file"},
      {cert, key + "x", key + "x", "No such file"},
      {certificate_.folder(), key, certificate_.folder(), "directory"},
      {key, key, key, "no PEM certificate"},
      {cert, cert, cert, "no PEM private key"},
      {cert, other.key_file(), other.key_file(), "not the key"},
      {cert, certificate_.foreign_file(), "foreign.pem", "not the key"},
      {cert, certificate_.locked_file(), "locked.pem", "encrypted"},
  };
  for (const Case& c : table) {
    const auto made = make_tls_context(c.cert, c.key);
    ASSERT_FALSE(made.ok()) << c.says;
    EXPECT_NE(made.error().message.find(c.names), std::string::npos);
    EXPECT_NE(made.error().message.find(c.says), std::string::npos)
        << made.error().message;
  }
  EXPECT_TRUE(make_tls_context(cert, key).ok());
  HttpOptions half;
  half.ssl_cert_file = cert;
  EXPECT_FALSE(HttpServer::start(half, [](HttpRequest) {
                 return respond(ResponseHead{}, "");
               }).ok());
}

}  // namespace
}  // namespace afterglow
