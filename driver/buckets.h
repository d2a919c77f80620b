// Buckets: which methods of the model are compiled, and for which input shapes.
#pragma once

#include "ir/module.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cgc::driver {

/// The type of an input.
struct InputSpec {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
};

/// One method with concrete inputs, in the method's order. What is missing stays at its default.
struct BucketSpec {
  std::string entry;
  std::vector<InputSpec> inputs;
};

/// Every chosen entry at every batch size, entries in the model's order. Without `entries`, all
/// methods of the root that have an input and all that have no default. A batch size, each of which
/// is there once, replaces dimension 0 of every input; without any, the shapes are taken as they
/// are. Usage, with what the model offers, if something does not fit.
Result<std::vector<BucketSpec>> chooseBuckets(const ir::Module &root,
                                              const std::vector<InputSpec> &inputs,
                                              const std::vector<int64_t> &batches,
                                              const std::vector<std::string> &entries);

/// What Pipeline::specialize takes for `bucket`, a bucket of `method`.
std::vector<ir::Type> typesOf(const ir::Graph &method, const BucketSpec &bucket);

/// "forward(image, text), encode_image(image)"
std::string describeMethods(const ir::Module &root);
/// "forward(image, text)"
std::string describeMethod(const ir::Graph &method);

} // namespace cgc::driver
