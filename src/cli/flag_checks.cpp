#include "cli/flag_checks.h"

#include <charconv>
#include <sstream>
#include <string>
#include <system_error>

namespace afterglow {
namespace {

template <class Number>
CLI::Validator check(const std::string& kind, Number least, Number most) {
  std::ostringstream wanted;
  wanted << "must be a " << kind << " from " << least;
  if (most < std::numeric_limits<Number>::max()) wanted << " to " << most;
  return CLI::Validator(
      [least, most, message = wanted.str()](const std::string& text) {
        Number value{};
        const char* end = text.data() + text.size();
        const auto read = std::from_chars(text.data(), end, value);
        const bool good = read.ec == std::errc() && read.ptr == end &&
                          value >= least && value <= most;
        return good ? std::string() : message;
      },
      ""
  );
}

}  // namespace

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return check("whole number", least, most);
}

CLI::Validator real_number(double least, double most) {
  return check("number", least, most);
}

CLI::Validator not_empty() {
  return CLI::Validator(
      [](const std::string& text) {
        return std::string(text.empty() ? "must not be empty" : "");
      },
      ""
  );
}

}  // namespace afterglow
