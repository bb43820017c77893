#include "server/api_error.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace afterglow {
namespace {

TEST(ApiErrorTable, EveryCodeHasItsStatus) {
  const std::vector<std::pair<Code, unsigned>> table = {
      {Code::kInvalidArgument, 400},
      {Code::kNotFound, 404},
      {Code::kExists, 409},
      {Code::kUnsupported, 400},
      {Code::kCorrupt, 500},
      {Code::kIo, 500},
      {Code::kNoSpace, 500},
      {Code::kPermission, 403},
      {Code::kExhausted, 503},
      {Code::kOverloaded, 429},
      {Code::kCancelled, 503},
      {Code::kUnavailable, 503},
      {Code::kInternal, 500},
  };
  for (const auto& [code, status] : table) {
    const ApiError error = to_api_error({code, "[x] why"});
    EXPECT_EQ(error.status, status) << to_string(code);
    EXPECT_EQ(error.message, "[x] why");
    const bool wait = status == 429 || status == 503;
    EXPECT_EQ(retry_after(error) > 0, wait) << to_string(code);
  }
}

TEST(ApiErrorTable, JsonHasOpenAisShape) {
  const auto body = nlohmann::json::parse(
      to_json(invalid_field("top_p", "'top_p' is bad", "why"))
  );
  EXPECT_EQ(body["error"]["message"], "'top_p' is bad");
  EXPECT_EQ(body["error"]["type"], "invalid_request_error");
  EXPECT_EQ(body["error"]["param"], "top_p");
  EXPECT_EQ(body["error"]["code"], "why");
  const auto bare =
      nlohmann::json::parse(to_json(to_api_error({Code::kInternal, "x"})));
  EXPECT_TRUE(bare["error"]["param"].is_null());
  EXPECT_TRUE(bare["error"]["code"].is_null());
}

TEST(ApiErrorTable, MessagesThatAreNoUtf8StillGiveJson) {
  const auto body =
      nlohmann::json::parse(to_json(to_api_error({Code::kIo, "\xff"})));
  EXPECT_EQ(body["error"]["message"], "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace afterglow
