#pragma once

#include <stdexcept>
#include <string>

#include "afterglow/export.h"

namespace afterglow {

/// What kind of failure an operation met. Free of any protocol: the server
/// maps it to HTTP in one table.
enum class Code {
  kInvalidArgument,  ///< the caller's input is wrong; a retry fails too
  kNotFound,         ///< no such file, model or entry
  kExists,           ///< it is there already
  kUnsupported,      ///< understood, but not something this build can do
  kCorrupt,          ///< complete bytes with a wrong structure, sum or identity
  kIo,               ///< a read or write failed; the bytes may still be good
  kNoSpace,          ///< the disk is full
  kPermission,       ///< the file system or the hub says no
  kExhausted,        ///< memory or file descriptors
  kOverloaded,       ///< a queue or memory limit: try again later
  kCancelled,        ///< the caller ended it
  kUnavailable,      ///< shutting down, still loading, failed for good
  kInternal,         ///< a fault of ours
};

/// The code's name in words, such as "corrupt".
AFTERGLOW_API const char* to_string(Code code);

/// What the functions of the public interface throw. what() starts with the
/// operation, `[model.load] ...`, and says what is wrong and what to do.
class AFTERGLOW_API Exception : public std::runtime_error {
 public:
  /// message: as what() will give it.
  Exception(Code code, const std::string& message)
      : std::runtime_error(message), code_(code) {}

  /// The kind of failure.
  Code code() const { return code_; }

 private:
  Code code_;
};

}  // namespace afterglow
