// Checks of indices: a loop over host memory, and launches of check_indices.
#include "runtime/exec/index_checks.h"

#include "runtime/kernels/device/device_kernels.h"
#include "runtime/kernels/rowwise/check_indices.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <vector>

namespace cgc {
namespace {

/// Maps the elements of a bucket's input to those of a caller's tensor, of which a run takes some
/// rows.
class ElementMap final {
public:
  ElementMap(const IoTensor &input, const std::optional<RowRange> &rows) {
    if (!rows || input.batchDim == kNoBatchDim)
      return;
    rows_ = *rows;
    rowElements_ = int64_t(rowLayout(input).rowBytes / dtypeSize(input.dtype));
    batch_ = input.sizes[input.batchDim];
  }
  /// The caller's element for `element` of the bucket's input; std::nullopt if it is not among the
  /// rows.
  std::optional<int64_t> operator()(int64_t element) const {
    if (batch_ == 0) // All rows.
      return element;
    const int64_t row = element / rowElements_ % batch_, block = element / rowElements_ / batch_;
    if (row >= rows_.count)
      return std::nullopt;
    return (block * rows_.total + rows_.begin + row) * rowElements_ + element % rowElements_;
  }

private:
  RowRange rows_;
  int64_t rowElements_ = 0, batch_ = 0;
};

/// "element 7", or "element [2,1]" in a tensor of several dimensions.
std::string elementText(int64_t element, std::span<const int64_t> sizes) {
  if (sizes.size() < 2)
    return "element " + std::to_string(element);
  std::string place;
  for (size_t d = sizes.size(); d-- > 0; element /= sizes[d])
    place = std::to_string(element % sizes[d]) + (place.empty() ? "" : "," + place);
  return "element [" + place + "]";
}

/// The error for the value of an element of a caller's tensor with these sizes.
Status outOfRange(const IoTensor &input, const IndexBound &bound, int64_t element,
                  std::span<const int64_t> sizes, int64_t value) {
  return {Code::Usage, "input '" + input.name + "': " + elementText(element, sizes) + " is " +
                           std::to_string(value) + ", but the model reads it as an index from " +
                           std::to_string(bound.least) + " to " + std::to_string(bound.end - 1) +
                           (bound.exempt ? ", or " + std::to_string(*bound.exempt) : "")};
}

/// Checks the elements of `bound` among values of type T at `data`, which may be unaligned, of a
/// view with these sizes.
template <class T>
Status checkIndicesOf(const IoTensor &input, const IndexBound &bound, const ElementMap &map,
                      const std::byte *data, std::span<const int64_t> sizes) {
  if (std::ranges::find(bound.sizes, 0) != bound.sizes.end())
    return Status::ok();
  std::array<int64_t, kMaxRank> at{}; // The place in the view, in row-major order.
  int64_t element = bound.offset;
  while (true) {
    if (const std::optional<int64_t> mapped = map(element)) {
      T value;
      std::memcpy(&value, data + *mapped * int64_t(sizeof(T)), sizeof(T));
      if (!bound.allows(int64_t(value)))
        return outOfRange(input, bound, *mapped, sizes, int64_t(value));
    }
    size_t dim = bound.sizes.size();
    for (; dim > 0; --dim) {
      element += bound.strides[dim - 1];
      if (++at[dim - 1] < bound.sizes[dim - 1])
        break;
      element -= bound.strides[dim - 1] * bound.sizes[dim - 1];
      at[dim - 1] = 0;
    }
    if (dim == 0)
      return Status::ok();
  }
}

const DeviceKernel &kernel() {
  static const DeviceKernel &found = deviceKernel(*findKernel("check_indices"));
  return found;
}

} // namespace

Status checkIndices(std::span<const IoTensor> inputs, std::span<const TensorView> views,
                    const std::optional<RowRange> &rows) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const IoTensor &input = inputs[i];
    if (views[i].device == DeviceKind::Cuda)
      continue;
    const auto *data = static_cast<const std::byte *>(views[i].data);
    const ElementMap map(input, rows);
    for (const IndexBound &bound : input.indexBounds) {
      Status status;
      if (input.dtype == DType::I64)
        status = checkIndicesOf<int64_t>(input, bound, map, data, views[i].sizes);
      else if (input.dtype == DType::I32)
        status = checkIndicesOf<int32_t>(input, bound, map, data, views[i].sizes);
      else if (input.dtype == DType::I16)
        status = checkIndicesOf<int16_t>(input, bound, map, data, views[i].sizes);
      else if (input.dtype == DType::I8)
        status = checkIndicesOf<int8_t>(input, bound, map, data, views[i].sizes);
      else if (input.dtype == DType::U8)
        status = checkIndicesOf<uint8_t>(input, bound, map, data, views[i].sizes);
      CGC_TRY(status);
    }
  }
  return Status::ok();
}

Status checkIndices(const Bucket &bucket, std::span<const TensorView> views,
                    std::optional<int64_t> rows) {
  if (!rows)
    return checkIndices(bucket.inputs, views);
  for (int64_t begin = 0, batch = *batchOf(bucket); begin < *rows; begin += batch)
    CGC_TRY(
        checkIndices(bucket.inputs, views, RowRange{begin, std::min(batch, *rows - begin), *rows}));
  return Status::ok();
}

Status IndexChecks::prepare() {
  if (report_.data())
    return Status::ok();
  cudaFuncAttributes attributes;
  CGC_TRY(CGC_CUDA(cudaFuncGetAttributes(&attributes, kernel().function()),
                   "cannot load the kernel check_indices"));
  constexpr size_t kReportBytes = kReportNumbers * sizeof(int64_t);
  CGC_ASSIGN_OR_RETURN(report_, PinnedBuffer::allocate(kReportBytes));
  std::memset(report_.data(), 0, kReportBytes);
  return Status::ok();
}

Status IndexChecks::enqueue(const IoTensor &input, const std::byte *data,
                            const std::optional<RowRange> &rows, cudaStream_t on) const {
  static constexpr uint32_t kGrid[3] = {1, 1, 1}, kBlock[3] = {kCheckIndicesThreads, 1, 1};
  static constexpr int64_t kReportSizes[] = {kReportNumbers};
  const RowRange range = rows.value_or(RowRange());
  for (const IndexBound &bound : input.indexBounds) {
    if (std::ranges::find(bound.sizes, 0) != bound.sizes.end())
      continue;
    const uint64_t width = dtypeSize(input.dtype);
    const OperandView reads[] = {{input.dtype, bound.sizes, bound.strides, width},
                                 {DType::I64, kReportSizes, {}, sizeof(int64_t)}};
    // The address of the bound is its number: the plan outlives the checks.
    const int64_t ints[] = {bound.least,
                            bound.end,
                            bound.exempt.value_or(bound.least),
                            int64_t(reinterpret_cast<intptr_t>(&bound)),
                            range.begin,
                            range.count,
                            range.total};
    void *const from[] = {const_cast<std::byte *>(data) + bound.offset * int64_t(width),
                          report_.data()};
    void *const to[] = {report_.data()};
    CGC_ASSIGN_OR_RETURN(
        KernelParameters parameters,
        kernel().bind({kGrid, kBlock, 0, reads, std::span(reads).subspan(1), ints, {}},
                      {from, to}));
    void *arguments[] = {parameters.data()};
    CGC_TRY(
        CGC_CUDA(cudaLaunchKernel(kernel().function(), 1, kCheckIndicesThreads, arguments, 0, on),
                 "cannot check the indices of input '" + input.name + "'"));
  }
  return Status::ok();
}

Status IndexChecks::take(const PlanData &plan) {
  if (!report_.data())
    return Status::ok();
  auto *const report = reinterpret_cast<int64_t *>(report_.data());
  const std::atomic_ref<int64_t> check(report[kReportedCheck]);
  const int64_t found = check.load(std::memory_order_acquire);
  if (found == 0)
    return Status::ok();
  const int64_t position = report[kReportedPosition], value = report[kReportedValue];
  const RowRange rows{report[kReportedBegin], report[kReportedCount], report[kReportedTotal]};
  check.store(0, std::memory_order_release);
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets)
      for (const IoTensor &input : bucket.inputs)
        for (const IndexBound &bound : input.indexBounds)
          if (int64_t(reinterpret_cast<intptr_t>(&bound)) == found) {
            int64_t element = bound.offset, rest = position;
            for (size_t d = bound.sizes.size(); d-- > 0; rest /= bound.sizes[d])
              element += rest % bound.sizes[d] * bound.strides[d];
            std::vector<int64_t> sizes = input.sizes;
            if (rows.total > 0 && input.batchDim != kNoBatchDim) {
              element = ElementMap(input, rows)(element).value_or(element);
              sizes[input.batchDim] = rows.total;
            }
            return outOfRange(input, bound, element, sizes, value);
          }
  return {Code::Usage, "an input has an index out of range"};
}

} // namespace cgc
