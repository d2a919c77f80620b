// Conversions of the arguments that sessions and trainers have in common.
#pragma once

#include "runtime/c_api/handles.h"

namespace cgc::c_api {

/// The empty string for null.
inline std::string text(const char *given) {
  return given ? given : "";
}

/// `given`, or `otherwise` if it is 0.
template <class T> T orDefault(T given, T otherwise) {
  return given == T{} ? otherwise : given;
}

inline Result<ExecutorKind> executorOf(cgc_executor executor) {
  switch (executor) {
  case CGC_GRAPH:
    return ExecutorKind::Graph;
  case CGC_STREAM:
    return ExecutorKind::Stream;
  case CGC_REFERENCE:
    return ExecutorKind::Reference;
  }
  return Status(Code::Usage, "there is no executor " + std::to_string(int(executor)));
}

/// Views of a caller's tensors. Requests of up to eight tensors need no allocation.
class Views final {
public:
  Status assign(const cgc_tensor *tensors, size_t count, const char *name) {
    if (count > 0)
      CGC_TRY(require(tensors, name));
    if (count > kFew)
      many_.resize(count);
    views_ = {count > kFew ? many_.data() : few_, count};
    for (size_t i = 0; i < count; ++i) {
      const cgc_tensor &tensor = tensors[i];
      const auto fail = [&](const std::string &what) {
        return Status(Code::Usage, std::string(name) + "[" + std::to_string(i) + "]: " + what);
      };
      if (tensor.rank < 0 || (tensor.rank > 0 && !tensor.sizes))
        return fail("rank is negative, or sizes is null");
      if (size_t(tensor.rank) > kMaxRank)
        return fail("rank " + std::to_string(tensor.rank) + " is above " +
                    std::to_string(kMaxRank));
      if (int(tensor.dtype) < 0 || int(tensor.dtype) >= kNumDTypes)
        return fail("there is no element type " + std::to_string(int(tensor.dtype)));
      if (tensor.memory != CGC_HOST && tensor.memory != CGC_GPU)
        return fail("there is no memory " + std::to_string(int(tensor.memory)));
      views_[i] = {tensor.data,
                   DType(tensor.dtype),
                   tensor.memory == CGC_GPU ? DeviceKind::Cuda : DeviceKind::Cpu,
                   {tensor.sizes, size_t(tensor.rank)},
                   {}};
    }
    return Status::ok();
  }
  std::span<const TensorView> views() const { return views_; }

private:
  static constexpr size_t kFew = 8;
  TensorView few_[kFew];
  std::vector<TensorView> many_;
  std::span<TensorView> views_;
};

} // namespace cgc::c_api
