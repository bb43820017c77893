#include "cli/flag_checks.h"

#include <gtest/gtest.h>

#include <string>

namespace afterglow {
namespace {

std::string fault(const CLI::Validator& check, std::string text) {
  return check(text);
}

TEST(FlagChecks, WholeNumbersOfTheRange) {
  const auto port = whole_number(0, 65535);
  for (const char* text : {"0", "8080", "65535"}) {
    EXPECT_EQ(fault(port, text), "") << text;
  }
  for (const char* text :
       {"",
        "-1",
        "+1",
        "65536",
        "1.0",
        "1x",
        " 1",
        "0x10",
        "port",
        "18446744073709551616"}) {
    EXPECT_EQ(fault(port, text), "must be a whole number from 0 to 65535")
        << text;
  }
}

TEST(FlagChecks, WithoutAnUpperEndOnlyTheLowerIsTold) {
  const auto count = whole_number(1);
  EXPECT_EQ(fault(count, "18446744073709551615"), "");
  for (const char* text : {"0", "-5", "18446744073709551616"}) {
    EXPECT_EQ(fault(count, text), "must be a whole number from 1") << text;
  }
}

TEST(FlagChecks, FiniteNumbers) {
  const auto share = real_number(0, 1);
  for (const char* text : {"0", "1", "0.25", ".5", "1e-3"}) {
    EXPECT_EQ(fault(share, text), "") << text;
  }
  for (const char* text : {"-0.1", "1.01", "nan", "inf", "", "x", "0.5x"}) {
    EXPECT_EQ(fault(share, text), "must be a number from 0 to 1") << text;
  }
  const auto temperature = real_number(0);
  EXPECT_EQ(fault(temperature, "1e300"), "");
  for (const char* text : {"-1", "inf", "nan", "1e999"}) {
    EXPECT_EQ(fault(temperature, text), "must be a number from 0") << text;
  }
}

TEST(FlagChecks, WhatMustNotBeEmpty) {
  EXPECT_EQ(fault(not_empty(), ""), "must not be empty");
  EXPECT_EQ(fault(not_empty(), " "), "");
}

}  // namespace
}  // namespace afterglow
