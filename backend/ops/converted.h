// Converted: tensors of calls of LibTorch in another dtype than the op has them.
#pragma once

#include "backend/lowering.h"

namespace cgc::backend {

/// The dtype in which LibTorch normalizes tensors of `dtype` in batches: its CPU kernels keep
/// statistics of 16-bit tensors in 16 bits.
DType normalizationDType(DType dtype, DeviceKind target);

/// `place`, or a dense copy of it in `dtype` if it is strided or of another dtype.
Place converted(const Place &place, DType dtype, BucketBuilder &builder);

/// The argument `name` of `node` as a dense tensor of `dtype`; none for none.
AtenArg convertedArg(const ir::Node &node, llvm::StringRef name, DType dtype,
                     BucketBuilder &builder);

/// Results that a call writes in another dtype.
class ConvertedResults {
public:
  explicit ConvertedResults(BucketBuilder &builder) : builder_(builder) {}

  /// Allocates the result and returns it, or a temporary of `dtype` if it has another.
  Place add(const ir::Value &result, DType dtype);
  /// Converts the temporaries. Call after the call.
  void convert();

private:
  BucketBuilder &builder_;
  std::vector<std::pair<Place, Place>> copies_; ///< From temporaries to results.
};

} // namespace cgc::backend
