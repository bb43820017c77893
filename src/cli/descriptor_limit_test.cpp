#include "cli/descriptor_limit.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <memory>
#include <sstream>

namespace afterglow {
namespace {

class DescriptorLimit : public testing::Test {
 protected:
  DescriptorLimit() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit low = before_;
    low.rlim_cur = before_.rlim_max / 2;
    ::setrlimit(RLIMIT_NOFILE, &low);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said_)
    ));
  }
  ~DescriptorLimit() override {
    ::setrlimit(RLIMIT_NOFILE, &before_);
    spdlog::set_default_logger(log_);
  }

  const std::shared_ptr<spdlog::logger> log_ = spdlog::default_logger();
  rlimit before_{};
  std::ostringstream said_;
};

TEST_F(DescriptorLimit, IsRaisedToTheMost) {
  EXPECT_EQ(raise_descriptor_limit(), before_.rlim_max);
  rlimit now{};
  ::getrlimit(RLIMIT_NOFILE, &now);
  EXPECT_EQ(now.rlim_cur, before_.rlim_max);
  EXPECT_EQ(now.rlim_max, before_.rlim_max);
}

TEST_F(DescriptorLimit, ConnectionsThatDoNotFitAreWarnedOf) {
  make_room_for_connections(before_.rlim_max / 2);
  EXPECT_EQ(said_.str(), "");
  make_room_for_connections(before_.rlim_max);
  EXPECT_NE(said_.str().find("--max-connections"), std::string::npos);
}

}  // namespace
}  // namespace afterglow
