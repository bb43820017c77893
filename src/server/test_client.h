#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace afterglow::testing {

/// A blocking HTTP client on a plain socket; every read has a deadline.
class TestClient {
 public:
  struct Response {
    int status = 0;  // 0: the connection ended first
    std::string head;
    std::string body;
  };

  explicit TestClient(std::uint16_t port, int receive_buffer = 0) {
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    if (receive_buffer > 0) {
      ::setsockopt(
          fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer
      );
    }
    const timeval deadline{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof deadline);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ =
        ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) ==
        0;
  }
  ~TestClient() { close(); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  bool connected() const { return connected_; }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  bool get(const std::string& path) {
    return send("GET " + path + " HTTP/1.1\r\nHost: test\r\n\r\n");
  }
  bool post(const std::string& path, const std::string& body) {
    return send(
        "POST " + path + " HTTP/1.1\r\nHost: test\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body
    );
  }
  /// headers: whole lines, each ended by CR LF.
  bool request(
      const std::string& method,
      const std::string& path,
      const std::string& headers = {},
      const std::string& body = {}
  ) {
    return send(
        method + " " + path + " HTTP/1.1\r\nHost: test\r\n" + headers +
        "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body
    );
  }
  /// Sends no more; still reads.
  void shutdown_write() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

  /// Reads until the text was seen; false when the connection ended first.
  bool read_until(std::string_view text) {
    while (buffer_.find(text) == std::string::npos) {
      if (!read_some()) return false;
    }
    return true;
  }
  /// The next response, interim ones (1xx) left out and counted.
  Response response() {
    Response result;
    for (;;) {
      if (!read_until("\r\n\r\n")) return result;
      const std::size_t end = buffer_.find("\r\n\r\n") + 4;
      result.head = buffer_.substr(0, end);
      buffer_.erase(0, end);
      result.status = std::atoi(result.head.c_str() + 9);
      if (result.status >= 200) break;
      ++interim;
    }
    read_body(result);
    return result;
  }
  /// True when the peer has closed and nothing is left to read.
  bool at_end() {
    while (read_some()) {
    }
    return ended_ && buffer_.empty();
  }
  /// Whether the connection ends, or something comes, in this time.
  bool ended_within(std::chrono::milliseconds time) {
    pollfd descriptor{fd_, POLLRDHUP, 0};
    return ::poll(&descriptor, 1, static_cast<int>(time.count())) > 0;
  }
  /// Reads and forgets up to so many bytes; returns how many.
  std::size_t take(std::size_t at_most) {
    std::string bytes(at_most, 0);
    const ssize_t n = ::recv(fd_, bytes.data(), at_most, 0);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  const std::string& unread() const { return buffer_; }

  int interim = 0;

 private:
  bool read_some() {
    char bytes[4096];
    const ssize_t n = ::recv(fd_, bytes, sizeof bytes, 0);
    ended_ = n == 0 || (n < 0 && errno == ECONNRESET);
    if (n <= 0) return false;
    buffer_.append(bytes, static_cast<std::size_t>(n));
    return true;
  }

  void read_body(Response& result) {
    const std::size_t length = result.head.find("Content-Length: ");
    if (length != std::string::npos) {
      const auto size =
          static_cast<std::size_t>(std::atoll(result.head.c_str() + length + 16)
          );
      while (buffer_.size() < size) {
        if (!read_some()) break;
      }
      result.body = buffer_.substr(0, size);
      buffer_.erase(0, size);
    } else if (result.head.find("chunked") != std::string::npos) {
      read_chunks(result);
    } else {
      while (read_some()) {
      }
      result.body = std::exchange(buffer_, {});
    }
  }

  void read_chunks(Response& result) {
    for (;;) {
      if (!read_until("\r\n")) {
        result.status = 0;  // cut in the middle
        return;
      }
      const std::size_t size = std::strtoull(buffer_.c_str(), nullptr, 16);
      const std::size_t start = buffer_.find("\r\n") + 2;
      while (buffer_.size() < start + size + 2) {
        if (!read_some()) {
          result.status = 0;
          return;
        }
      }
      result.body += buffer_.substr(start, size);
      buffer_.erase(0, start + size + 2);
      if (size == 0) return;
    }
  }

  int fd_ = -1;
  bool connected_ = false;
  bool ended_ = false;
  std::string buffer_;
};

}  // namespace afterglow::testing
