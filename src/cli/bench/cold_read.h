#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace afterglow {

/// Drops the files' pages from the page cache, so that the next read comes
/// from the disk. Errors: kUnsupported when pages stay (a file system in
/// memory); kIo.
Status drop_from_page_cache(const std::vector<std::string>& paths);

/// Reads the files whole with plain preads, in order, with so many threads;
/// returns gigabytes a second: what the disk gives to a program that does
/// nothing with the data. Errors: kIo.
Result<double> plain_read_speed(
    const std::vector<std::string>& paths, int threads
);

}  // namespace afterglow
