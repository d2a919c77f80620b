// A stand-in for cuBLASLt, for tests without a GPU: it takes every algorithm, and each asks for
// matrices at multiples of as many bytes as its first word says.
#include <cublasLt.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

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
EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void *,
                                     const void *, cublasLtMatrixLayout_t, const void *,
                                     cublasLtMatrixLayout_t, const void *, const void *,
                                     cublasLtMatrixLayout_t, void *, cublasLtMatrixLayout_t,
                                     const cublasLtMatmulAlgo_t *, void *, size_t, cudaStream_t) {
  return CUBLAS_STATUS_NOT_SUPPORTED;
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
EXPORT cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t, size_t,
                                                      cublasComputeType_t, cudaDataType_t) {
  return CUBLAS_STATUS_SUCCESS;
}
EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t,
                                                     cublasLtMatmulDescAttributes_t, const void *,
                                                     size_t) {
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
EXPORT cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t, size_t,
                                                        cudaDataType, uint64_t, uint64_t, int64_t) {
  return CUBLAS_STATUS_SUCCESS;
}
