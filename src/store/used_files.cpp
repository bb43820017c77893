#include "store/used_files.h"

namespace afterglow {

void UsedFiles::look() {
  std::lock_guard guard(mutex_);
  for (const BlockId& id : context_.cache.take_used()) {
    if (!context_.cache.is_durable(id)) {
      continue;  // removed meanwhile, or queued already
    }
    auto info = context_.files->info(context_.file_of(id));
    // One that is out of reach for now is kept.
    if (!info && info.error().code == Code::kNotFound) {
      context_.cache.renew(id);
    }
  }
}

}  // namespace afterglow
