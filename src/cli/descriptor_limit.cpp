#include "cli/descriptor_limit.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include "base/check.h"

namespace afterglow {
namespace {

/// For what is not a connection of the limit: the cache's files, and clients
/// that are told that there is no room.
constexpr std::size_t kOthers = 128;

}  // namespace

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  CHECK(::getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit failed");
  rlimit raised = limit;
  raised.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur
                                                  : limit.rlim_cur;
}

void make_room_for_connections(std::size_t connections) {
  const std::size_t descriptors = raise_descriptor_limit();
  if (descriptors >= kOthers && descriptors - kOthers >= connections) return;
  spdlog::warn(
      "--max-connections {} does not fit: the system lets this process have "
      "{} open files, of which {} are for others; raise it with 'ulimit -Hn' "
      "or LimitNOFILE",
      connections,
      descriptors,
      kOthers
  );
}

}  // namespace afterglow
