#pragma once

#include <string>

namespace afterglow {

/// The prefix and 32 random hex digits. Thread: safe from any thread.
std::string random_id(const char* prefix);

}  // namespace afterglow
