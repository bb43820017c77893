#include "server/tool_fields.h"

#include <nlohmann/json.hpp>
#include <string>

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;

/// False after a fault.
bool check_tool(FieldReader& fields, const json& tool, const std::string& at) {
  if (!tool.is_object()) {
    fields.fail(at, "must be an object");
    return false;
  }
  const auto type = tool.find("type");
  if (type == tool.end() || *type != "function") {
    fields.fail(at + ".type", "must be \"function\"", "unsupported");
    return false;
  }
  const auto function = tool.find("function");
  if (function == tool.end() || !function->is_object()) {
    fields.fail(at + ".function", "must be an object");
    return false;
  }
  const auto name = function->find("name");
  if (name == function->end() || !name->is_string() || *name == "") {
    fields.fail(at + ".function.name", "must be a string that is not empty");
    return false;
  }
  const auto parameters = function->find("parameters");
  if (parameters != function->end() && !parameters->is_null() &&
      !parameters->is_object()) {
    fields.fail(at + ".function.parameters", "must be an object");
    return false;
  }
  return true;
}

}  // namespace

std::string read_tools(FieldReader& fields) {
  const json* tools = fields.find("tools");
  if (tools == nullptr) return {};
  if (!tools->is_array()) {
    fields.fail("tools", "must be a list");
    return {};
  }
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const std::string at = "tools[" + std::to_string(i) + "]";
    if (!check_tool(fields, (*tools)[i], at)) return {};
  }
  return tools->empty() ? "" : tools->dump();
}

void read_tool_use(FieldReader& fields, CompletionRequest& request) {
  request.parallel_tool_calls =
      fields.boolean("parallel_tool_calls").value_or(true);
  const json* choice = fields.find("tool_choice");
  if (choice == nullptr || *choice == "auto") return;
  if (*choice == "none") {
    request.call_tools = false;
  } else {
    fields.fail(
        "tool_choice",
        "is served as \"none\" and \"auto\" only: no answer can be forced to "
        "be a call",
        "unsupported"
    );
  }
}

}  // namespace afterglow
