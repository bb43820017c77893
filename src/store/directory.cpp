#include "store/directory.h"

#include <nlohmann/json.hpp>

#include "store/names.h"
#include "store/temporary.h"

namespace afterglow {

namespace {

std::string describe_model(const StoreContext& context) {
  nlohmann::ordered_json out;
  out["model"] = context.options.model_name;
  out["fingerprint"] = hex(context.key.fingerprint);
  out["spec"] = hex(context.key.spec);
  out["kv_layout"] = context.key.layout.describe();
  out["format"] = kBlockFormat;
  auto replace = nlohmann::ordered_json::error_handler_t::replace;
  return out.dump(2, ' ', false, replace) + "\n";
}

}  // namespace

Status make_directories(StoreContext& context) {
  FileSystem& files = *context.files;
  std::string model = names::model(context.folder);
  for (const std::string& name :
       {std::string(names::kVersion),
        std::string(names::kTemporary),
        model,
        context.blocks}) {
    if (Status made = files.make_directory(name); !made) {
      return made;
    }
  }
  // Always, since a process that made them may have died before its syncs.
  for (const std::string& name :
       {std::string(), std::string(names::kVersion), model}) {
    if (Status synced = files.sync_directory(name); !synced) {
      return synced;
    }
  }
  std::string description = model + "/model.json";
  if (files.info(description)) {
    return {};
  }
  return replace_file(files, model, description, describe_model(context));
}

}  // namespace afterglow
