#pragma once

#include <functional>

#include "base/result.h"

namespace afterglow {

/// Prints the error to standard error; returns the exit status: 130, as after
/// Ctrl-C, for kCancelled, else 1.
int report_error(const Error& error);

/// What `command` returns, or where it throws, that of report_error; kInternal
/// for what is no Exception.
int report_exceptions(const std::function<int()>& command);

}  // namespace afterglow
