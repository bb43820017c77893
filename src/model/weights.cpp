#include "model/weights.h"

#include <algorithm>

#include "model/mapped_file.h"

namespace afterglow {
Result<Weights> Weights::from_safetensors(
    std::vector<Safetensors> shards, const std::string& where
) {
  Weights weights;
  weights.where_ = where;
  for (Safetensors& shard : shards) {
    for (RawTensor& tensor : shard.tensors) {
      const std::string name = tensor.name;
      Entry entry{std::move(tensor), {}};
      // Old converters stored what rope is computed from anyway.
      entry.used = name.ends_with("rotary_emb.inv_freq");
      if (!weights.entries_.emplace(name, std::move(entry)).second) {
        return Error{
            Code::kCorrupt,
            where + ": tensor '" + name + "' is in two of the files"};
      }
    }
  }
  return weights;
}

Weights::Entry* Weights::use(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    return nullptr;
  }
  found->second.used = true;
  return &found->second;
}

Result<Weights::Decoded> Weights::decode(
    const std::string& name, std::size_t cols
) {
  const Entry* weight = use(name + ".weight");
  if (weight == nullptr) {
    return Error{
        Code::kCorrupt, where_ + ": tensor '" + name + ".weight' is missing"};
  }
  const Entry* scales = use(name + ".scales");
  const Entry* biases = use(name + ".biases");
  if (scales == nullptr) {
    if (Status status = check_rule(name, {}); !status) {
      return status.error();
    }
    auto source = single_tensor_matrix(weight->tensor, weight->order, where_);
    if (!source) {
      return source.error();
    }
    return Decoded{std::move(*source), weight->tensor.dtype};
  }
  const MlxTensors tensors{
      weight->tensor,
      scales->tensor,
      biases == nullptr ? nullptr : &biases->tensor};
  const auto found = mlx_quantization(tensors, cols, where_);
  if (!found) {
    return found.error();
  }
  if (Status status = check_rule(name, *found); !status) {
    return status.error();
  }
  return Decoded{mlx_matrix(tensors, *found, cols), found->describe()};
}

Result<MatrixSource> Weights::matrix(
    const std::string& name, std::size_t rows, std::size_t cols
) {
  auto decoded = decode(name, cols);
  if (!decoded) {
    return decoded.error();
  }
  const MatrixSource& source = decoded->source;
  if (source.rows != rows || source.cols != cols) {
    return Error{
        Code::kCorrupt,
        where_ + ": tensor '" + name + ".weight' is [" +
            std::to_string(source.rows) + ", " + std::to_string(source.cols) +
            "], the config wants [" + std::to_string(rows) + ", " +
            std::to_string(cols) + "]"};
  }
  values_by_type_[decoded->type] += rows * cols;
  parameters_ += rows * cols;
  return std::move(decoded->source);
}

Status Weights::check_rule(
    const std::string& name, const MlxQuantization& found
) const {
  const auto rule = rules_.find(name);
  if (rule == rules_.end() || rule->second == found) {
    return {};
  }
  return Error{
      Code::kCorrupt,
      where_ + ": layer '" + name +
          "' is not quantized as the config's quantization says: it is " +
          found.describe() + ", not " + rule->second.describe()};
}

Result<std::vector<float>> Weights::vector(
    const std::string& name, std::size_t size
) {
  const Entry* entry = use(name);
  if (entry == nullptr) {
    return Error{Code::kCorrupt, where_ + ": tensor '" + name + "' is missing"};
  }
  auto values = read_vector(entry->tensor, entry->order, where_);
  if (values && values->size() != size) {
    return Error{
        Code::kCorrupt,
        where_ + ": tensor '" + entry->tensor.name + "' is [" +
            std::to_string(values->size()) + "], the config wants [" +
            std::to_string(size) + "]"};
  }
  parameters_ += size;
  return values;
}

void Weights::release_used() {
  for (auto& [name, entry] : entries_) {
    if (entry.used && !entry.released) {
      drop_mapped_pages(entry.tensor.bytes);
      entry.released = true;
    }
  }
}

Status Weights::check_all_used() const {
  for (const auto& [name, entry] : entries_) {
    if (!entry.used) {
      return Error{
          Code::kUnsupported,
          where_ + ": tensor '" + entry.tensor.name +
              "' has no place in this architecture; results without it would "
              "be wrong"};
    }
  }
  return {};
}

std::string Weights::quantization() const {
  const auto most = std::max_element(
      values_by_type_.begin(),
      values_by_type_.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; }
  );
  return most == values_by_type_.end() ? "" : most->first;
}

std::vector<RawTensor> Weights::tensors() const {
  std::vector<RawTensor> result;
  for (const auto& [name, entry] : entries_) {
    result.push_back(entry.tensor);
  }
  std::sort(
      result.begin(),
      result.end(),
      [](const RawTensor& a, const RawTensor& b) { return a.name < b.name; }
  );
  return result;
}

}  // namespace afterglow
