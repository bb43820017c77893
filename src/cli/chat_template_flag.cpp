#include "cli/chat_template_flag.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

namespace afterglow {
namespace {

constexpr std::string_view kEnding = ".jinja";
constexpr std::size_t kMostShown = 60;  // of a wrong value

bool is_there(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0;
}

bool speaks_of_messages(std::string_view text) {
  return text.find('{') != text.npos && text.find("messages") != text.npos;
}

std::string shortened(const std::string& text) {
  return text.size() <= kMostShown ? text : text.substr(0, kMostShown) + "...";
}

Error wrong(std::string message) {
  return {Code::kInvalidArgument, std::move(message)};
}

Result<std::string> read_template_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  const bool opened = file.is_open();
  std::string text;
  char piece[4096];
  while (file.read(piece, sizeof piece), file.gcount() > 0) {
    text.append(piece, static_cast<std::size_t>(file.gcount()));
  }
  if (!opened || file.bad()) {  // a folder opens, and fails when it is read
    return Error{
        Code::kIo, "cannot read " + path + ": " + std::strerror(errno)};
  }
  if (!speaks_of_messages(text)) {
    return wrong(path + " is no chat template: it never uses 'messages'");
  }
  return text;
}

}  // namespace

Result<std::string> read_chat_template(const std::string& value) {
  if (value.empty() || speaks_of_messages(value)) return value;
  if (value.find('{') == value.npos && value.ends_with(kEnding)) {
    return read_template_file(value);
  }
  const std::string shown = "'" + shortened(value) + "'";
  if (is_there(value)) {
    return wrong(
        "takes the text of a template or the name of a file that ends in "
        ".jinja; for the file " +
        shown + " write --chat-template \"$(cat FILE)\""
    );
  }
  return wrong(
      shown +
      " is no chat template, as it never uses 'messages', nor the name of a "
      "file that ends in .jinja"
  );
}

}  // namespace afterglow
