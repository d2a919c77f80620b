// Helpers of the references of kernels that take groups of tensors.
#pragma once

#include "runtime/kernels/optimizer/tensor_groups.h"
#include "runtime/kernels/reference_elements.h"

namespace cgc::reference {

/// What the shared reads of an optimizer hold.
struct StepOperands {
  explicit StepOperands(const ReferenceArguments &a)
      : lr(*dataOf<float>(a.reads[kLr])), number(*dataOf<int64_t>(a.reads[kStep])),
        scale(a.reads[kScale].data ? *dataOf<float>(a.reads[kScale]) : 1),
        skips(a.reads[kSkip].data && *dataOf<Bool>(a.reads[kSkip])) {}

  double lr;
  int64_t number;
  float scale;
  bool skips;
};

/// at::lerp: the formula for the end that is nearer. `rest` is 1 - weight.
inline float lerp(float from, float to, float weight, float rest) {
  return weight < 0.5f ? from + weight * (to - from) : to - (to - from) * rest;
}

/// Element `i` of the tensors of a group.
struct Element {
  std::span<const TensorView> reads, writes;
  int64_t i;

  float read(size_t tensor) const { return dataOf<float>(reads[tensor])[i]; }
  void write(size_t tensor, float value) const { resultOf<float>(writes[tensor])[i] = value; }
  /// Writes the first result, rounded, to the copy.
  void writeCopy() const {
    const float value = resultOf<float>(writes[0])[i];
    if (writes.back().dtype == DType::F16)
      resultOf<F16>(writes.back())[i] = fromFloat<F16>(value);
    else
      resultOf<BF16>(writes.back())[i] = fromFloat<BF16>(value);
  }
};

/// Calls `f(element)` for each element of each group. If the step is skipped, writes what the first
/// read of the group holds to the first write, and what the reads behind the gradient hold to the
/// others. Writes the copies.
template <class F>
void forGroups(const ReferenceArguments &a, const GroupShape &shape, bool skips, F f) {
  const size_t count = (a.reads.size() - shape.sharedReads) / shape.reads;
  for (size_t group = 0; group < count; ++group) {
    Element at{a.reads.subspan(shape.sharedReads + group * shape.reads, shape.reads),
               a.writes.subspan(group * shape.writes, shape.writes), 0};
    for (const int64_t elements = elementsOf(at.reads[0]); at.i < elements; ++at.i) {
      if (!skips)
        f(at);
      for (size_t write = 0; skips && write < shape.writes - shape.hasCopy; ++write)
        if (at.writes[write].data)
          at.write(write, at.read(write == 0 ? 0 : write + 1));
      if (shape.hasCopy && at.writes.back().data)
        at.writeCopy();
    }
  }
}

} // namespace cgc::reference
