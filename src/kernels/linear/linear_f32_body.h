// Included once per target, behind its lanes and panel_body.h.
namespace afterglow::AFTERGLOW_TARGET {

inline F load_sixteen(ElementType type, const std::byte* p) {
  switch (type) {
    case ElementType::kF16:
      return load_half(reinterpret_cast<const std::uint16_t*>(p));
    case ElementType::kBF16:
      return load_bfloat(reinterpret_cast<const std::uint16_t*>(p));
    default:
      return load(reinterpret_cast<const float*>(p));
  }
}

/// Four inputs of 16 rows from the bytes of `codes`.
[[gnu::always_inline]] inline void put_codes(
    I codes, I offset, F scale, F bias, float* out
) {
  const I byte = set_int(255);
  auto put = [&](int i, I code) {
    store(out + i * 16, fma(scale, to_float(sub(code, offset)), bias));
  };
  put(0, bit_and(codes, byte));
  put(1, bit_and(shift_right<8>(codes), byte));
  put(2, bit_and(shift_right<16>(codes), byte));
  put(3, shift_right<24>(codes));
}

/// Inputs 16 half .. 16 half + 15 of 32, for 16 rows.
inline void decode_half(
    const PackedMatrix& w,
    const std::byte* codes,
    int half,
    F scale,
    F bias,
    float* out
) {
  const I offset = set_int(w.offset);
  const I nibble = set_int(0x0f0f0f0f);
  for (int i = 0; i < 4; ++i) {
    I code = load_int(codes + (w.bits == 8 ? 4 * half + i : i) * 64);
    if (w.bits == 4) {
      I both = half == 0 ? code : shift_right<4>(code);
      code = lookup(w.values, bit_and(both, nibble));
    }
    put_codes(code, offset, scale, bias, out + i * 64);
  }
}

/// A row block in f32: [cols][16].
inline void decode_block(
    const PackedMatrix& w, const std::byte* block, float* out
) {
  std::size_t sixteen = 16 * w.element_bytes;
  std::size_t biases = w.block_groups * sixteen;
  for (std::size_t c = 0; c < w.cols; c += w.block_inputs) {
    const std::byte* codes = block + w.header_bytes;
    for (std::size_t i = 0; i < w.block_inputs; i += 16) {
      const std::byte* group = block + i / w.group * sixteen;
      F scale = load_sixteen(w.type, group);
      F bias = w.has_bias ? load_sixteen(w.type, group + biases) : set(0.0f);
      decode_half(w, codes, i % 32 / 16, scale, bias, out);
      codes += i % 32 / 16 * 64 * w.bits;
      out += 16 * 16;
    }
    block += w.block_bytes;
  }
}

/// Row blocks [block, block + vectors) from their panels.
template <class T>
inline void linear_panels(
    const LinearF32& a, std::size_t block, std::size_t vectors, const T* b
) {
  const PackedMatrix& w = *a.weight;
  float sums[kPanelRows * kLinearBlocks * 16];
  for (std::size_t t = 0; t < a.tokens; t += kPanelRows) {
    std::size_t rows = a.tokens - t < kPanelRows ? a.tokens - t : kPanelRows;
    constexpr std::size_t kStep = kLinearBlocks * 16;
    Panel<T> p{
        a.x + t * a.x_step,
        a.x_step,
        w.cols,
        b,
        16,
        w.cols * 16,
        sums,
        kStep,
        16};
    panel(p, rows, vectors);
    std::size_t first = block * 16;
    std::size_t n =
        w.rows - first < vectors * 16 ? w.rows - first : vectors * 16;
    for (std::size_t r = 0; r < rows; ++r) {
      float* out = a.y + (t + r) * a.y_step + first;
      for (std::size_t i = 0; i < n; i += 16) {
        F y = load(sums + r * kStep + i);
        if (a.bias != nullptr) {
          y = add(y, load_first(a.bias + first + i, n - i));
        }
        store_first(out + i, y, n - i);
      }
    }
  }
}

inline void linear_f32(const LinearF32& a) {
  const PackedMatrix& w = *a.weight;
  for (std::size_t b = a.first_block; b < a.last_block; b += kLinearBlocks) {
    std::size_t left = a.last_block - b;
    std::size_t vectors = left < kLinearBlocks ? left : kLinearBlocks;
    const std::byte* data = w.data + b * w.row_block_bytes;
    if (w.bits != 0) {
      for (std::size_t v = 0; v < vectors; ++v) {
        decode_block(
            w, data + v * w.row_block_bytes, a.panel + v * w.cols * 16
        );
      }
      linear_panels(a, b, vectors, a.panel);
    } else if (w.type == ElementType::kF16) {
      linear_panels(a, b, vectors, reinterpret_cast<const Half*>(data));
    } else if (w.type == ElementType::kBF16) {
      linear_panels(a, b, vectors, reinterpret_cast<const Bfloat*>(data));
    } else {
      linear_panels(a, b, vectors, reinterpret_cast<const float*>(data));
    }
  }
}

}  // namespace afterglow::AFTERGLOW_TARGET
