// Full precision: computes the f32 GEMMs of a cuda plan in f32, even if the host allows LibTorch to
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

/// Whether `op` multiplies matrices, so that a GPU could round its f32 operands to TF32.
bool multipliesMatrices(std::string_view op);

/// While alive, makes LibTorch multiply f32 matrices on this thread without TF32. LibTorch's
/// cuBLASLt calls obey only the process-wide float32Precision(CUDA, MATMUL), so that is changed,
/// only if the host has enabled TF32 for GEMMs, and restored exactly. Finding out whether the
/// host's value is inherited changes (CUDA, ALL) and (GENERIC, ALL) briefly. Only one object exists
/// at a time; the constructor waits for others.
class FullPrecision final {
public:
  FullPrecision();
  FullPrecision(const FullPrecision &) = delete;
  FullPrecision &operator=(const FullPrecision &) = delete;
  ~FullPrecision();

private:
  at::NoTF32Guard thread_;
  std::unique_lock<std::mutex> lock_;
  std::optional<at::Float32Precision> own_; ///< The host's setting, if this object changed it.
};

/// Whether `op` is a convolution that withoutTf32() takes.
bool isConvolution(std::string_view op);
/// Turns a call of a convolution into one of aten::_convolution, which takes allow_tf32 as an
/// argument, so that no setting of the host changes. Adds a batch dimension to the image and to
/// `output` if they have none. A transposed convolution asks for a deterministic algorithm: others
/// of cuDNN add partial sums by atomics, so that a replay could differ in the last bits.
void withoutTf32(c10::OperatorHandle &op, std::vector<c10::IValue> &args, at::Tensor &output);

} // namespace cgc::aten
