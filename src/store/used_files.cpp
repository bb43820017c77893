#include "store/used_files.h"

namespace afterglow {

void UsedFiles::look() {
  std::lock_guard guard(mutex_);
  for (const BlockId& id : context_.cache.take_used()) {
    // One that others removed may have been noticed as gone meanwhile, and so
    // is no longer believed durable. One out of reach for now is kept.
    if (context_.cache.is_durable(id)) {
      auto info = context_.files->info(context_.file_of(id));
      if (info || info.error().code != Code::kNotFound) {
        continue;
      }
    }
    context_.cache.renew(id);
  }
}

}  // namespace afterglow
