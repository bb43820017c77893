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

/// One integer sum for each of the lanes and of Tokens tokens.
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

/// What kind of weight and inputs the loops are compiled for.
template <int Bits, bool Values, int Groups, bool Bias, CodeForm Form>
struct Kind {
  static constexpr int kBits = Bits;
  static constexpr bool kValues = Values;  // codes stand for values
  static constexpr int kGroups = Groups;   // of a block
  static constexpr bool kBias = Bias;
  static constexpr CodeForm kForm = Form;
  // 32 inputs are summed in halves that have scales of their own, or where
  // the sums of codes above 15 would not fit.
  static constexpr bool kNarrow =
      Rows::kNarrowSums && Form == CodeForm::kBytes && (Bits == 8 || Values);
  static constexpr int kParts = Groups == 2 || kNarrow ? 2 : 1;
};

/// Words where codes are too large for sums of bytes. Where halves must be
/// summed apart, they also beat sums of high and of low bytes.
inline CodeForm code_form(const PackedMatrix& w, std::int32_t levels) {
  bool halves = w.block_groups == 2 || w.most > 15;
  if (w.most > Rows::kMostByteCode) {
    return CodeForm::kWords;
  }
  if (levels == kInt8Levels) {
    return CodeForm::kBytes;
  }
  return Rows::kNarrowSums && halves ? CodeForm::kWords : CodeForm::kHighLow;
}

/// Codes of inputs 4i..4i+3 of 32, one row a lane.
template <class K>
[[gnu::always_inline]] inline Rows::Int code_vector(
    const std::byte* codes, int i, Rows::Table values
) {
  if constexpr (K::kBits == 8) {
    return Rows::load_codes(codes + i * 64);
  } else {
    Rows::Int both = Rows::load_codes(codes + i % 4 * 64);
    Rows::Int code = i < 4 ? Rows::low_nibbles(both) : Rows::high_nibbles(both);
    return K::kValues ? Rows::lookup(values, code) : code;
  }
}

/// The sums of codes times inputs over group `g` of 32 inputs.
template <class K, int Tokens>
[[gnu::always_inline]] inline void group_totals(
    const std::byte* codes,
    Rows::Table values,
    const std::int8_t* x,
    int g,
    Rows::Int (&totals)[Tokens]
) {
  constexpr int kVectors = 8 / K::kParts;
  constexpr int kParts = K::kParts / K::kGroups;
#pragma GCC unroll 2
  for (int part = 0; part < kParts; ++part) {
    GroupDots<Tokens, K::kForm> dots;
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      // Both halves of the bytes in turn, so that they share a load.
      int i = K::kBits == 4 && kVectors == 8 ? j % 2 * 4 + j / 2
                                             : (g + part) * kVectors + j;
      dots.take(code_vector<K>(codes, i, values), x, 4 * i);
    }
#pragma GCC unroll 8
    for (int t = 0; t < Tokens; ++t) {
      totals[t] =
          part == 0 ? dots.total(t) : Rows::plus(totals[t], dots.total(t));
    }
  }
}

/// Asks for weights that few tokens would otherwise wait for: this far ahead
/// is more than the processor fetches by itself, and it goes on where blocks
/// end.
template <class K, int Tokens>
[[gnu::always_inline]] inline void fetch_ahead(const std::byte* codes) {
  constexpr std::size_t kAhead = 4096;
  if constexpr (Tokens <= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < K::kBits; ++i) {
      __builtin_prefetch(codes + kAhead + i * 64);
    }
  }
}

/// A tile of Tokens tokens by Rows::kWidth rows, from `row` on of a block.
template <class K, int Tokens>
inline void linear_tile(
    const PackedMatrix& w,
    const std::byte* block,
    int row,
    const std::int8_t* x,
    const InputGroup* in,
    Rows::Float (&y)[Tokens]
) {
  constexpr int kGroups = K::kGroups;
  constexpr std::size_t kSubBytes = 16 * 32 * K::kBits / 8;
  constexpr std::size_t kInputBytes =
      Tokens * GroupDots<Tokens, K::kForm>::kCodeBytes;
  // Apart from y, so that the sums stay in registers.
  Rows::Float sums[Tokens];
  Rows::Table values = Rows::lookup_table(w.values);
  std::size_t scale_bytes = w.element_bytes;
  std::size_t subs = kGroups == 2 ? 1 : w.group / 32;
#pragma GCC unroll 8
  for (int t = 0; t < Tokens; ++t) {
    sums[t] = Rows::zero();
  }
  for (std::size_t c = 0; c < w.cols; c += w.block_inputs) {
    const std::byte* scales = block + row * scale_bytes;
    const std::byte* codes = block + w.header_bytes + row * 4;
    Rows::Float scale[kGroups];
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      scale[g] = load_scales(w.type, scales + g * 16 * scale_bytes);
    }
    for (std::size_t s = 0; s < subs; ++s) {
      fetch_ahead<K, Tokens>(codes);
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) {
        Rows::Int totals[Tokens];
        group_totals<K>(codes, values, x, g, totals);
#pragma GCC unroll 8
        for (int t = 0; t < Tokens; ++t) {
          if constexpr (!K::kBias) {
            totals[t] = Rows::minus(totals[t], in[t].correction);
          }
          Rows::Float sum = Rows::multiply(
              Rows::as_float(totals[t]), Rows::broadcast(in[t].scale)
          );
          sums[t] = Rows::multiply_add(scale[g], sum, sums[t]);
        }
        in += Tokens;
      }
      codes += kSubBytes;
      x += kInputBytes;
    }
    if constexpr (K::kBias) {
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) {
        Rows::Float bias =
            load_scales(w.type, scales + (kGroups + g) * 16 * scale_bytes);
#pragma GCC unroll 8
        for (int t = 0; t < Tokens; ++t) {
          Rows::Float sum = Rows::broadcast(in[(g - kGroups) * Tokens + t].sum);
          sums[t] = Rows::multiply_add(bias, sum, sums[t]);
        }
      }
    }
    block += w.block_bytes;
  }
#pragma GCC unroll 8
  for (int t = 0; t < Tokens; ++t) {
    y[t] = sums[t];
  }
}

template <class K, int Tokens>
inline void linear_block(
    const LinearInt& a, std::size_t block, std::size_t token
) {
  const PackedMatrix& w = *a.weight;
  std::size_t units = w.cols / 32;
  const std::int8_t* x = a.codes + token * units * code_bytes(a.form);
  const InputGroup* in = a.groups + token * units * w.block_groups;
  const std::byte* data = w.data + block * w.row_block_bytes;
  std::size_t first = block * 16;
  for (int row = 0; row < 16 && first + row < w.rows; row += Rows::kWidth) {
    Rows::Float y[Tokens];
    linear_tile<K>(w, data, row, x, in, y);
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

/// A tile of `size` tokens, a power of two up to Tokens.
template <class K, int Tokens = Rows::kTile>
inline void linear_size(
    const LinearInt& a, std::size_t block, std::size_t token, std::size_t size
) {
  if (size == Tokens) {
    linear_block<K, Tokens>(a, block, token);
  } else if constexpr (Tokens > 1) {
    linear_size<K, Tokens / 2>(a, block, token, size);
  }
}

template <class K>
inline void linear_blocks(const LinearInt& a) {
  for (std::size_t b = a.first_block; b < a.last_block; ++b) {
    for (std::size_t t = 0; t < a.tokens;) {
      std::size_t size = tile_size(a.tokens - t, Rows::kTile);
      linear_size<K>(a, b, t, size);
      t += size;
    }
  }
}

/// Compiled for the forms that code_form() can ask for.
template <int Bits, bool Values, int Groups, bool Bias>
inline void linear_kind(const LinearInt& a) {
  constexpr bool kLarge = Bits == 8 || Values;
  constexpr bool kApart = Rows::kNarrowSums && (kLarge || Groups == 2);
  switch (a.form) {
    case CodeForm::kBytes:
      linear_blocks<Kind<Bits, Values, Groups, Bias, CodeForm::kBytes>>(a);
      break;
    case CodeForm::kHighLow:
      if constexpr (!kApart) {
        linear_blocks<Kind<Bits, Values, Groups, Bias, CodeForm::kHighLow>>(a);
      }
      break;
    case CodeForm::kWords:
      if constexpr (kApart || (kLarge && Rows::kMostByteCode < 255)) {
        linear_blocks<Kind<Bits, Values, Groups, Bias, CodeForm::kWords>>(a);
      }
  }
}

template <int Bits, bool Values>
inline void linear_codes(const LinearInt& a) {
  bool bias = a.weight->has_bias;
  if (a.weight->block_groups == 1) {
    bias ? linear_kind<Bits, Values, 1, !Values>(a)
         : linear_kind<Bits, Values, 1, false>(a);
  } else {
    bias ? linear_kind<Bits, Values, 2, !Values>(a)
         : linear_kind<Bits, Values, 2, false>(a);
  }
}

inline void linear_int(const LinearInt& a) {
  if (a.weight->bits == 8) {
    linear_codes<8, false>(a);
  } else if (a.weight->has_values) {
    linear_codes<4, true>(a);
  } else {
    linear_codes<4, false>(a);
  }
}

}  // namespace afterglow::AFTERGLOW_TARGET
