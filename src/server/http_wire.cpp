#include "server/http_wire.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <ctime>

#include "base/check.h"

namespace afterglow {
namespace {

void add_header(
    std::string& text, std::string_view name, std::string_view value
) {
  text.append(name).append(": ").append(value).append("\r\n");
}

std::string to_hex(std::size_t value) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, 16);
  return std::string(digits, end.ptr);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decode_percent(std::string_view text, bool plus_is_space) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high >= 0 && low >= 0) {
        result += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    result += plus_is_space && text[i] == '+' ? ' ' : text[i];
  }
  return result;
}

}  // namespace

std::string WireWriter::head_text(
    const ResponseHead& head, std::size_t body_bytes
) {
  begun_ = true;
  status_ = head.status;
  streaming_ = head.streaming;
  chunked_ = streaming_ && options_.http11;
  if (streaming_ && !chunked_) options_.keep_alive = false;

  std::string text = "HTTP/1.1 " + std::to_string(head.status) + " ";
  text.append(reason_phrase(head.status)).append("\r\n");
  add_header(text, "Server", "afterglow");
  const bool empty = head.status == 204;  // and says so (RFC 9110, 8.6)
  if (!empty) add_header(text, "Content-Type", head.content_type);
  for (const auto& [name, value] : head.headers) add_header(text, name, value);
  for (const auto& [name, value] : options_.headers) {
    add_header(text, name, value);
  }
  if (chunked_) {
    add_header(text, "Transfer-Encoding", "chunked");
  } else if (!streaming_ && !empty) {
    add_header(text, "Content-Length", std::to_string(body_bytes));
  }
  add_header(text, "Connection", options_.keep_alive ? "keep-alive" : "close");
  return text + "\r\n";
}

std::string WireWriter::write(const Output& output) {
  CHECK(!done_, "output after the end of a response");
  std::string text;
  if (output.head) {
    CHECK(!begun_, "a second head in one response");
    CHECK(
        output.head->streaming || output.done,
        "a body with a length must come whole"
    );
    text = head_text(*output.head, output.body.size());
    // Its length is the one that the client has (RFC 9110, 15.4.5).
    if (status_ == 304) options_.head_only = true;
  }
  CHECK(
      begun_ || (output.body.empty() && !output.done), "a body without a head"
  );
  if (!options_.head_only) {
    if (!chunked_) {
      text += output.body;
    } else if (!output.body.empty()) {
      text += to_hex(output.body.size()) + "\r\n" + output.body + "\r\n";
    }
    if (chunked_ && output.done) text += "0\r\n\r\n";
  }
  done_ = output.done;
  return text;
}

std::string http_date(std::chrono::system_clock::time_point time) {
  static constexpr const char* kDays[] = {
      "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {
      "Jan",
      "Feb",
      "Mar",
      "Apr",
      "May",
      "Jun",
      "Jul",
      "Aug",
      "Sep",
      "Oct",
      "Nov",
      "Dec"};
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[48];
  std::snprintf(
      text,
      sizeof text,
      "%s, %02d %s %04d %02d:%02d:%02d GMT",
      kDays[utc.tm_wday],
      utc.tm_mday,
      kMonths[utc.tm_mon],
      utc.tm_year + 1900,
      utc.tm_hour,
      utc.tm_min,
      utc.tm_sec
  );
  return text;
}

Target split_target(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    const std::string_view after = target.substr(scheme.size());
    const std::size_t end = std::min(after.find_first_of("/?"), after.size());
    const std::string_view rest = after.substr(end);
    return {after.substr(0, end), rest.empty() ? "/" : rest};
  }
  return {{}, target};
}

std::string_view reason_phrase(unsigned status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "Status";
  }
}

std::string decode_path(std::string_view target) {
  return decode_percent(target.substr(0, target.find('?')), false);
}

std::vector<QueryParameter> decode_query(std::string_view target) {
  const std::size_t mark = target.find('?');
  if (mark == std::string_view::npos) return {};
  std::string_view rest = target.substr(mark + 1);
  rest = rest.substr(0, rest.find('#'));
  std::vector<QueryParameter> query;
  while (!rest.empty()) {
    const std::string_view piece = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(piece.size() + 1, rest.size()));
    if (piece.empty()) continue;
    const std::size_t equals = piece.find('=');
    const bool has_value = equals != std::string_view::npos;
    query.emplace_back(
        decode_percent(piece.substr(0, equals), true),
        has_value ? decode_percent(piece.substr(equals + 1), true) : ""
    );
  }
  return query;
}

}  // namespace afterglow
