// Inputs: finds the bucket that --input and --batch ask for, and makes its input tensors.
#pragma once

#include "tools/cgc/cli/specs.h"
#include "tools/cgc/io/tensors.h"

#include <optional>

namespace CLI {
class App;
}

namespace cgc::tool {

/// A bucket of an entry and a tensor for each of its inputs, in order.
struct BoundInputs {
  size_t bucket = 0;
  std::vector<HostTensor> tensors;
};

/// Reads the .npy files among `sources`, takes the first bucket that has their shapes (and `batch`
/// as dimension 0 of every input, if it is given), and fills the other inputs with random values.
/// f16 and bf16 inputs are also read from float32 and rounded. Usage, with what the plan takes, if
/// names, types, shapes or values do not fit; InvalidFile for a bad file.
Result<BoundInputs> bindInputs(const Entry &entry, const std::vector<InputSource> &sources,
                               std::optional<int64_t> batch);

/// One bucket of a plan.
struct PlanBucket {
  const Entry *entry;
  size_t index;
  const Bucket &bucket() const { return entry->buckets[index]; }
};

/// What --entry and --batch ask for, of verbs that go through buckets.
struct BucketChoice {
  std::vector<std::string> entries; ///< Empty: all.
  std::vector<int64_t> batches;     ///< Empty: all.
};
/// Adds both options; `does` is what the verb does to a bucket: "Measure". `choice` must outlive
/// `command`.
void addBucketOptions(CLI::App &command, BucketChoice &choice, std::string_view does);

/// The buckets of the entries whose inputs all have one of the batches as dimension 0. Usage if an
/// entry is missing or has no bucket for a batch.
Result<std::vector<PlanBucket>> planBuckets(const PlanData &plan, const BucketChoice &choice);

/// The only entry if `name` is empty. Usage with the plan's entries otherwise.
Result<const Entry *> chooseEntry(const PlanData &plan, const std::string &name);

} // namespace cgc::tool
