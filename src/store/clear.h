#pragma once

#include <cstdint>
#include <optional>

#include "store/context.h"
#include "store/disk_space.h"
#include "store/manifest_keeper.h"

namespace afterglow {

/// As Store::clear: in one transaction the cache forgets, the files go,
/// children before parents, and the manifest is written anew.
Result<std::uint64_t> clear_blocks(
    StoreContext& context,
    DiskSpace& space,
    ManifestKeeper& manifest,
    const std::optional<BlockId>& root
);

}  // namespace afterglow
