#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "afterglow/types.h"

namespace afterglow::python {

using Floats = std::shared_ptr<std::vector<float>>;
using FloatArray =
    nanobind::ndarray<nanobind::numpy, float, nanobind::shape<-1>>;
using TokenArray =
    nanobind::ndarray<nanobind::numpy, Token, nanobind::shape<-1>>;
/// What Python lends for one call, to be read and written in place.
using LentFloats = nanobind::ndarray<
    float,
    nanobind::shape<-1>,
    nanobind::c_contig,
    nanobind::device::cpu>;

/// An array over the same memory, which it keeps. Requires: the GIL.
template <class Array, class T>
Array share(std::shared_ptr<std::vector<T>> values) {
  using Kept = std::shared_ptr<std::vector<T>>;
  T* data = values->data();
  const std::size_t size = values->size();
  nanobind::capsule owner(new Kept(std::move(values)), [](void* kept) noexcept {
    delete static_cast<Kept*>(kept);
  });
  return Array(data, {size}, owner);
}

}  // namespace afterglow::python
