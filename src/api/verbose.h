#pragma once

#include "afterglow/generate.h"

namespace afterglow {

/// The statistics of an answer's last output, on stderr, so that stdout holds
/// the text alone.
void print_statistics(const StepOutput& last, bool any_text);

}  // namespace afterglow
