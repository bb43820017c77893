// Included once per target, behind its lanes. No include guard on purpose:
// AFTERGLOW_TARGET names the namespace.
namespace afterglow::AFTERGLOW_TARGET {

/// e^x = 2^n e^r with n = round(x / ln 2), so |r| <= ln(2) / 2, and
/// e^r - 1 = r + r^2 (1/2 + r/6 + ... + r^5/5040): the first term left out,
/// r^8/40320, is below 2^-27. ln 2 is subtracted in two parts, the first
/// short enough for n times it to be exact.
struct ExpParts {
  F power;     // 2^n
  F fraction;  // e^r - 1
};

inline ExpParts exp_parts(F x) {
  I count = to_int(mul(x, set(0x1.715476p+0f)));
  F n = to_float(count);
  F r = fma(n, set(-0.693359375f), x);
  r = fma(n, set(2.12194440e-4f), r);
  F p = set(1.0f / 5040);
  p = fma(p, r, set(1.0f / 720));
  p = fma(p, r, set(1.0f / 120));
  p = fma(p, r, set(1.0f / 24));
  p = fma(p, r, set(1.0f / 6));
  p = fma(p, r, set(0.5f));
  F fraction = fma(mul(r, r), p, r);
  I power = shift_left<23>(add(count, set_int(127)));
  return {from_bits(power), fraction};
}

/// e^x. Below -69 it is exactly 0, so that a weight of attention is either 0
/// or so large (2^-100) that its product with a 16-bit value cannot
/// underflow; above 88 it stays e^88. NaN gives NaN.
inline F exp(F x) {
  ExpParts parts = exp_parts(min(set(88.0f), x));
  F y = fma(parts.power, parts.fraction, parts.power);
  return select(less(x, set(-69.0f)), set(0.0f), y);
}

/// tanh |x| = e / (e + 2) with e = exp(2 |x|) - 1, which keeps its relative
/// precision near 0. From |x| = 10 on the result rounds to 1.
inline F tanh(F x) {
  I sign = bit_and(bits(x), set_int(INT32_MIN));
  F magnitude = from_bits(bit_and(bits(x), set_int(INT32_MAX)));
  ExpParts parts = exp_parts(min(set(20.0f), add(magnitude, magnitude)));
  F e = fma(parts.power, parts.fraction, sub(parts.power, set(1.0f)));
  F y = div(e, add(e, set(2.0f)));
  return from_bits(bit_or(bits(y), sign));
}

}  // namespace afterglow::AFTERGLOW_TARGET
