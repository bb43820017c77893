#include "server/exchange.h"

namespace afterglow {
namespace {

class Immediate : public Exchange {
 public:
  explicit Immediate(Output output) : output_(std::move(output)) {}
  void start(std::function<void()> wake) override { wake(); }
  Output take() override { return std::exchange(output_, {}); }
  void fail(const ApiError&) override {}  // it is done already

 private:
  Output output_;
};

}  // namespace

Output error_output(const ApiError& error) {
  Output output;
  output.head.emplace();
  output.head->status = error.status;
  output.head->fault = fault_for_log(error);
  if (const unsigned seconds = retry_after(error)) {
    output.head->headers.emplace_back("Retry-After", std::to_string(seconds));
  }
  output.body = to_json(error);
  output.done = true;
  return output;
}

std::unique_ptr<Exchange> respond(ResponseHead head, std::string body) {
  Output output;
  output.head = std::move(head);
  output.body = std::move(body);
  output.done = true;
  return std::make_unique<Immediate>(std::move(output));
}

std::unique_ptr<Exchange> respond(const ApiError& error) {
  return std::make_unique<Immediate>(error_output(error));
}

}  // namespace afterglow
