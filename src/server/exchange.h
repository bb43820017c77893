#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/api_error.h"

namespace afterglow {

/// A request as handlers see it: read whole, limits already checked.
struct HttpRequest {
  std::string method;
  std::string path;  // percent-decoded, without the query
  std::vector<std::pair<std::string, std::string>> query;  // decoded
  // The headers of these names; empty: none.
  std::string host;
  std::string origin;
  std::string authorization;
  std::string x_api_key;
  std::string if_none_match;
  std::string body;
  std::string client;          // address and port, for the log
  bool over_loopback = false;  // came to an address that is this machine's
};

using HeaderList = std::vector<std::pair<std::string, std::string>>;

/// Everything of a response before its body. Content-Length, Connection and
/// the like are the transport's.
struct ResponseHead {
  unsigned status = 200;
  std::string content_type = "application/json";
  HeaderList headers;
  /// What an error is, for the log: " code=... param=...".
  std::string fault;
  /// True: the body comes in pieces and a client that reads too slowly is
  /// cut. False: head and whole body come in one Output.
  bool streaming = false;
};

/// What an exchange has to say since it was last asked.
struct Output {
  std::optional<ResponseHead> head;  // first of all, once
  std::string body;
  bool done = false;  // nothing follows
};

/// One request on its way to its response. The transport starts it, takes
/// output whenever it is woken, and destroys it when the response is sent or
/// the client gone; destroying it ends its work.
/// Thread: calls come one at a time, from any thread.
class Exchange {
 public:
  virtual ~Exchange() = default;

  /// Begins the work. `wake` may be called from any thread until the
  /// destructor returns; it never blocks and never calls back.
  virtual void start(std::function<void()> wake) = 0;
  /// Never blocks.
  virtual Output take() = 0;
  /// Ends the work and leaves a last output that says why, as an error
  /// response or, inside a stream, an error event.
  virtual void fail(const ApiError& error) = 0;
};

/// An exchange that is done from the start.
std::unique_ptr<Exchange> respond(ResponseHead head, std::string body);
std::unique_ptr<Exchange> respond(const ApiError& error);

/// The head and body of an error.
Output error_output(const ApiError& error);

/// Turns a request into an exchange. Thread: called from several at once;
/// must not block.
using HttpHandler = std::function<std::unique_ptr<Exchange>(HttpRequest)>;

/// What a gate says to a request.
struct Admission {
  std::unique_ptr<Exchange> answer;  // to be sent at once; null: go on
  HeaderList headers;                // of the answer, whatever it is
};

/// Sees each request before its body is read; `body` is empty. Thread: as a
/// handler.
using HttpGate = std::function<Admission(const HttpRequest&)>;

}  // namespace afterglow
