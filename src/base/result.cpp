#include "base/result.h"

namespace afterglow {

const char* to_string(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kNotFound:
      return "not found";
    case Code::kExists:
      return "exists";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kIo:
      return "I/O error";
    case Code::kNoSpace:
      return "no space";
    case Code::kPermission:
      return "permission denied";
    case Code::kExhausted:
      return "out of memory or descriptors";
    case Code::kOverloaded:
      return "overloaded";
    case Code::kCancelled:
      return "cancelled";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kInternal:
      return "internal error";
  }
  return "unknown";
}

}  // namespace afterglow
