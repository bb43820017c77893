// Included once per target, behind its lanes.
namespace afterglow::AFTERGLOW_TARGET {

/// q = round(x levels / max |x|). The largest magnitude is taken from the bit
/// patterns as integers, in which NaN exceeds infinity: a group with either
/// gets a scale that makes every output NaN or infinite, so it shows. A group
/// whose largest magnitude is below 2^-100 counts as zero.
inline void quantize_row(const QuantizeRow& row) {
  constexpr std::int32_t kTiny = 27 << 23;  // the bits of 2^-100
  const I no_sign = set_int(INT32_MAX);
  auto levels = static_cast<float>(row.levels);
  std::int8_t* codes = row.codes;
  InputGroup* group = row.groups;
  float sum = 0;
  auto put_group = [&](std::int32_t q_sum, float scale, bool is_first) {
    auto value = static_cast<float>(q_sum);
    sum = is_first ? scale * value : __builtin_fmaf(scale, value, sum);
    *group = {scale, sum, row.weight_offset * q_sum, 0};
    group += row.group_step;
  };
  for (std::size_t c = 0; c < row.cols; c += 32) {
    F a = load(row.x + c);
    F b = load(row.x + c + 16);
    std::int32_t most =
        reduce_max(max(bit_and(bits(a), no_sign), bit_and(bits(b), no_sign)));
    float scale = 0;
    float inverse = 0;
    if (most >= kTiny) {
      float magnitude;
      __builtin_memcpy(&magnitude, &most, sizeof magnitude);
      scale = magnitude / levels;
      inverse = levels / magnitude;
    }
    I qa = to_int(mul(a, set(inverse)));
    I qb = to_int(mul(b, set(inverse)));
    switch (row.form) {
      case CodeForm::kBytes:
        store_bytes(codes, qa);
        store_bytes(codes + 16, qb);
        break;
      case CodeForm::kHighLow:
        // The low byte of q, read as signed, is q - 256 high.
        store_bytes(codes, shift_right_signed<8>(add(qa, set_int(128))));
        store_bytes(codes + 16, shift_right_signed<8>(add(qb, set_int(128))));
        store_bytes(codes + 32, qa);
        store_bytes(codes + 48, qb);
        break;
      case CodeForm::kWords:
        auto* words = reinterpret_cast<std::int16_t*>(codes);
        store_words_0213(words, qa);
        store_words_0213(words + 16, qb);
    }
    if (row.weight_group < 32) {
      put_group(reduce_add(qa), scale, true);
      put_group(reduce_add(qb), scale, true);
    } else {
      bool is_first = c % row.weight_group == 0;
      put_group(reduce_add(add(qa, qb)), scale, is_first);
    }
    codes += row.code_step;
  }
}

}  // namespace afterglow::AFTERGLOW_TARGET
