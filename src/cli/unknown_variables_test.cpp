#include "cli/unknown_variables.h"

#include <gtest/gtest.h>

namespace afterglow {
namespace {

using Lines = std::vector<std::string>;

const KnownFlags kFlags = {
    {"port", "max-tokens", "prompt-cache-bytes"}, {"system-prompt", "json"}};

Lines told(const Lines& environment) {
  return unknown_variables(environment, kFlags);
}

TEST(UnknownVariables, AreNamedWithTheOneThatWasMeant) {
  EXPECT_EQ(
      told({"HOME=/root", "AFTERGLOW_PROMPT_CACHE_BITES=1G", "AFTERGLOW_X=1"}),
      (Lines{
          "AFTERGLOW_PROMPT_CACHE_BITES is set, but there is no such variable; "
          "did you mean AFTERGLOW_PROMPT_CACHE_BYTES?",
          "AFTERGLOW_X is set, but there is no such variable"})
  );
}

TEST(UnknownVariables, TheirValuesAreNotTold) {
  for (const std::string& line : told({"AFTERGLOW_API_KYE=sk-secret"})) {
    EXPECT_EQ(line.find("sk-"), std::string::npos) << line;
  }
  EXPECT_EQ(told({"AFTERGLOW_API_KYE=sk-secret"}).size(), 1U);
}

TEST(UnknownVariables, ThoseThatAreReadAreNotTold) {
  EXPECT_EQ(
      told(
          {"AFTERGLOW_PORT=1",
           "AFTERGLOW_MAX_TOKENS=",
           "AFTERGLOW_SYSTEM_PROMPT=x",
           "AFTERGLOW_JSON=1",
           "AFTERGLOW_CONFIG=/etc/a.toml",
           "AFTERGLOW_TARGET=avx2",
           "AFTERGLOW_PROGRAM=/bin/a",
           "AFTERGLOWS=1",
           "OTHER_AFTERGLOW_PROT=1"}
      ),
      Lines{}
  );
}

TEST(UnknownVariables, AnEmptyValueOfAWrongNameIsTold) {
  EXPECT_EQ(told({"AFTERGLOW_PROT="}).size(), 1U);
  EXPECT_EQ(told({"AFTERGLOW_PROT"}).size(), 1U);
}

TEST(UnknownVariables, ThoseOfKubernetesAreNotTold) {
  for (const std::string name : {"AFTERGLOW", "AFTERGLOW_WEB"}) {
    EXPECT_EQ(
        told(
            {name + "_SERVICE_HOST=10.0.0.7",
             name + "_SERVICE_PORT=8080",
             name + "_SERVICE_PORT_HTTP=8080",
             name + "_PORT=tcp://10.0.0.7:8080",
             name + "_PORT_8080_TCP=tcp://10.0.0.7:8080",
             name + "_PORT_8080_TCP_PROTO=tcp",
             name + "_PORT_8080_TCP_PORT=8080",
             name + "_PORT_8080_TCP_ADDR=10.0.0.7"}
        ),
        Lines{}
    );
  }
  EXPECT_EQ(
      told({"AFTERGLOW_PORT_HTTP=1", "AFTERGLOW_WEB_PORT=8080"}).size(), 2U
  );
}

}  // namespace
}  // namespace afterglow
