#include "cli/download_model.h"

#include <chrono>
#include <optional>
#include <stop_token>

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
  // A signal that ended it has done so.
  if (own && stop.stop_requested()) own->wait(std::chrono::milliseconds(0));
  if (path.ok() && stop.stop_requested()) {
    return Error{
        Code::kCancelled, "[cli.model] a signal came; " + name + " is here"};
  }
  return path;
}

}  // namespace afterglow
