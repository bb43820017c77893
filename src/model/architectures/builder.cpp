#include "model/architectures/builder.h"

namespace afterglow {

void Builder::fail(const Error& error) {
  if (status_.ok()) {
    status_ = error;
  }
}

LinearId Builder::linear(
    const std::vector<Part>& parts, std::size_t cols, bool bias
) {
  std::vector<MatrixSource> sources;
  std::vector<float> biases;
  for (const Part& part : parts) {
    if (!status_) {
      return {};
    }
    auto source = weights_.matrix(part.name, part.rows, cols);
    if (!source) {
      fail(source.error());
      return {};
    }
    sources.push_back(std::move(*source));
    if (bias) {
      const auto values = weights_.vector(part.name + ".bias", part.rows);
      if (!values) {
        fail(values.error());
        return {};
      }
      biases.insert(biases.end(), values->begin(), values->end());
    }
  }
  const auto id = ops_.add_linear(sources, biases);
  // The backend has its own copy by now.
  weights_.release_used();
  if (!id) {
    fail(
        {id.error().code,
         "[model.load] layer '" + parts[0].name + "': " + id.error().message}
    );
    return {};
  }
  return *id;
}

VectorId Builder::vector(const std::string& name, std::size_t size) {
  if (!status_) {
    return {};
  }
  const auto values = weights_.vector(name, size);
  if (!values) {
    fail(values.error());
    return {};
  }
  return ops_.add_vector(*values);
}

}  // namespace afterglow
