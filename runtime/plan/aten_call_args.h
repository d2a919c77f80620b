// Args: reads the arguments of an ATen call in a plan; Row: the check of an op by their values.
#pragma once

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cgc::aten_values {

using Sizes = std::vector<int64_t>;

inline std::string text(const Sizes &sizes) {
  std::string list;
  for (const int64_t size : sizes)
    list += (list.empty() ? "" : ",") + std::to_string(size);
  return "[" + list + "]";
}

/// A call's arguments by their position in LibTorch's schema. Written arguments come last in the
/// schema and are not counted.
class Args {
public:
  Args(const AtenCall &call, std::span<const TensorRef> tensors) : call_(call), tensors_(tensors) {}

  const std::string &overload() const { return call_.overload; }

  /// Null if the argument is missing or of another kind.
  template <class T> const T *get(size_t i) const {
    return i < call_.args.size() ? std::get_if<T>(&call_.args[i]) : nullptr;
  }
  const TensorRef *tensor(size_t i) const {
    const auto *id = get<TensorId>(i);
    return id ? &tensors_[uint32_t(*id)] : nullptr;
  }
  const TensorRef &at(TensorId id) const { return tensors_[uint32_t(id)]; }
  std::optional<double> number(size_t i) const {
    if (const auto *integer = get<int64_t>(i))
      return double(*integer);
    const auto *real = get<double>(i);
    return real ? std::optional(*real) : std::nullopt;
  }
  /// Element `k` of a list of ints. A list of one element applies to all dimensions of an image.
  std::optional<int64_t> element(size_t i, size_t k) const {
    const auto *list = get<Sizes>(i);
    if (!list || list->empty())
      return std::nullopt;
    return list->size() == 1  ? list->front()
           : k < list->size() ? std::optional((*list)[k])
                              : std::nullopt;
  }
  /// The sizes of all tensor arguments.
  std::vector<const Sizes *> allSizes() const {
    std::vector<const Sizes *> sizes;
    for (size_t i = 0; i < call_.args.size(); ++i)
      if (const TensorRef *t = tensor(i))
        sizes.push_back(&t->sizes);
    return sizes;
  }

  /// InvalidFile unless the plan's first result has these sizes.
  Status expectResult(const Sizes &sizes) const {
    if (call_.outputs.empty() || call_.outputs[0] == kNoTensor)
      return Status::ok(); // Other checks refuse such a call.
    const Sizes &plans = tensors_[uint32_t(call_.outputs[0])].sizes;
    if (plans == sizes)
      return Status::ok();
    return {Code::InvalidFile,
            "its result is " + text(sizes) + ", and the plan has a tensor of " + text(plans)};
  }

  /// Refuses a result with gaps or permuted dimensions.
  Status expectDenseResult() const {
    for (const TensorId id : call_.outputs)
      if (id != kNoTensor) {
        const TensorRef &result = tensors_[uint32_t(id)];
        if (!isDense(result.sizes, result.strides))
          return {Code::InvalidFile, "its result has to be dense: LibTorch ignores the strides"};
      }
    return Status::ok();
  }

private:
  const AtenCall &call_;
  std::span<const TensorRef> tensors_;
};

inline Status refuse(const std::string &what) {
  return {Code::InvalidFile, what};
}

/// An op with dangerous arguments: the overloads that a plan may call, and their check. Other
/// overloads of the op are refused.
struct Row {
  std::string_view op;
  std::vector<std::string_view> overloads;
  Status (*check)(const Args &);
};

/// The rows of ops on images: padding, pooling, convolutions, resampling.
std::vector<Row> imageRows();

} // namespace cgc::aten_values
