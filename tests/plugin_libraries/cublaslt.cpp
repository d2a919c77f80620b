// A stand-in for cuBLASLt, for tests without a GPU: it takes every algorithm, and each asks for
// matrices at multiples of as many bytes as its first word says. In a program with the fake GPU it
// launches GEMMs as that GPU's kernel; elsewhere it launches none.
#include "tests/fake_cuda/kernel_arguments.h"

#include <cublasLt.h>

#include <cstring>
#include <dlfcn.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using cgc::DType;
using cgc::test::fake_cuda::KernelArguments;

/// The content of a matrix layout. `rows` are dense, because cuBLASLt's matrices are column-major.
struct Layout {
  cudaDataType type;
  int64_t rows, columns, stride;
};
/// The content of a description of an operation.
struct Description {
  bool isTf32, isRelu;
  const void *bias;
};
static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t) &&
              sizeof(Description) <= sizeof(cublasLtMatmulDescOpaque_t));

template <class T, class Opaque> T read(const Opaque *opaque) {
  T content;
  std::memcpy(&content, opaque, sizeof(content));
  return content;
}
template <class T, class Opaque> void write(Opaque *opaque, const T &content) {
  std::memcpy(opaque, &content, sizeof(content));
}

DType dtypeOf(cudaDataType type) {
  return type == CUDA_R_16F ? DType::F16 : type == CUDA_R_16BF ? DType::BF16 : DType::F32;
}

/// A matrix of cuBLASLt as its transpose, which is row-major.
KernelArguments::Operand matrix(const void *data, const cublasLtMatrixLayoutOpaque_t *opaque) {
  const auto layout = read<Layout>(opaque);
  return {const_cast<void *>(data),      dtypeOf(layout.type), true, 2,
          {layout.columns, layout.rows}, {layout.stride, 1}};
}

} // namespace

EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  static int object;
  *handle = reinterpret_cast<cublasLtHandle_t>(&object);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtDestroy(cublasLtHandle_t) {
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT const char *cublasLtGetStatusName(cublasStatus_t) {
  return "status";
}
EXPORT size_t cublasLtGetVersion() {
  return CUBLAS_VER_MAJOR * 10000;
}
/// d^T = a^T b + c, as cgc calls it: a is the weight, b is x, and beta is 1 for a residual c.
EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                     const void *, const void *a, cublasLtMatrixLayout_t aLayout,
                                     const void *b, cublasLtMatrixLayout_t bLayout,
                                     const void *beta, const void *c,
                                     cublasLtMatrixLayout_t cLayout, void *d,
                                     cublasLtMatrixLayout_t dLayout, const cublasLtMatmulAlgo_t *,
                                     void *workspace, size_t workspaceBytes, cudaStream_t stream) {
  using Launch = cudaError_t (*)(const KernelArguments &, cudaStream_t);
  static const auto launch =
      reinterpret_cast<Launch>(dlsym(RTLD_DEFAULT, cgc::test::fake_cuda::kLaunchGemmSymbol));
  if (!launch)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto operation = read<Description>(description);
  const auto result = read<Layout>(dLayout);
  KernelArguments arguments = {};
  arguments.grid[0] = arguments.grid[1] = arguments.grid[2] = 1;
  arguments.block[0] = arguments.block[1] = arguments.block[2] = 1;
  arguments.readCount = 4;
  arguments.writeCount = arguments.intCount = 2;
  arguments.fewReads[0] = matrix(b, bLayout);
  arguments.fewReads[1] = matrix(a, aLayout);
  arguments.fewReads[2] = {
      const_cast<void *>(operation.bias), dtypeOf(result.type), false, 1, {result.rows}, {}};
  if (*static_cast<const float *>(beta) != 0)
    arguments.fewReads[3] = matrix(c, cLayout);
  arguments.fewWrites[0] = matrix(d, dLayout);
  arguments.fewWrites[1] = {workspace, DType::U8, false, 1, {int64_t(workspaceBytes)}, {}};
  arguments.ints[0] = operation.isRelu;
  arguments.ints[1] = operation.isTf32;
  return launch(arguments, stream) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                  : CUBLAS_STATUS_EXECUTION_FAILED;
}
EXPORT cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *algorithm,
                                                        cublasLtMatmulAlgoCapAttributes_t,
                                                        void *value, size_t size, size_t *written) {
  if (size != sizeof(uint32_t))
    return CUBLAS_STATUS_INVALID_VALUE;
  *static_cast<uint32_t *>(value) = static_cast<uint32_t>(algorithm->data[0]);
  *written = size;
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              const cublasLtMatmulAlgo_t *,
                                              cublasLtMatmulHeuristicResult_t *result) {
  result->workspaceSize = 0;
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                                     cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                     cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                     cublasLtMatmulPreference_t, int,
                                                     cublasLtMatmulHeuristicResult_t results[],
                                                     int *found) {
  results[0] = {};
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t description, size_t,
                                                      cublasComputeType_t type, cudaDataType_t) {
  write(description, Description{type == CUBLAS_COMPUTE_32F_FAST_TF32, false, nullptr});
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                                     cublasLtMatmulDescAttributes_t attribute,
                                                     const void *value, size_t) {
  auto content = read<Description>(description);
  if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE) {
    const auto epilogue = *static_cast<const uint32_t *>(value);
    content.isRelu = epilogue == CUBLASLT_EPILOGUE_RELU || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
  } else if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER) {
    content.bias = *static_cast<const void *const *>(value);
  }
  write(description, content);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                           cublasLtMatmulPreferenceAttributes_t,
                                                           const void *, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t,
                                                        cudaDataType type, uint64_t rows,
                                                        uint64_t columns, int64_t stride) {
  write(layout, Layout{type, int64_t(rows), int64_t(columns), stride});
  return CUBLAS_STATUS_SUCCESS;
}
