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

/// One bucket of a plan.
struct PlanBucket {
  const Entry *entry;
  size_t index;
  const Bucket &bucket() const { return entry->buckets[index]; }
};

/// The buckets of `entry`, or of all entries if it is empty, whose inputs all have one of `batches`
/// as dimension 0; without any, all. Usage if there is no such entry or no bucket for a batch.
Result<std::vector<PlanBucket>> planBuckets(const PlanData &plan, const std::string &entry,
                                            const std::vector<int64_t> &batches);

/// The only entry if `name` is empty. Usage with the plan's entries otherwise.
Result<const Entry *> chooseEntry(const PlanData &plan, const std::string &name);

} // namespace cgc::tool
