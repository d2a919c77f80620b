// The functions of the fake GPU that a program exports to the stand-in for NCCL.
#pragma once

#include <cuda_runtime_api.h>

namespace cgc::test::fake_cuda {

/// X(name) for each function.
#define CGC_EXPORTED_FAKE_CUDA(X)                                                                  \
  X(cudaEventCreateWithFlags)                                                                      \
  X(cudaEventDestroy)                                                                              \
  X(cudaEventRecord)                                                                               \
  X(cudaGraphRetainUserObject)                                                                     \
  X(cudaLaunchHostFunc)                                                                            \
  X(cudaStreamGetCaptureInfo)                                                                      \
  X(cudaStreamWaitEvent)                                                                           \
  X(cudaUserObjectCreate)

struct ExportedFunctions {
#define X(name) decltype(&::name) name;
  CGC_EXPORTED_FAKE_CUDA(X)
#undef X
};
/// An ExportedFunctions of a program with ENABLE_EXPORTS.
inline constexpr const char *kExportedFunctionsSymbol = "cgcFakeCudaFunctions";

} // namespace cgc::test::fake_cuda
