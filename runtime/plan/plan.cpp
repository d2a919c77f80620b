// PlanData: the tensors and names of records, lookups, and arithmetic on tensor sizes.
#include "runtime/plan/plan.h"

#include "runtime/base/checked.h"

#include <algorithm>

namespace cgc {
namespace {

template <class... Fs> struct Overloaded : Fs... {
  using Fs::operator()...;
};

/// Removes absent optional tensors, which are neither read nor written.
std::vector<TensorId> present(std::vector<TensorId> ids) {
  std::erase(ids, kNoTensor);
  return ids;
}

std::vector<TensorId> atenReads(const AtenCall &call) {
  std::vector<TensorId> ids;
  for (const AtenArg &arg : call.args) {
    if (const auto *id = std::get_if<TensorId>(&arg))
      ids.push_back(*id);
    else if (const auto *list = std::get_if<std::vector<TensorId>>(&arg))
      ids.insert(ids.end(), list->begin(), list->end());
  }
  return present(std::move(ids));
}

} // namespace

std::vector<TensorId> recordReads(const LaunchRecord &record) {
  using Ids = std::vector<TensorId>;
  return std::visit(Overloaded{[](const KernelLaunch &r) { return present(r.reads); },
                               [](const LibraryCall &r) { return present(r.reads); },
                               [](const AtenCall &r) { return atenReads(r); },
                               [](const Memcpy &r) { return Ids{r.source}; },
                               [](const Memset &) { return Ids{}; },
                               [](const HostCall &r) { return r.reads; }},
                    record.op);
}

std::vector<TensorId> recordWrites(const LaunchRecord &record) {
  using Ids = std::vector<TensorId>;
  return std::visit(Overloaded{[](const KernelLaunch &r) { return present(r.writes); },
                               [](const LibraryCall &r) { return r.writes; },
                               [](const AtenCall &r) { return present(r.outputs); },
                               [](const Memcpy &r) { return Ids{r.destination}; },
                               [](const Memset &r) { return Ids{r.destination}; },
                               [](const HostCall &r) { return r.writes; }},
                    record.op);
}

std::string recordName(const LaunchRecord &record) {
  return std::visit(Overloaded{[](const KernelLaunch &r) { return "kernel " + r.kernel; },
                               [](const LibraryCall &r) { return r.library + "." + r.function; },
                               [](const AtenCall &r) {
                                 return r.overload.empty() ? r.op : r.op + "." + r.overload;
                               },
                               [](const Memcpy &) { return std::string("memcpy"); },
                               [](const Memset &) { return std::string("memset"); },
                               [](const HostCall &r) { return "host " + hostFunctionName(r); }},
                    record.op);
}

std::string hostFunctionName(const HostCall &call) {
  return call.module + "." + call.method;
}

std::optional<size_t> PlanData::opLibraryOf(const LibraryCall &call) const {
  for (size_t i = 0; i < opLibraries.size(); ++i)
    if (opLibraries[i].name == call.library)
      return i;
  return std::nullopt;
}

const Entry *PlanData::findEntry(std::string_view name) const {
  const auto it =
      std::find_if(entries.begin(), entries.end(), [&](const Entry &e) { return e.name == name; });
  return it == entries.end() ? nullptr : &*it;
}

std::optional<size_t> PlanData::findState(std::string_view name) const {
  const auto it = std::ranges::find(states, name, &State::name);
  return it == states.end() ? std::nullopt : std::optional(size_t(it - states.begin()));
}

std::string precisionOption(const PlanData &plan) {
  if (!plan.precision)
    return "keep";
  if (plan.precision == DType::F32)
    return plan.tf32 ? "tf32" : "fp32";
  return plan.precision == DType::F16 ? "fp16" : std::string(dtypeName(*plan.precision));
}

std::optional<int64_t> batchOf(const Bucket &bucket) {
  for (const IoTensor &input : bucket.inputs)
    if (input.batchDim != kNoBatchDim)
      return input.sizes[input.batchDim];
  return std::nullopt;
}

bool hasHostCalls(const Bucket &bucket) {
  return std::ranges::any_of(bucket.records, isHostCall);
}

std::string shapeText(DType dtype, std::span<const int64_t> sizes) {
  std::string text(dtypeName(dtype));
  text += '[';
  for (size_t i = 0; i < sizes.size(); ++i)
    text += (i ? "," : "") + std::to_string(sizes[i]);
  return text + ']';
}

std::string shapesText(const std::vector<IoTensor> &tensors) {
  std::string text;
  for (const IoTensor &tensor : tensors)
    text += (text.empty() ? "" : ", ") + tensor.name + "=" + shapeText(tensor.dtype, tensor.sizes);
  return text;
}

std::optional<uint64_t> tensorBytes(DType dtype, std::span<const int64_t> sizes) {
  std::optional<uint64_t> bytes = dtypeSize(dtype);
  for (int64_t size : sizes) {
    if (size < 0 || !bytes)
      return std::nullopt;
    bytes = checkedMul(*bytes, size);
  }
  return bytes;
}

std::optional<uint64_t> tensorExtent(const TensorRef &tensor) {
  if (tensor.sizes.size() != tensor.strides.size())
    return std::nullopt;
  bool empty = false;
  uint64_t elements = 1;
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    const int64_t size = tensor.sizes[i], stride = tensor.strides[i];
    if (size < 0 || stride < 0)
      return std::nullopt;
    empty |= size == 0;
    const auto step = checkedMul(size == 0 ? 0 : size - 1, stride);
    const auto sum = step ? checkedAdd(elements, *step) : std::nullopt;
    if (!sum)
      return std::nullopt;
    elements = *sum;
  }
  return empty ? 0 : checkedMul(elements, dtypeSize(tensor.dtype));
}

std::optional<IndexRange> indexRange(const IoTensor &input) {
  std::optional<IndexRange> range;
  for (const IndexBound &bound : input.indexBounds) {
    if (!range)
      range = {bound.least, bound.end};
    range->least = std::max(range->least, bound.least);
    range->end = std::min(range->end, bound.end);
  }
  return range;
}

bool overlap(const TensorRef &a, const TensorRef &b) {
  return a.slot.buffer == b.slot.buffer && a.slot.index == b.slot.index &&
         a.slot.offset < b.slot.offset + *tensorExtent(b) &&
         b.slot.offset < a.slot.offset + *tensorExtent(a);
}

bool isDense(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  if (sizes.size() != strides.size())
    return false;
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end())
    return true;
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expected)
      return false;
    if (__builtin_mul_overflow(expected, sizes[i], &expected))
      return false;
  }
  return true;
}

} // namespace cgc
