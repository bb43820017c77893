#pragma once

#include "afterglow/model.h"
#include "cli/signals.h"

namespace afterglow {

/// Makes the prompt cache durable, and says on standard error where not all of
/// it was within 30 s. A signal gives up on that and ends the process with 128
/// and its number; what is on disk stays whole.
/// Requires: that all text is written out.
void close_model(Model& model, Signals& signals);

}  // namespace afterglow
