#pragma once

#include "base/result.h"

namespace afterglow {

/// Prints the error to standard error; returns the exit status: 130, as after
/// Ctrl-C, for kCancelled, else 1.
int report_error(const Error& error);

}  // namespace afterglow
