// checkBatch: batch dimensions, the proof of independent rows, expected times.
#include "runtime/plan/validate_batch.h"

#include "runtime/base/printable.h"
#include "runtime/plan/invalid.h"
#include "runtime/plan/names.h"

#include <cmath>
#include <map>

namespace cgc {
namespace {

using Shapes = std::vector<std::vector<int64_t>>;

bool isText(const std::string &s) {
  return isPrintableUtf8(s) && s.size() <= kMaxNameBytes;
}

/// The sizes of each tensor, with 0 in place of the batch.
Shapes shapesWithoutBatch(const std::vector<IoTensor> &tensors) {
  Shapes shapes;
  for (const IoTensor &tensor : tensors) {
    shapes.push_back(tensor.sizes);
    if (tensor.batchDim != kNoBatchDim)
      shapes.back()[tensor.batchDim] = 0;
  }
  return shapes;
}

Status checkDims(const Bucket &bucket, const Bucket &first) {
  const IoTensor *batched = nullptr;
  const auto check = [&](const IoTensor &tensor, const IoTensor &other) -> Status {
    if (tensor.batchDim != other.batchDim)
      return invalidFile("its buckets differ in the batch dimension of '" + tensor.name + "'");
    if (tensor.batchDim == kNoBatchDim)
      return Status::ok();
    if (tensor.batchDim < 0 || size_t(tensor.batchDim) >= tensor.sizes.size())
      return invalidFile("'" + tensor.name + "' has no dimension " +
                         std::to_string(tensor.batchDim) + ", which is to be its batch dimension");
    if (batched && batched->sizes[batched->batchDim] != tensor.sizes[tensor.batchDim])
      return invalidFile("'" + batched->name + "' and '" + tensor.name +
                         "' have batch dimensions of different sizes");
    batched = &tensor;
    return Status::ok();
  };
  for (size_t i = 0; i < bucket.inputs.size(); ++i)
    CGC_TRY(check(bucket.inputs[i], first.inputs[i]));
  for (size_t i = 0; i < bucket.outputs.size(); ++i)
    CGC_TRY(check(bucket.outputs[i], first.outputs[i]));
  return Status::ok();
}

Status checkRows(const PlanData &plan, const Entry &entry) {
  const BatchRows &rows = entry.rows;
  if (!isText(rows.op) || !isText(rows.reason))
    return invalidFile(
        "the reason why its rows depend on each other is not printable text, or too long");
  if (rows.location != kNoLocation && uint32_t(rows.location) >= plan.locations.size())
    return invalidFile(
        "the source location of the op that makes its rows depend on each other does not "
        "exist");
  if (!rows.independent)
    return Status::ok();
  if (!rows.op.empty() || !rows.reason.empty() || rows.location != kNoLocation)
    return invalidFile("its rows are independent, and there is a reason why they are not");
  // Inputs that differ in the batch alone give outputs that differ in the batch alone.
  std::map<Shapes, Shapes> outputs;
  for (const Bucket &bucket : entry.buckets) {
    bool batched = false;
    for (const IoTensor &input : bucket.inputs)
      batched |= input.batchDim != kNoBatchDim;
    if (!batched)
      return invalidFile("its rows are independent, and no input has a batch dimension");
    Shapes made = shapesWithoutBatch(bucket.outputs);
    if (outputs.emplace(shapesWithoutBatch(bucket.inputs), made).first->second != made)
      return invalidFile(
          "its rows are independent, and the batch changes another dimension of an output");
  }
  return Status::ok();
}

} // namespace

Status checkBatch(const PlanData &plan, const Entry &entry) {
  for (const Bucket &bucket : entry.buckets) {
    CGC_TRY(checkDims(bucket, entry.buckets[0]));
    if (!std::isfinite(bucket.expectedMicros) || bucket.expectedMicros < 0)
      return invalidFile("the expected time of a bucket is negative or not finite");
    if (bucket.isMeasured && bucket.expectedMicros == 0)
      return invalidFile("the measured time of a bucket is 0");
  }
  return checkRows(plan, entry);
}

} // namespace cgc
