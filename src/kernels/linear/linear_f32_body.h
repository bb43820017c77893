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

template <int Byte>
inline void put_codes(I word, F scale, F bias, I offset, int bits, float* out) {
  if (bits == 4) {
    I low = bit_and(shift_right<8 * Byte>(word), set_int(15));
    I high = bit_and(shift_right<8 * Byte + 4>(word), set_int(15));
    store(out + Byte * 16, fma(scale, to_float(sub(low, offset)), bias));
    store(
        out + (16 + Byte) * 16, fma(scale, to_float(sub(high, offset)), bias)
    );
  } else {
    I code = bit_and(shift_right<8 * Byte>(word), set_int(255));
    store(out + Byte * 16, fma(scale, to_float(sub(code, offset)), bias));
  }
}

/// A row block in f32: [cols][16].
inline void decode_block(
    const PackedMatrix& w, const std::byte* block, float* out
) {
  I offset = set_int(w.offset);
  for (std::size_t c = 0; c < w.cols; c += w.group, block += w.block_bytes) {
    F scale = load_sixteen(w.type, block);
    F bias = w.has_bias ? load_sixteen(w.type, block + 16 * w.element_bytes)
                        : set(0.0f);
    const std::byte* codes = block + w.header_bytes;
    for (std::size_t i = 0; i < w.group; i += 32, out += 32 * 16) {
      for (int j = 0; j < w.bits; ++j, codes += 64) {
        I word = load_int(codes);
        float* at = out + 4 * j * 16;
        put_codes<0>(word, scale, bias, offset, w.bits, at);
        put_codes<1>(word, scale, bias, offset, w.bits, at);
        put_codes<2>(word, scale, bias, offset, w.bits, at);
        put_codes<3>(word, scale, bias, offset, w.bits, at);
      }
    }
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
