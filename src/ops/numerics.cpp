#include "ops/numerics.h"

namespace afterglow {

const char* to_string(Activations mode) {
  switch (mode) {
    case Activations::kInt16:
      return "int16";
    case Activations::kInt8:
      return "int8";
    case Activations::kF32:
      return "f32";
  }
  return "unknown";
}

Result<Activations> parse_activations(const std::string& text) {
  for (Activations mode :
       {Activations::kInt16, Activations::kInt8, Activations::kF32}) {
    if (text == to_string(mode)) {
      return mode;
    }
  }
  return Error{
      Code::kInvalidArgument,
      "unknown activation mode '" + text + "': use int16, int8 or f32"};
}

}  // namespace afterglow
