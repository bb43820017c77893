#pragma once

namespace afterglow {

/// Sine and cosine of an angle in radians, |angle| < 2^28, to within 1e-15;
/// the same bits on every machine (no libm, no fma).
void sincos(double angle, double* sine, double* cosine);

}  // namespace afterglow
