// Inputs: finds the bucket that --input and --batch ask for, and makes its input tensors.
#pragma once

#include "tools/cgc/specs.h"
#include "tools/cgc/tensors.h"

#include <optional>

namespace cgc::tool {

/// A bucket of an entry and a tensor for each of its inputs, in order.
struct BoundInputs {
  size_t bucket = 0;
  std::vector<HostTensor> tensors;
};

/// Reads the .npy files among `sources`, takes the first bucket that has their shapes (and `batch`
/// as dimension 0 of every input, if it is given), and fills the other inputs with random values.
/// bf16 inputs are read from float32. Usage, with what the plan takes, if names, types, shapes or
/// values do not fit; InvalidFile for a bad file.
Result<BoundInputs> bindInputs(const Entry &entry, const std::vector<InputSource> &sources,
                               std::optional<int64_t> batch);

/// The only entry if `name` is empty. Usage with the plan's entries otherwise.
Result<const Entry *> chooseEntry(const PlanData &plan, const std::string &name);

} // namespace cgc::tool
