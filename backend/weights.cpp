// WeightTable: finds equal weights by hash and confirms equality by comparing bytes.
#include "backend/weights.h"

#include "runtime/base/file.h"

namespace cgc::backend {

uint32_t WeightTable::add(const std::string &name,
                          const std::shared_ptr<const ir::TensorData> &data, bool isComputed) {
  if (auto known = known_.find(data); known != known_.end())
    return known->second;
  llvm::ArrayRef<std::byte> bytes = data->bytes();
  uint64_t hash = hash64({bytes.data(), bytes.size()});
  auto [begin, end] = byHash_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (weights_[it->second].dtype == data->type().dtype && data_[it->second]->bytes() == bytes)
      return known_[data] = it->second;

  auto index = static_cast<uint32_t>(weights_.size());
  const ir::TensorType &type = data->type();
  Weight weight;
  weight.name = name;
  for (unsigned suffix = 1; !names_.insert(weight.name).second; ++suffix)
    weight.name = name + "." + std::to_string(suffix);
  weight.dtype = type.dtype;
  weight.sizes.assign(type.sizes.begin(), type.sizes.end());
  weight.isComputed = isComputed;
  weights_.push_back(std::move(weight));
  data_.push_back(data);
  byHash_.emplace(hash, index);
  return known_[data] = index;
}

uint32_t StateTable::add(const std::string &name, const ir::Parameter &state,
                         WeightTable &weights) {
  const auto [it, isNew] = index_.try_emplace(name, static_cast<uint32_t>(states_.size()));
  if (!isNew)
    return it->second;
  const ir::TensorType &type = state.type;
  states_.push_back({.name = name,
                     .role = state.role,
                     .dtype = type.dtype,
                     .sizes = {type.sizes.begin(), type.sizes.end()},
                     .initial = state.data ? weights.add(name, state.data, false) : kBeginsAsZeros,
                     .shard = state.shard});
  return it->second;
}

} // namespace cgc::backend
