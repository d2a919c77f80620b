// Full precision: a cuda plan's f32 products are computed in f32, whatever the host lets LibTorch
// round to TF32.
#pragma once

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace cgc::aten {

/// Whether `op` multiplies matrices, so that a GPU could round its f32 factors to TF32.
bool isProduct(std::string_view op);

/// While it lives, LibTorch multiplies f32 matrices on this thread without TF32. Only where the
/// host has turned TF32 on for products does it change a process-wide setting, as cuBLASLt's calls
/// heed no other: float32Precision(CUDA, MATMUL), which it sets back exactly. Finding out whether
/// the host's value is inherited changes (CUDA, ALL) and (GENERIC, ALL) for a moment. One lives at
/// a time; a second thread waits.
class FullPrecision final {
public:
  FullPrecision();
  FullPrecision(const FullPrecision &) = delete;
  FullPrecision &operator=(const FullPrecision &) = delete;
  ~FullPrecision();

private:
  at::NoTF32Guard thread_;
  std::unique_lock<std::mutex> lock_;
  std::optional<at::Float32Precision> own_; ///< The host's setting, if it was changed.
};

/// Makes a call of aten::conv2d one of aten::_convolution, which takes TF32 as an argument: so no
/// setting of the host is touched. A batch dimension that conv2d may lack is added to the image and
/// to `output`.
void withoutTf32(c10::OperatorHandle &op, std::vector<c10::IValue> &args, at::Tensor &output);

} // namespace cgc::aten
