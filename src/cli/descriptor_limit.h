#pragma once

#include <cstddef>

namespace afterglow {

/// Raises the number of descriptors that this process may have open to the
/// most it may ask for (setrlimit's RLIMIT_NOFILE), and returns it.
std::size_t raise_descriptor_limit();

/// Raises it, and warns where it does not hold so many connections.
void make_room_for_connections(std::size_t connections);

}  // namespace afterglow
