#pragma once

#include "base/result.h"

namespace afterglow {

/// Prints the error to standard error; returns the exit status.
int report_error(const Error& error);

}  // namespace afterglow
