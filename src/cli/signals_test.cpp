#include "cli/signals.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

namespace afterglow {
namespace {

using namespace std::chrono_literals;

void (*handler_of(int number))(int) {
  struct sigaction action {};
  ::sigaction(number, nullptr, &action);
  return action.sa_handler;
}

/// Each in a process of its own.
class SignalsDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

/// What is not right ends that process in another way than is expected.
void end_unless(bool right) {
  if (!right) std::abort();
}

TEST_F(SignalsDeathTest, AreTakenOneByOne) {
  const auto act = [] {
    Signals signals;
    end_unless(signals.take(0ms) == 0 && !Signals::pending());
    ::raise(SIGTERM);
    ::raise(SIGINT);
    end_unless(Signals::pending());
    end_unless(signals.take(0ms) == SIGTERM);
    end_unless(signals.take(0ms) == SIGINT);
    end_unless(signals.take(0ms) == 0);
    std::exit(0);
  };
  EXPECT_EXIT(act(), testing::ExitedWithCode(0), "");
}

TEST_F(SignalsDeathTest, ThatNohupIgnoresStayIgnored) {
  const auto act = [] {
    ::signal(SIGHUP, SIG_IGN);
    {
      Signals signals;
      signals.also({SIGHUP});
      end_unless(handler_of(SIGHUP) == SIG_IGN);
      ::raise(SIGHUP);
      end_unless(signals.take(0ms) == 0);
    }
    end_unless(handler_of(SIGHUP) == SIG_IGN);
    std::exit(0);
  };
  EXPECT_EXIT(act(), testing::ExitedWithCode(0), "");
}

TEST_F(SignalsDeathTest, ActAsBeforeAfterwards) {
  const auto act = [] {
    for (const int number : {SIGINT, SIGTERM, SIGPIPE}) {
      ::signal(number, SIG_DFL);
    }
    for (int i = 0; i < 2; ++i) {
      Signals signals;
      end_unless(handler_of(SIGPIPE) == SIG_IGN);
      end_unless(handler_of(SIGINT) != SIG_DFL);
    }
    for (const int number : {SIGINT, SIGTERM, SIGPIPE}) {
      end_unless(handler_of(number) == SIG_DFL);
    }
    end_unless(!Signals::watched());
    std::exit(0);
  };
  EXPECT_EXIT(act(), testing::ExitedWithCode(0), "");
}

TEST_F(SignalsDeathTest, ThatNobodyTookActAtTheEnd) {
  const auto act = [] {
    {
      Signals signals;
      ::raise(SIGTERM);
    }
    std::exit(0);
  };
  EXPECT_EXIT(act(), testing::KilledBySignal(SIGTERM), "");
}

TEST_F(SignalsDeathTest, AfterOneThatWasTakenDoNotActAtTheEnd) {
  const auto act = [] {
    {
      Signals signals;
      ::raise(SIGINT);
      ::raise(SIGINT);
      end_unless(signals.wait(0ms));
    }
    std::exit(0);
  };
  EXPECT_EXIT(act(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace afterglow
