// Bucket selection, and messages for calls that fit no bucket.
#include "runtime/exec/bucket_choice.h"

#include <algorithm>

namespace cgc {
namespace {

std::string names(const std::vector<IoTensor> &inputs) {
  std::string s;
  for (const IoTensor &input : inputs)
    s += (s.empty() ? "" : ", ") + input.name;
  return s;
}

} // namespace

Result<const Entry *> findEntry(const PlanData &plan, std::string_view name) {
  if (const Entry *entry = plan.findEntry(name))
    return entry;
  std::string offered;
  for (const Entry &entry : plan.entries)
    offered += (offered.empty() ? "" : ", ") + entry.name;
  return Status(Code::Usage,
                "the plan has no entry '" + std::string(name) + "'; it has " + offered);
}

Status checkInputTypes(const Entry &entry, std::span<const TensorView> inputs) {
  const std::vector<IoTensor> &expected = entry.buckets[0].inputs;
  const auto where = [&] { return "entry '" + entry.name + "'"; };
  if (inputs.size() != expected.size())
    return {Code::Usage, where() + " takes " + std::to_string(expected.size()) + " inputs (" +
                             names(expected) + "), and " + std::to_string(inputs.size()) +
                             " were given"};
  // validate() ensures that the buckets of an entry differ only in sizes.
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].dtype != expected[i].dtype)
      return {Code::Usage, "input '" + expected[i].name + "' of " + where() + " is " +
                               std::string(dtypeName(expected[i].dtype)) + ", and " +
                               std::string(dtypeName(inputs[i].dtype)) + " was given"};
  return Status::ok();
}

std::optional<size_t> findBucket(const Entry &entry, std::span<const TensorView> inputs) {
  for (size_t b = 0; b < entry.buckets.size(); ++b) {
    const std::vector<IoTensor> &wanted = entry.buckets[b].inputs;
    if (std::equal(wanted.begin(), wanted.end(), inputs.begin(), inputs.end(),
                   [](const IoTensor &io, const TensorView &view) {
                     return std::equal(io.sizes.begin(), io.sizes.end(), view.sizes.begin(),
                                       view.sizes.end());
                   }))
      return b;
  }
  return std::nullopt;
}

Status noBucket(const Entry &entry, std::span<const TensorView> inputs) {
  const std::vector<IoTensor> &expected = entry.buckets[0].inputs;
  std::string given, offered;
  for (size_t i = 0; i < inputs.size(); ++i)
    given += (i ? ", " : "") + expected[i].name + "=" + shapeText(inputs[i].dtype, inputs[i].sizes);
  for (const Bucket &bucket : entry.buckets)
    offered += "\n  " + shapesText(bucket.inputs);
  return {Code::Usage, "entry '" + entry.name + "' was not compiled for " + given +
                           "; compile again with these sizes, or give one of:" + offered};
}

Result<size_t> selectBucket(const Entry &entry, std::span<const TensorView> inputs) {
  CGC_TRY(checkInputTypes(entry, inputs));
  if (const std::optional<size_t> found = findBucket(entry, inputs))
    return *found;
  return noBucket(entry, inputs);
}

Status checkViews(std::span<const IoTensor> tensors, std::span<const TensorView> views,
                  DeviceKind target, std::string_view kind, std::optional<int64_t> rows) {
  if (tensors.size() != views.size())
    return {Code::Usage, "there are " + std::to_string(tensors.size()) + " " + std::string(kind) +
                             "s, and " + std::to_string(views.size()) + " were given"};
  for (size_t i = 0; i < tensors.size(); ++i) {
    const IoTensor &tensor = tensors[i];
    const TensorView &view = views[i];
    const auto where = [&] { return std::string(kind) + " '" + tensor.name + "'"; };
    const auto sizeOf = [&](size_t d) {
      return rows && int32_t(d) == tensor.batchDim ? *rows : tensor.sizes[d];
    };
    bool fits = view.dtype == tensor.dtype && view.sizes.size() == tensor.sizes.size(),
         empty = false;
    for (size_t d = 0; fits && d < view.sizes.size(); ++d) {
      fits = view.sizes[d] == sizeOf(d);
      empty |= view.sizes[d] == 0;
    }
    if (!fits) {
      std::vector<int64_t> sizes;
      for (size_t d = 0; d < tensor.sizes.size(); ++d)
        sizes.push_back(sizeOf(d));
      return {Code::Usage, where() + " is " + shapeText(tensor.dtype, sizes) + ", and " +
                               shapeText(view.dtype, view.sizes) + " was given"};
    }
    if (!view.data && !empty)
      return {Code::Usage, where() + " has no data (a null pointer)"};
    if (!view.strides.empty() && !isDense(view.sizes, view.strides))
      return {Code::Usage, where() + " is strided; give a contiguous tensor"};
    if (view.device == DeviceKind::Cuda && target == DeviceKind::Cpu)
      return {Code::Usage, where() + " lies on a GPU, and the plan has target cpu; copy it first"};
  }
  return Status::ok();
}

} // namespace cgc
