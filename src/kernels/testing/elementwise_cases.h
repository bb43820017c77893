#pragma once

#include "kernels/testing/kernel_case.h"

namespace afterglow::test {

template <auto Kernel>
struct MapCase {  // y = f(x)
  static void run(
      const Kernels& k, std::size_t n, Random& random, Output& out
  ) {
    Guarded<float> x(any_floats(n, random));
    Guarded<float> y(n);
    (k.*Kernel)(x.data(), n, y.data());
    out.put(y);
    (k.*Kernel)(x.data(), n, x.data());
    out.put(x);
  }
};
template <>
struct KernelCase<&Kernels::exp> : MapCase<&Kernels::exp> {};
template <>
struct KernelCase<&Kernels::tanh> : MapCase<&Kernels::tanh> {};

template <>
struct KernelCase<&Kernels::add> {
  static void run(
      const Kernels& k, std::size_t n, Random& random, Output& out
  ) {
    Guarded<float> x(any_floats(n, random));
    Guarded<float> y(any_floats(n, random));
    k.add(x.data(), y.data(), n);
    out.put(x);
  }
};

template <>
struct KernelCase<&Kernels::softcap> {
  static void run(
      const Kernels& k, std::size_t n, Random& random, Output& out
  ) {
    for (float cap : {30.0f, 0.7f}) {
      Guarded<float> x(any_floats(n, random));
      k.softcap(x.data(), n, cap);
      out.put(x);
    }
  }
};

template <auto Kernel>
struct GateCase {
  static void run(
      const Kernels& k, std::size_t n, Random& random, Output& out
  ) {
    Guarded<float> gate(any_floats(n, random));
    Guarded<float> up(any_floats(n, random));
    Guarded<float> y(n);
    (k.*Kernel)(gate.data(), up.data(), n, y.data());
    out.put(y);
    Guarded<float> in_place(gate.copy());
    (k.*Kernel)(in_place.data(), up.data(), n, in_place.data());
    out.put(in_place);
    (k.*Kernel)(gate.data(), up.data(), n, up.data());
    out.put(up);
  }
};
template <>
struct KernelCase<&Kernels::gate_silu> : GateCase<&Kernels::gate_silu> {};
template <>
struct KernelCase<&Kernels::gate_gelu> : GateCase<&Kernels::gate_gelu> {};

template <>
struct KernelCase<&Kernels::to_half> {
  static void run(
      const Kernels& k, std::size_t n, Random& random, Output& out
  ) {
    Guarded<float> x(any_floats(n, random));
    Guarded<std::uint16_t> y(n);
    k.to_half(x.data(), n, y.data());
    for (std::size_t i = 0; i < n; ++i) {
      // Which NaN it becomes is open.
      out.put((y[i] & 0x7fff) > 0x7c00 ? std::uint16_t{0x7e00} : y[i]);
    }
  }
};

template <>
struct KernelCase<&Kernels::rms_norm> {
  static void run(
      const Kernels& k, std::size_t n, Random& random, Output& out
  ) {
    // Once of what rows hold, once with what they should not.
    for (auto floats : {wide_floats, any_floats}) {
      Guarded<float> x(floats(n, random));
      Guarded<float> weight(floats(n, random));
      Guarded<float> y(n);
      k.rms_norm(x.data(), weight.data(), 1e-5f, n, y.data());
      out.put(y);
      k.rms_norm(x.data(), weight.data(), 1e-5f, n, x.data());
      out.put(x);
    }
  }
};

template <>
struct KernelCase<&Kernels::rope> {
  static void run(
      const Kernels& k, std::size_t n, Random& random, Output& out
  ) {
    for (bool interleaved : {false, true}) {
      Guarded<float> x(any_floats(2 * n, random));
      Guarded<float> cosine(random.floats(n));
      Guarded<float> sine(random.floats(n));
      k.rope(x.data(), cosine.data(), sine.data(), n, interleaved);
      out.put(x);
    }
  }
};

template <>
struct KernelCase<&Kernels::argmax> {
  static void run(
      const Kernels& k, std::size_t n, Random& random, Output& out
  ) {
    for (std::size_t size : {n, 3 * n}) {
      Guarded<float> any(any_floats(size, random));
      out.put(k.argmax(any.data(), size));
    }
    Guarded<float> ties(n);
    for (std::size_t i = 0; i < n; ++i) {
      ties[i] = static_cast<float>(random.below(3));
    }
    out.put(k.argmax(ties.data(), n));
  }
};

template <>
struct KernelCase<&Kernels::exp_sum> {
  static void run(
      const Kernels& k, std::size_t n, Random& random, Output& out
  ) {
    Guarded<float> x(wide_floats(n, random));
    out.put(k.exp_sum(x.data(), n, 2.5f));
    Guarded<float> any(any_floats(n, random));
    out.put(k.exp_sum(any.data(), n, 2.5f));
  }
};

}  // namespace afterglow::test
