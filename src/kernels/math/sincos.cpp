#include "kernels/math/sincos.h"

#include <cmath>
#include <cstdint>

namespace afterglow {
namespace {

// Pi / 2 in three parts: the first two have 25 and 21 bits, so that their
// products with a count of quadrants below 2^28 are exact.
constexpr double kHalfPi1 = 0x1.921fb4p+0;
constexpr double kHalfPi2 = 0x1.4442dp-24;
constexpr double kHalfPi3 = 0x1.8469898cc5170p-48;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;

// The series of sin r and cos r for |r| <= pi / 4; the first term left out is
// below 2^-57 of the result.
double sine_near_zero(double r) {
  double z = r * r;
  double p = 1.0 / 355687428096000.0;
  p = p * z - 1.0 / 1307674368000.0;
  p = p * z + 1.0 / 6227020800.0;
  p = p * z - 1.0 / 39916800.0;
  p = p * z + 1.0 / 362880.0;
  p = p * z - 1.0 / 5040.0;
  p = p * z + 1.0 / 120.0;
  p = p * z - 1.0 / 6.0;
  return r + r * (z * p);
}

double cosine_near_zero(double r) {
  double z = r * r;
  double p = 1.0 / 20922789888000.0;
  p = p * z - 1.0 / 87178291200.0;
  p = p * z + 1.0 / 479001600.0;
  p = p * z - 1.0 / 3628800.0;
  p = p * z + 1.0 / 40320.0;
  p = p * z - 1.0 / 720.0;
  p = p * z + 1.0 / 24.0;
  return 1.0 - (0.5 * z - (z * z) * p);
}

}  // namespace

void sincos(double angle, double* sine, double* cosine) {
  double n = std::nearbyint(angle * kTwoOverPi);
  double r = angle - n * kHalfPi1;
  r = r - n * kHalfPi2;
  r = r - n * kHalfPi3;
  double s = sine_near_zero(r);
  double c = cosine_near_zero(r);
  switch (static_cast<std::int64_t>(n) & 3) {
    case 0:
      *sine = s;
      *cosine = c;
      break;
    case 1:
      *sine = c;
      *cosine = -s;
      break;
    case 2:
      *sine = -s;
      *cosine = -c;
      break;
    default:
      *sine = -c;
      *cosine = s;
  }
}

}  // namespace afterglow
