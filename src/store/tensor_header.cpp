#include "store/tensor_header.h"

#include <algorithm>
#include <limits>

namespace afterglow {

namespace {

constexpr std::size_t kMaxRank = 8;

/// Walks the text once; the first failure sticks and later calls do nothing.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool ok() const { return error_.empty(); }
  Error error() const { return {Code::kCorrupt, error_}; }

  void fail(const std::string& what) {
    if (ok()) {
      error_ = what + " at byte " + std::to_string(at_);
    }
  }

  /// Takes `token` if it comes next.
  bool take(std::string_view token) {
    if (!ok() || text_.substr(at_, token.size()) != token) {
      return false;
    }
    at_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!take(token)) {
      fail("expected " + std::string(token));
    }
  }

  std::string text() {
    expect("\"");
    std::size_t begin = at_;
    while (ok() && at_ < text_.size() && text_[at_] != '"') {
      unsigned char c = static_cast<unsigned char>(text_[at_]);
      if (c == '\\' || c < 0x20 || c > 0x7e) {
        fail("escape or non-ASCII byte in a string");
        return {};
      }
      ++at_;
    }
    std::string value(text_.substr(begin, at_ - begin));
    expect("\"");
    return value;
  }

  std::uint64_t number() {
    constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
    std::size_t begin = at_;
    std::uint64_t value = 0;
    while (ok() && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'
    ) {
      std::uint64_t digit = static_cast<std::uint64_t>(text_[at_] - '0');
      if (value > (kMax - digit) / 10) {
        fail("number too large");
        return 0;
      }
      value = value * 10 + digit;
      ++at_;
    }
    if (at_ == begin || (text_[begin] == '0' && at_ - begin > 1)) {
      fail("expected a plain number");
    }
    return value;
  }

  void rest_is_spaces() {
    at_ = std::min(text_.find_first_not_of(' ', at_), text_.size());
    if (at_ != text_.size()) {
      fail("more than spaces after the header");
    }
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::string error_;
};

void scan_metadata(Scanner& in, TensorHeader& header) {
  in.expect("{\"__metadata__\":{");
  do {
    std::string key = in.text();
    in.expect(":");
    std::string value = in.text();
    for (const auto& [other, unused] : header.metadata) {
      if (other == key) {
        in.fail("metadata key " + key + " appears twice");
      }
    }
    header.metadata.emplace_back(std::move(key), std::move(value));
  } while (in.take(","));
  in.expect("}");
}

TensorEntry scan_tensor(Scanner& in) {
  TensorEntry tensor;
  tensor.name = in.text();
  in.expect(":{\"dtype\":");
  tensor.dtype = in.text();
  in.expect(",\"shape\":[");
  do {
    tensor.shape.push_back(in.number());
    if (tensor.shape.size() > kMaxRank) {
      in.fail("more dimensions than any tensor here has");
    }
  } while (in.take(","));
  in.expect("],\"data_offsets\":[");
  tensor.begin = in.number();
  in.expect(",");
  tensor.end = in.number();
  in.expect("]}");
  return tensor;
}

/// The first name that two tensors share; empty when there is none.
std::string repeated_name(const std::vector<TensorEntry>& tensors) {
  std::vector<std::string_view> names;
  for (const TensorEntry& tensor : tensors) {
    names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  auto twice = std::adjacent_find(names.begin(), names.end());
  return twice == names.end() ? "" : std::string(*twice);
}

}  // namespace

std::string format_tensor_header(const TensorHeader& header) {
  std::string out = "{\"__metadata__\":{";
  const char* separator = "";
  for (const auto& [key, value] : header.metadata) {
    out += separator;
    out += "\"" + key + "\":\"" + value + "\"";
    separator = ",";
  }
  out += "}";
  for (const TensorEntry& tensor : header.tensors) {
    out += ",\"" + tensor.name + "\":{\"dtype\":\"" + tensor.dtype +
           "\",\"shape\":[";
    separator = "";
    for (std::uint64_t dimension : tensor.shape) {
      out += separator + std::to_string(dimension);
      separator = ",";
    }
    out += "],\"data_offsets\":[" + std::to_string(tensor.begin) + "," +
           std::to_string(tensor.end) + "]}";
  }
  out += "}";
  return out;
}

Result<TensorHeader> parse_tensor_header(std::string_view text) {
  Scanner in(text);
  TensorHeader header;
  scan_metadata(in, header);
  while (in.take(",")) {
    header.tensors.push_back(scan_tensor(in));
  }
  in.expect("}");
  in.rest_is_spaces();
  if (!in.ok()) {
    return in.error();
  }
  if (std::string name = repeated_name(header.tensors); !name.empty()) {
    return Error{Code::kCorrupt, "tensor " + name + " appears twice"};
  }
  return header;
}

}  // namespace afterglow
