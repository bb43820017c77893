#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/exchange.h"
#include "server/workers.h"

namespace afterglow {

/// An exchange whose response a worker makes. Work that has begun runs to its
/// end even when the client leaves; work that has not is dropped then, with
/// all it holds. Work that throws is answered as to_api_error says.
std::unique_ptr<Exchange> defer(
    Workers& workers, std::string client, std::function<Output()> work
);

}  // namespace afterglow
