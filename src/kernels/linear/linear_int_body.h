// Included once per target, behind its lanes.
namespace afterglow::AFTERGLOW_TARGET {

inline Rows::Float load_scales(ElementType type, const std::byte* p) {
  switch (type) {
    case ElementType::kF16:
      return Rows::scales_half(p);
    case ElementType::kBF16:
      return Rows::scales_bfloat(p);
    default:
      return Rows::scales_f32(p);
  }
}

/// One integer sum for each of the lanes and of Tokens tokens, over 32 inputs.
template <int Tokens, CodeForm Form, class R = Rows>
struct GroupDots;

template <int Tokens, class R>
struct GroupDots<Tokens, CodeForm::kBytes, R> {
  static constexpr int kCodeBytes = 32;
  typename R::ByteDot dot[Tokens];

  [[gnu::always_inline]] void take(
      typename R::Int codes, const std::int8_t* x, int input
  ) {
#pragma GCC unroll 8
    for (int t = 0; t < Tokens; ++t) {
      dot[t].take(codes, x + t * kCodeBytes + input);
    }
  }
  [[gnu::always_inline]] typename R::Int total(int t) {
    return dot[t].total();
  }
};

template <int Tokens, class R>
struct GroupDots<Tokens, CodeForm::kHighLow, R> {
  static constexpr int kCodeBytes = 64;
  typename R::ByteDot high[Tokens];
  typename R::ByteDot low[Tokens];

  [[gnu::always_inline]] void take(
      typename R::Int codes, const std::int8_t* x, int input
  ) {
#pragma GCC unroll 8
    for (int t = 0; t < Tokens; ++t) {
      high[t].take(codes, x + t * kCodeBytes + input);
      low[t].take(codes, x + t * kCodeBytes + 32 + input);
    }
  }
  [[gnu::always_inline]] typename R::Int total(int t) {
    return R::high_low_total(high[t], low[t]);
  }
};

template <int Tokens, class R>
struct GroupDots<Tokens, CodeForm::kWords, R> {
  static constexpr int kCodeBytes = 64;
  typename R::WordDot dot[Tokens];

  [[gnu::always_inline]] void take(
      typename R::Int codes, const std::int8_t* x, int input
  ) {
    typename R::Int even = R::even_bytes(codes);
    typename R::Int odd = R::odd_bytes(codes);
    auto* words = reinterpret_cast<const std::int16_t*>(x);
#pragma GCC unroll 8
    for (int t = 0; t < Tokens; ++t) {
      dot[t].take(even, odd, words + t * (kCodeBytes / 2) + input);
    }
  }
  [[gnu::always_inline]] typename R::Int total(int t) {
    return dot[t].total();
  }
};

/// A tile of Tokens tokens by Rows::kWidth rows, from `row` on of a block.
template <int Tokens, int Bits, CodeForm Form, bool Bias>
inline void linear_tile(
    const PackedMatrix& w,
    const std::byte* block,
    int row,
    const std::int8_t* x,
    const InputGroup* in,
    Rows::Float (&y)[Tokens]
) {
  using Dots = GroupDots<Tokens, Form>;
  constexpr std::size_t kSubBytes = 16 * 32 * Bits / 8;
  // Apart from y, so that the sums stay in registers.
  Rows::Float sums[Tokens];
  std::size_t scale_bytes = w.element_bytes;
  std::size_t subs = w.group / 32;
#pragma GCC unroll 8
  for (int t = 0; t < Tokens; ++t) {
    sums[t] = Rows::zero();
  }
  for (std::size_t c = 0; c < w.cols; c += w.group, block += w.block_bytes) {
    Rows::Float scale = load_scales(w.type, block + row * scale_bytes);
    const std::byte* codes = block + w.header_bytes + row * 4;
    for (std::size_t s = 0; s < subs; ++s) {
      Dots dots;
      if constexpr (Bits == 4) {
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
          Rows::Int both = Rows::load_codes(codes + j * 64);
          dots.take(Rows::low_nibbles(both), x, 4 * j);
          dots.take(Rows::high_nibbles(both), x, 16 + 4 * j);
        }
      } else {
#pragma GCC unroll 8
        for (int j = 0; j < 8; ++j) {
          dots.take(Rows::load_codes(codes + j * 64), x, 4 * j);
        }
      }
#pragma GCC unroll 8
      for (int t = 0; t < Tokens; ++t) {
        Rows::Int total = dots.total(t);
        if constexpr (!Bias) {
          total = Rows::minus(total, in[t].correction);
        }
        Rows::Float sum =
            Rows::multiply(Rows::as_float(total), Rows::broadcast(in[t].scale));
        sums[t] = Rows::multiply_add(scale, sum, sums[t]);
      }
      codes += kSubBytes;
      x += Tokens * Dots::kCodeBytes;
      in += Tokens;
    }
    if constexpr (Bias) {
      Rows::Float bias = load_scales(w.type, block + (16 + row) * scale_bytes);
#pragma GCC unroll 8
      for (int t = 0; t < Tokens; ++t) {
        Rows::Float sum = Rows::broadcast(in[t - Tokens].sum);
        sums[t] = Rows::multiply_add(bias, sum, sums[t]);
      }
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < Tokens; ++t) {
    y[t] = sums[t];
  }
}

template <int Tokens, int Bits, CodeForm Form, bool Bias>
inline void linear_block(
    const LinearInt& a, std::size_t block, std::size_t token
) {
  const PackedMatrix& w = *a.weight;
  std::size_t groups = w.cols / 32;
  const std::int8_t* x = a.codes + token * groups * code_bytes(a.form);
  const InputGroup* in = a.groups + token * groups;
  const std::byte* data = w.data + block * w.row_block_bytes;
  std::size_t first = block * 16;
  for (int row = 0; row < 16 && first + row < w.rows; row += Rows::kWidth) {
    Rows::Float y[Tokens];
    linear_tile<Tokens, Bits, Form, Bias>(w, data, row, x, in, y);
    std::size_t left = w.rows - first - row;
    for (int t = 0; t < Tokens; ++t) {
      float* out = a.y + (token + t) * a.y_step + first + row;
      if (left >= Rows::kWidth) {
        if (a.bias != nullptr) {
          y[t] = Rows::plus(y[t], Rows::scales_f32(a.bias + first + row));
        }
        Rows::put(out, y[t]);
      } else {
        float rest[Rows::kWidth];
        Rows::put(rest, y[t]);
        for (std::size_t i = 0; i < left; ++i) {
          out[i] = rest[i] + (a.bias != nullptr ? a.bias[first + row + i] : 0);
        }
      }
    }
  }
}

template <int Bits, CodeForm Form, bool Bias>
inline void linear_blocks(const LinearInt& a) {
  for (std::size_t b = a.first_block; b < a.last_block; ++b) {
    std::size_t t = 0;
    while (t < a.tokens) {
      std::size_t size = tile_size(a.tokens - t, Rows::kTile);
      switch (size) {
        case 1:
          linear_block<1, Bits, Form, Bias>(a, b, t);
          break;
        case 2:
          linear_block<2, Bits, Form, Bias>(a, b, t);
          break;
        case 4:
          linear_block<4, Bits, Form, Bias>(a, b, t);
          break;
        default:
          if constexpr (Rows::kTile >= 8) {
            linear_block<8, Bits, Form, Bias>(a, b, t);
          }
      }
      t += size;
    }
  }
}

template <int Bits, CodeForm Form>
inline void linear_form(const LinearInt& a) {
  if (a.weight->has_bias) {
    linear_blocks<Bits, Form, true>(a);
  } else {
    linear_blocks<Bits, Form, false>(a);
  }
}

inline void linear_int(const LinearInt& a) {
  if (a.weight->bits == 4) {
    if (a.form == CodeForm::kBytes) {
      linear_form<4, CodeForm::kBytes>(a);
    } else {
      linear_form<4, CodeForm::kHighLow>(a);
    }
  } else if constexpr (Rows::kWordsFor8Bit) {
    linear_form<8, CodeForm::kWords>(a);
  } else if (a.form == CodeForm::kBytes) {
    linear_form<8, CodeForm::kBytes>(a);
  } else {
    linear_form<8, CodeForm::kHighLow>(a);
  }
}

}  // namespace afterglow::AFTERGLOW_TARGET
