// Buckets: the choice of the model's methods to compile, and of the input shapes to compile them
// for.
#pragma once

#include "ir/input_shapes.h"
#include "ir/module.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cgc::driver {

/// The name and type of an input.
struct InputSpec {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
};

/// One method with concrete input types, in the method's order. Inputs that are absent keep their
/// defaults.
struct BucketSpec {
  std::string entry;
  std::vector<InputSpec> inputs;
};

/// One bucket for each chosen entry at each batch size, entries in the model's order. Without
/// `entries`, chooses every method of the root with at least one input in `inputs` and none missing
/// (an input with a default may be absent). A batch size replaces dimension 0 of every input;
/// `batches` has no duplicates. Without batches, the shapes are used as given. Usage, listing what
/// the model offers, if something does not fit.
Result<std::vector<BucketSpec>> chooseBuckets(const ir::Module &root,
                                              const std::vector<InputSpec> &inputs,
                                              const std::vector<int64_t> &batches,
                                              const std::vector<std::string> &entries);

/// Usage, naming the input, if a bucket has inputs that the shapes of its method do not allow.
Status checkShapes(const std::vector<BucketSpec> &buckets, const ir::ShapesOfMethods &shapes);

/// The input types of `bucket`, a bucket of `method`, in the form that Pipeline::specialize takes.
std::vector<ir::Type> typesOf(const ir::Graph &method, const BucketSpec &bucket);

/// For example "forward(image, text), encode_image(image)".
std::string describeMethods(const ir::Module &root);
/// For example "forward(image, text)".
std::string describeMethod(const ir::Graph &method);

} // namespace cgc::driver
