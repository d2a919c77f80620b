// WeightTable: the weights of a plan, deduplicated by content.
#pragma once

#include "ir/module.h"
#include "runtime/plan/plan.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace cgc::backend {

class WeightTable {
public:
  /// The index of the weight with the dtype and bytes of `data`. Adds the weight if there is none
  /// yet, under `name` or, if that is taken, `name` with a number. `isComputed`: as in Weight.
  uint32_t add(const std::string &name, const std::shared_ptr<const ir::TensorData> &data,
               bool isComputed);

  std::vector<Weight> takeWeights() { return std::move(weights_); }
  std::vector<std::shared_ptr<const ir::TensorData>> takeData() { return std::move(data_); }

private:
  std::vector<Weight> weights_;
  std::vector<std::shared_ptr<const ir::TensorData>> data_;
  std::set<std::string> names_;
  std::multimap<uint64_t, uint32_t> byHash_;
  /// The index of each tensor that was added, to hash it once. Keeps duplicates alive, so that no
  /// later tensor has the address of one of them. Never iterated.
  std::map<std::shared_ptr<const ir::TensorData>, uint32_t> known_;
};

/// The states of a plan. A state is its path: two states are never merged.
class StateTable {
public:
  /// The index of the state `name`. Adds it, with its first value to `weights`, if it is not there.
  uint32_t add(const std::string &name, const ir::Parameter &state, WeightTable &weights);

  std::vector<State> take() { return std::move(states_); }

private:
  std::vector<State> states_;
  std::map<std::string, uint32_t> index_;
};

} // namespace cgc::backend
