// Inputs: chooses the bucket that --input and --batch ask for, and makes its input tensors.
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
  /// The batch of the tensors where the plan has no bucket with it. `bucket` is then the smallest
  /// with more rows, or the largest.
  std::optional<int64_t> rows = {};
};

/// Reads the .npy files among `sources`, chooses the first bucket that has their shapes (and
/// `batch`, if given, as dimension 0 of every input), and fills the other inputs with random
/// values. If no bucket has the shapes and the entry's rows are independent, the files may have
/// another batch. An f16 or bf16 input may be read from float32, which is rounded. Usage, listing
/// what the plan takes, if names, types, shapes or values do not fit. InvalidFile for a bad file.
Result<BoundInputs> bindInputs(const Entry &entry, const std::vector<InputSource> &sources,
                               std::optional<int64_t> batch);

/// One bucket of a plan. Borrows from the plan.
struct PlanBucket {
  const Entry *entry;
  size_t index;
  const Bucket &bucket() const { return entry->buckets[index]; }
};

/// The values of --entry and --batch, for verbs that process several buckets.
struct BucketChoice {
  std::vector<std::string> entries; ///< Empty: all.
  std::vector<int64_t> batches;     ///< Empty: all.
};
/// Adds --entry and --batch. `does` is the verb's action, for the help text: "Measure". `choice`
/// must outlive `command`.
void addBucketOptions(CLI::App &command, BucketChoice &choice, std::string_view does);

/// The buckets of the chosen entries whose inputs all have one of the chosen batches as dimension
/// 0. Usage if an entry is missing or has no bucket for a batch.
Result<std::vector<PlanBucket>> planBuckets(const PlanData &plan, const BucketChoice &choice);

/// The entry `name`, or the plan's only entry if `name` is empty. Usage, listing the plan's
/// entries, if there is no such entry.
Result<const Entry *> chooseEntry(const PlanData &plan, const std::string &name);

} // namespace cgc::tool
