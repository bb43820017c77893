#pragma once

#include <string>

namespace afterglow {

/// Makes the process's log: lines on standard error, each with UTC time, level
/// and a message that stays in its line. level: DEBUG, INFO, WARNING, ERROR
/// or CRITICAL.
void set_up_log(const std::string& level);

}  // namespace afterglow
