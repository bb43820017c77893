// Any bytes as what a client sends: the same requests are taken however they
// are cut, within the limits, refused with 4xx, let in by the gate with a key
// only, and answered in well-formed heads.

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "server/access.h"
#include "server/request_reader.h"

namespace afterglow {
namespace {

using State = RequestReader::State;

constexpr char kKey[] = "k";

struct Seen {
  HttpRequest request;
  bool answered = false;  // by a gate

  bool operator==(const Seen& other) const {
    return request.method == other.request.method &&
           request.path == other.request.path &&
           request.query == other.request.query &&
           request.host == other.request.host &&
           request.origin == other.request.origin &&
           request.body == other.request.body && answered == other.answered;
  }
};

void check(bool good) {
  if (!good) std::abort();
}

HttpLimits limits() {
  HttpLimits limits;
  limits.header_bytes = 512;
  limits.body_bytes = 256;
  return limits;
}

HttpGate locked_gate() {
  AccessRules rules;
  rules.keys = *ApiKeys::make({kKey});
  rules.origins = *AllowedOrigins::make({"http://a:3000"});
  rules.host = "a";
  return make_gate(std::move(rules));
}

HttpGate open_gate() {
  AccessRules rules;
  rules.host = "a";
  return make_gate(std::move(rules));
}

/// A head is lines of printable text, and the client cannot write any.
void check_head(std::string_view text) {
  const std::size_t end = text.find("\r\n\r\n");
  check(end != std::string_view::npos && text.starts_with("HTTP/1.1 "));
  std::string_view head = text.substr(0, end);
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    for (const char c : line) check(static_cast<unsigned char>(c) >= 0x20);
    const std::size_t next = line.size() + 2;
    head.remove_prefix(next < head.size() ? next : head.size());
  }
}

/// What needs no key (docs/security.md).
bool is_for_all(const HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") return false;
  for (const char* path : {"/", "/health", "/openapi.json", "/icon.svg"}) {
    if (request.path == path) return true;
  }
  return request.path.starts_with("/css/") || request.path.starts_with("/js/");
}

void check_gates(const HttpRequest& request, Seen& seen) {
  static const HttpGate locked = locked_gate();
  static const HttpGate open = open_gate();
  HttpRequest local = request;
  local.over_loopback = true;
  Admission admission = locked(local);
  if (admission.answer == nullptr) {
    check(is_for_all(local) || api_key_of(local) == kKey);
  }
  WireOptions wire;
  wire.headers = admission.headers;
  Output output = error_output(http_error(400, "x"));
  check_head(WireWriter(wire).write(output));
  admission = open(local);
  seen.answered = admission.answer != nullptr;
  if (seen.answered) {
    check_head(WireWriter({}).write(admission.answer->take()));
  }
}

/// The requests taken from the bytes, which come in pieces of this size.
std::vector<Seen> read(std::string_view bytes, std::size_t piece) {
  const HttpLimits limited = limits();
  std::vector<Seen> result;
  boost::beast::flat_buffer buffer;
  for (;;) {
    RequestReader reader(limited);
    bool headed = false;
    Seen seen;
    for (;;) {
      const State state = reader.read(buffer);
      if (state == State::kFailed) break;
      if (state != State::kHead && !headed) {
        headed = true;
        check_gates(reader.request(), seen);
        if (state == State::kBody) continue;
      }
      if (state == State::kDone) break;
      check(buffer.size() <= limited.header_bytes + piece);
      if (bytes.empty()) return result;
      const std::string_view next = bytes.substr(0, piece);
      std::memcpy(buffer.prepare(next.size()).data(), next.data(), next.size());
      buffer.commit(next.size());
      bytes.remove_prefix(next.size());
    }
    if (reader.state() == State::kFailed) {
      const unsigned status = reader.error().status;
      check(status >= 400 && status < 500);
      return result;
    }
    seen.request = reader.request();
    check(seen.request.body.size() <= limited.body_bytes);
    result.push_back(std::move(seen));
  }
}

}  // namespace
}  // namespace afterglow

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  using namespace afterglow;
  if (n == 0) return 0;
  const std::size_t piece = 1 + data[0] % 64;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, n - 1);
  const auto whole = read(bytes, bytes.size() + 1);
  const auto cut = read(bytes, piece);
  check(whole == cut);
  return 0;
}
