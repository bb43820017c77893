#include "cli/download_model.h"

#include <optional>

#include "cli/download_line.h"
#include "cli/signals.h"
#include "hub/fetch_model.h"

namespace afterglow {

Result<std::string> download_model(const std::string& name, bool refresh) {
  std::optional<Signals> own;
  if (!Signals::watched()) own.emplace();
  DownloadLine line(name);
  std::stop_source stop;
  FetchOptions options;
  options.refresh = refresh;
  options.progress = [&](const DownloadProgress& progress) {
    if (Signals::pending()) stop.request_stop();
    line.show(progress);
  };
  options.cancel = stop.get_token();
  auto path = fetch_model(name, options);
  line.finish(path.ok());
  return path;
}

}  // namespace afterglow
