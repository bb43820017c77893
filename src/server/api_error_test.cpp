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
    const ApiError error = to_api_error({code, "[a.b] why"});
    EXPECT_EQ(error.status, status) << to_string(code);
    EXPECT_EQ(error.message, "why");
    EXPECT_EQ(text_for_log(error), "[a.b] why");
    const bool wait = status == 429 || status == 503;
    EXPECT_EQ(retry_after(error) > 0, wait) << to_string(code);
  }
}

TEST(ApiErrorTable, OnlyAnOperationIsTakenOffATextsStart) {
  for (const char* text :
       {"why",
        "",
        "[a.b]",
        "[a.b]why",
        "[ab] why",
        "[A b.] why",
        "why [a.b] why",
        "[1, 2] is no prompt"}) {
    const ApiError error = to_api_error({Code::kInvalidArgument, text});
    EXPECT_EQ(error.message, text);
    EXPECT_EQ(text_for_log(error), text);
  }
  const ApiError error =
      to_api_error({Code::kInvalidArgument, "[text.to_ids] [1.5] is no id"});
  EXPECT_EQ(error.message, "[1.5] is no id");
  EXPECT_EQ(error.operation, "text.to_ids");
}

TEST(ApiErrorTable, AServerThatStopsSaysSo) {
  const ApiError error = stopping_error();
  EXPECT_EQ(error.status, 503U);
  EXPECT_EQ(error.code, "stopping");
  EXPECT_EQ(retry_after(error), 1U);
  EXPECT_EQ(error.message.find('['), std::string::npos);
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
