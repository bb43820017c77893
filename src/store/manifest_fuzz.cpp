// Any bytes as a manifest: refused, or read into what is written and read
// alike.

#include <cstdlib>

#include "store/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  using namespace afterglow;
  constexpr std::int64_t kNow = 1'800'000'000'000'000'000;
  std::string_view text(reinterpret_cast<const char*>(data), n);
  auto manifest = parse_manifest(text, kNow);
  if (!manifest) {
    return 0;
  }
  std::string once = format_manifest(*manifest);
  auto again = parse_manifest(once, kNow);
  if (!again || format_manifest(*again) != once) {
    std::abort();
  }
  Manifest merged = merge_manifests(*manifest, *again);
  if (merged.entries.size() > manifest->entries.size()) {
    std::abort();
  }
  std::string model;
  std::set<BlockId> stored;
  for (const ManifestEntry& entry : merged.entries) {
    model = entry.model;
    stored.insert(entry.record.path.front());
  }
  keep_stored(merged, model, stored);
  for (const ManifestEntry& entry : merged.entries) {
    if (entry.model == model &&
        (entry.record.path.empty() || entry.record.length == 0)) {
      std::abort();
    }
  }
  drop_expired(merged, kNow);
  return 0;
}
