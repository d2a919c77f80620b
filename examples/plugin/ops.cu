// An op library with one op, example.quick_gelu: x * sigmoid(1.702 x), for CUDA and for the host.
#include "runtime/plan/op_library_abi.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>

namespace {

constexpr float kSlope = 1.702f;

template <class T> __global__ void quickGeluKernel(const T *x, T *y, int64_t count) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count;
       i += int64_t(gridDim.x) * blockDim.x) {
    const float value = static_cast<float>(x[i]);
    y[i] = static_cast<T>(value / (1 + expf(-kSlope * value)));
  }
}

int64_t countOf(const CgcOpTensor &tensor) {
  int64_t count = 1;
  for (uint32_t i = 0; i < tensor.rank; ++i)
    count *= tensor.sizes[i];
  return count;
}

const char *check(const CgcOpCall *call) {
  if (call->numInputs != 1 || call->numInts != 0 || call->numFloats != 0)
    return "it takes one tensor";
  const CgcOpTensor &x = call->inputs[0];
  if (x.dtype != CGC_OP_F32 && x.dtype != CGC_OP_F16 && x.dtype != CGC_OP_BF16)
    return "it takes f32, f16 and bf16";
  if (call->output.dtype != x.dtype || countOf(call->output) != countOf(x))
    return "the result has the type of the input";
  return nullptr;
}

template <class T> const char *launchAs(const CgcOpCall *call, cudaStream_t stream) {
  const int64_t count = countOf(call->output);
  if (count == 0)
    return nullptr;
  constexpr int kThreads = 256;
  const int64_t blocks = (count + kThreads - 1) / kThreads;
  quickGeluKernel<<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), kThreads, 0, stream>>>(
      static_cast<const T *>(call->inputs[0].data), static_cast<T *>(call->output.data), count);
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

template <class T> const char *runAs(const CgcOpCall *call) {
  const T *x = static_cast<const T *>(call->inputs[0].data);
  T *y = static_cast<T *>(call->output.data);
  for (int64_t i = 0, count = countOf(call->output); i < count; ++i) {
    const float value = static_cast<float>(x[i]);
    y[i] = static_cast<T>(value / (1 + std::exp(-kSlope * value)));
  }
  return nullptr;
}

const char *launch(const CgcOpCall *call, void *stream) {
  const auto onStream = static_cast<cudaStream_t>(stream);
  switch (call->output.dtype) {
  case CGC_OP_F16:
    return launchAs<__half>(call, onStream);
  case CGC_OP_BF16:
    return launchAs<__nv_bfloat16>(call, onStream);
  default:
    return launchAs<float>(call, onStream);
  }
}

const char *run(const CgcOpCall *call) {
  switch (call->output.dtype) {
  case CGC_OP_F16:
    return runAs<__half>(call);
  case CGC_OP_BF16:
    return runAs<__nv_bfloat16>(call);
  default:
    return runAs<float>(call);
  }
}

} // namespace

extern "C" const CgcOpLibrary *cgcOpLibrary(void) {
  static const CgcOp ops[] = {{"example.quick_gelu", check, launch, run}};
  static const CgcOpLibrary library = {CGC_OP_LIBRARY_ABI, 1, ops};
  return &library;
}
