#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "server/exchange.h"

namespace afterglow {

/// A whole answer of JSON.
Output json_output(const nlohmann::ordered_json& body, unsigned status = 200);

/// An engine's error about what a member of the request said.
Output fault_output(const Error& error, const std::string& member);

}  // namespace afterglow
