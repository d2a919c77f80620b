// An entry of a plan, as a model of Triton.
#pragma once

#include "runtime/cgc.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cgc_triton {

using Sizes = std::vector<int64_t>;

/// An input or output of an entry.
struct Tensor final {
  std::string name;
  cgc_dtype dtype;
  int32_t batchDim;            ///< The dimension of the batch; -1 if there is none.
  std::vector<Sizes> ofBucket; ///< The sizes in each bucket.
};

/// An entry and its buckets.
struct Entry final {
  std::string name;
  bool takesAnyBatch;
  std::vector<Tensor> inputs, outputs;

  /// Whether Triton may batch requests: any batch will do, and each tensor has it in dimension 0.
  bool canBatch() const;
  /// The batches of the buckets in ascending order. Of an entry that can batch.
  std::vector<int64_t> batches() const;
  /// The sizes that a request may have, -1 where several are possible. Without the batch if
  /// `batched`. Triton has no empty dims: those of a number are [1].
  Sizes dims(const Tensor &tensor, bool batched) const;
  /// The first bucket whose inputs have these sizes, or have them but for the batch if any batch
  /// will do. Throws an error that names the input, its shape and those that the plan takes.
  size_t bucketFor(const std::vector<Sizes> &inputs) const;
  /// The batch of inputs of these sizes; 1 if they have none.
  int64_t rowsOf(const std::vector<Sizes> &inputs) const;
  /// The sizes of an output, as the plan has them, in a run of `rows` rows on the bucket.
  Sizes sizesOf(const Tensor &output, size_t bucket, int64_t rows) const;
};

/// The shape of a tensor in Triton, which has no empty dims, and back.
Sizes toTriton(Sizes sizes, bool batched);
Sizes fromTriton(Sizes sizes, const Tensor &tensor, bool batched);

/// The entry of this name. Without a name, the only one; otherwise the error lists all.
Entry findEntry(const cgc_plan *plan, const std::string &name);

/// "[2, 16]".
std::string textOf(const Sizes &sizes);
/// The number of bytes of a tensor.
uint64_t bytesOf(const Sizes &sizes, cgc_dtype dtype);

} // namespace cgc_triton
