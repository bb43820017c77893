#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/file_system.h"

namespace afterglow {

/// Asked before each operation of a faulty file system; an error makes the
/// operation fail with it. Operations: open, create, open_or_create,
/// make_directory, link, rename, remove, info, list, sync_directory,
/// free_space, and of files read, write, sync, truncate, file_info,
/// set_mtime, lock, try_lock, unlock. `name` is the file's, for link and
/// rename the source's. May itself act on the disk, to force a race.
/// Thread: called from any thread.
using FaultHook = std::function<
    std::optional<Error>(std::string_view operation, std::string_view name)>;

/// Told after each operation, whether it failed or not.
using AfterHook =
    std::function<void(std::string_view operation, std::string_view name)>;

/// Passes everything on to `inner` unless the hook objects. A failing write
/// has written half of its data. A file whose sync failed once never becomes
/// durable, although later syncs of it succeed, as Linux behaves.
std::unique_ptr<FileSystem> make_faulty_file_system(
    std::unique_ptr<FileSystem> inner, FaultHook hook, AfterHook after = {}
);

}  // namespace afterglow
