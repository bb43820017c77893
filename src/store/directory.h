#pragma once

#include "store/context.h"

namespace afterglow {

/// Makes the model's folders where missing, durably, and model.json for
/// people to read. Errors: those of the file system.
Status make_directories(StoreContext& context);

}  // namespace afterglow
