#include "server/json_output.h"

#include <nlohmann/json.hpp>

#include "server/openai_response.h"

namespace afterglow {

Output json_output(const nlohmann::ordered_json& body, unsigned status) {
  Output output;
  output.head.emplace();
  output.head->status = status;
  output.body = openai::dump(body);
  output.done = true;
  return output;
}

Output fault_output(const Error& error, const std::string& member) {
  ApiError answer = to_api_error(error);
  if (answer.status < 500) answer.param = member;
  return error_output(answer);
}

}  // namespace afterglow
