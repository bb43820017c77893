#include "cli/set_up_log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <map>
#include <memory>

#include "server/log_value.h"

namespace afterglow {
namespace {

/// The message, in one line whatever is in it.
class OneLine : public spdlog::custom_flag_formatter {
 public:
  void format(
      const spdlog::details::log_msg& message,
      const std::tm&,
      spdlog::memory_buf_t& to
  ) override {
    const std::string line =
        log_line({message.payload.data(), message.payload.size()});
    to.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<OneLine>();
  }
};

}  // namespace

void set_up_log(const std::string& level) {
  const std::map<std::string, spdlog::level::level_enum> levels = {
      {"DEBUG", spdlog::level::debug},
      {"INFO", spdlog::level::info},
      {"WARNING", spdlog::level::warn},
      {"ERROR", spdlog::level::err},
      {"CRITICAL", spdlog::level::critical}};
  spdlog::set_default_logger(spdlog::stderr_color_mt("afterglow"));
  spdlog::set_level(levels.at(level));
  auto formatter =
      std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc
      );
  formatter->add_flag<OneLine>('*').set_pattern(
      "%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %*"
  );
  spdlog::set_formatter(std::move(formatter));
}

}  // namespace afterglow
