#pragma once

#include <functional>
#include <memory>

#include "server/exchange.h"
#include "server/workers.h"

namespace afterglow {

/// An exchange whose response a worker makes. The work runs to its end even
/// when the client leaves.
std::unique_ptr<Exchange> defer(Workers& workers, std::function<Output()> work);

}  // namespace afterglow
