#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "store/kv_conversion.h"
#include "store/mlx_cache_file.h"
#include "store/mlx_cache_file_stamp.h"
#include "store/mlx_cache_file_values.h"

namespace afterglow {

namespace {

/// Room for the token list of a million tokens; larger is no prompt cache.
constexpr std::uint64_t kMaxHeader = std::uint64_t{16} << 20;

Error corrupt(std::string what) {
  return {Code::kCorrupt, std::move(what)};
}

Status read_all(
    const File& file, std::uint64_t offset, std::span<std::byte> out
) {
  auto count = file.read_at(offset, out);
  if (!count) {
    return count.error();
  }
  if (*count != out.size()) {
    return corrupt(
        "file: ends early, at byte " + std::to_string(offset + *count)
    );
  }
  return {};
}

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<std::uint64_t>(bytes[i]);
  }
  return value;
}

KvType kv_type(std::string_view dtype) {
  return dtype == "F32"    ? KvType::kF32
         : dtype == "BF16" ? KvType::kBF16
                           : KvType::kF16;
}

/// One array of a layer on its way into the pages: [heads][tokens][dim].
struct Array {
  std::span<const std::byte> bytes;
  KvType type;
  std::size_t heads;
  std::size_t tokens;
  std::size_t dim;
};

/// Where an array's values go in a page.
struct Placing {
  std::size_t offset;  // of the part, in bytes from the page's start
  KvType type;
  KvPart part;

  std::size_t at(std::size_t head, std::size_t t, std::size_t d) const {
    return offset + part.at(head, t, d) * size_of(type);
  }
};

/// Errors: kCorrupt for a value that cannot be taken over.
Status fill_page(
    const Array& array, const Placing& placing, std::size_t index, Page& page
) {
  std::size_t from_bytes = size_of(array.type);
  std::size_t to_bytes = size_of(placing.type);
  std::size_t first = index * kPageTokens;
  std::size_t count = std::min(kPageTokens, array.tokens - first);
  for (std::size_t head = 0; head < array.heads; ++head) {
    for (std::size_t t = 0; t < count; ++t) {
      const std::byte* from =
          array.bytes.data() +
          (head * array.tokens + first + t) * array.dim * from_bytes;
      for (std::size_t d = 0; d < array.dim; ++d) {
        std::uint32_t bits = 0;
        std::uint32_t result = 0;
        std::memcpy(&bits, from + d * from_bytes, from_bytes);
        if (!convert_kv(array.type, bits, placing.type, result)) {
          return corrupt(
              "token " + std::to_string(first + t) + ": the value " +
              std::to_string(kv_value(array.type, bits)) + " does not fit " +
              to_string(placing.type)
          );
        }
        std::memcpy(page.data() + placing.at(head, t, d), &result, to_bytes);
      }
    }
  }
  return {};
}

}  // namespace

Result<MlxCacheFile> MlxCacheFile::open(const std::string& path) {
  auto file = open_user_file(path);
  if (!file) {
    return file.error();
  }
  return open(std::move(*file), path);
}

Result<MlxCacheFile> MlxCacheFile::open(
    std::unique_ptr<File> file, const std::string& path
) {
  MlxCacheFile cache(std::move(file), path);
  Status read = cache.read_header();
  if (read) {
    read = cache.read_offset();
  }
  if (!read) {
    return cache.at_fault(read.error());
  }
  return cache;
}

Error MlxCacheFile::at_fault(Error error) const {
  error.message = "[store.mlx_cache] " + path_ + ": " + error.message;
  return error;
}

Status MlxCacheFile::read_header() {
  auto info = file_->info();
  if (!info) {
    return info.error();
  }
  if (info->bytes < 8) {
    return corrupt(
        "file: " + std::to_string(info->bytes) + " bytes are no cache"
    );
  }
  std::array<std::byte, 8> length_bytes;
  if (Status read = read_all(*file_, 0, length_bytes); !read) {
    return read;
  }
  std::uint64_t length = little_endian(length_bytes);
  if (length > info->bytes - 8 || length > kMaxHeader) {
    std::array<std::byte, 1> first{};
    Status read = info->bytes > 8 ? read_all(*file_, 8, first) : Status();
    if (!read) {
      return read;
    }
    if (first[0] != std::byte{'{'}) {
      return corrupt(
          "not a safetensors file, which holds its header's length and then "
          "the header, that begins with '{'"
      );
    }
  }
  if (length > info->bytes - 8) {
    return corrupt(
        "header: " + std::to_string(length) + " bytes, but the file has " +
        std::to_string(info->bytes)
    );
  }
  if (length > kMaxHeader) {
    return corrupt("header: " + std::to_string(length) + " bytes are too many");
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  auto bytes = std::as_writable_bytes(std::span(text.data(), text.size()));
  if (Status read = read_all(*file_, 8, bytes); !read) {
    return read;
  }
  data_at_ = 8 + length;
  auto header = parse_mlx_cache_header(text, info->bytes - data_at_);
  if (!header) {
    return header.error();
  }
  header_ = std::move(*header);
  return has_stamp(header_) ? read_stamp(text) : Status();
}

Status MlxCacheFile::read_stamp(std::string_view text) {
  auto stamp = parse_stamp(header_);
  if (!stamp) {
    return stamp.error();
  }
  if (find_stamp_sum(text) != stamp->sum || stamp_sum(text) != stamp->sum) {
    return corrupt("header: bytes have another sum; the file was changed");
  }
  std::vector<const TensorEntry*> order;
  for (const MlxCacheHeader::Layer& layer : header_.layers) {
    if (!layer.offset) {
      return corrupt("header: a stamp in an older layout");
    }
    order.insert(order.end(), {&layer.k, &layer.v, &*layer.offset});
  }
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) {
    return a->begin < b->begin;
  });
  for (std::size_t i = 0; i < order.size(); ++i) {
    sums_.emplace_back(order[i]->name, stamp->sums[i]);
  }
  stamp_ = std::move(stamp->stamp);
  return {};
}

Status MlxCacheFile::read_offset() {
  for (std::size_t i = 0; i < header_.layers.size(); ++i) {
    const MlxCacheHeader::Layer& layer = header_.layers[i];
    std::string where = "layer " + std::to_string(i) + ": ";
    std::uint64_t room = layer.k.shape[2];
    std::uint64_t tokens = room;
    if (layer.offset) {
      std::vector<std::byte> bytes(layer.offset->end - layer.offset->begin);
      Status read = read_all(*file_, data_at_ + layer.offset->begin, bytes);
      if (read) {
        read = verify(*layer.offset, bytes);
      }
      if (!read) {
        return read;
      }
      tokens = little_endian(bytes);
    }
    if (tokens == 0 || tokens > room) {
      return corrupt(
          where + std::to_string(tokens) + " tokens, but room for " +
          std::to_string(room)
      );
    }
    if (i > 0 && tokens != tokens_) {
      return corrupt(
          where + std::to_string(tokens) + " tokens, but layer 0 has " +
          std::to_string(tokens_)
      );
    }
    tokens_ = static_cast<std::size_t>(tokens);
    if (stamp_ && (stamp_->tokens.size() != tokens || room != tokens)) {
      return corrupt(where + "another number of tokens than afterglow.tokens");
    }
  }
  return {};
}

Status MlxCacheFile::verify(
    const TensorEntry& tensor, std::span<const std::byte> bytes
) const {
  for (const auto& [name, sum] : sums_) {
    if (name == tensor.name && xxh3_64(bytes) != sum) {
      return corrupt("array '" + name + "': bytes have another sum");
    }
  }
  return {};
}

KvLayout MlxCacheFile::layout() const {
  KvLayout layout;
  for (const MlxCacheHeader::Layer& layer : header_.layers) {
    const auto& k = layer.k.shape;
    layout.layers.push_back(
        {static_cast<std::uint32_t>(k[1]),
         static_cast<std::uint32_t>(k[3]),
         static_cast<std::uint32_t>(layer.v.shape[3]),
         kv_type(layer.k.dtype)}
    );
  }
  return layout;
}

Status MlxCacheFile::check_layout(const KvLayout& model) const {
  Status fits = check_same_shapes(layout(), model);
  if (!fits && fits.error().code == Code::kInvalidArgument) {
    return at_fault(
        {fits.error().code,
         fits.error().message + "; the file is another model's"}
    );
  }
  return fits ? fits : at_fault(fits.error());
}

Result<std::vector<std::byte>> MlxCacheFile::read_used(const TensorEntry& tensor
) const {
  std::size_t heads = tensor.shape[1];
  std::size_t row = tensor.shape[3] * mlx_element_bytes(tensor.dtype);
  std::size_t used = tokens_ * row;  // of a head
  std::size_t step = tensor.shape[2] * row;
  std::vector<std::byte> bytes(heads * used);
  for (std::size_t head = 0; head < heads; ++head) {
    Status read = read_all(
        *file_,
        data_at_ + tensor.begin + head * step,
        std::span(bytes).subspan(head * used, used)
    );
    if (!read) {
      return read.error();
    }
  }
  if (Status right = verify(tensor, bytes); !right) {
    return right.error();
  }
  return bytes;
}

Status MlxCacheFile::read(
    const KvLayout& layout, std::span<const std::shared_ptr<Page>> pages
) const {
  if (Status fits = check_layout(layout); !fits) {
    return fits;
  }
  CHECK(pages.size() == pages_for(tokens_));
  for (std::size_t i = 0; i < header_.layers.size(); ++i) {
    for (bool is_k : {true, false}) {
      const TensorEntry& tensor =
          is_k ? header_.layers[i].k : header_.layers[i].v;
      auto bytes = read_used(tensor);
      if (!bytes) {
        return at_fault(bytes.error());
      }
      Array array{
          *bytes,
          kv_type(tensor.dtype),
          tensor.shape[1],
          tokens_,
          tensor.shape[3]};
      Placing placing{
          is_k ? layout.k_offset(i, kPageTokens)
               : layout.v_offset(i, kPageTokens),
          layout.layers[i].type,
          {array.dim, is_k}};
      for (std::size_t page = 0; page < pages.size(); ++page) {
        Status filled = fill_page(array, placing, page, *pages[page]);
        if (!filled) {
          Error error = filled.error();
          error.message = "array '" + tensor.name + "': " + error.message;
          return at_fault(std::move(error));
        }
      }
    }
  }
  return {};
}

}  // namespace afterglow
