// Nccl: the functions of NCCL that cgc calls, looked up in the library at run time.
#pragma once

#include "runtime/base/status.h"
#include "runtime/exec/communicator.h"

#include <driver_types.h>

namespace cgc {

/// The types and values of NCCL's C API, from nccl.h of NCCL 2.28. NCCL keeps them in all releases
/// of version 2; ncclAvg and ncclBfloat16 exist since 2.10.
namespace nccl {

using Comm = struct ncclComm *;
/// ncclUniqueId, which is passed by value.
using UniqueId = CommunicatorId;

/// ncclResult_t.
enum class Code : int {
  Success,
  UnhandledCudaError,
  SystemError,
  InternalError,
  InvalidArgument,
  InvalidUsage,
  RemoteError,
  InProgress,
};
/// ncclDataType_t.
enum class DataType : int { I8, U8, I32, U32, I64, U64, F16, F32, F64, BF16 };
/// ncclRedOp_t.
enum class Operation : int { Sum = 0, Max = 2, Avg = 4 };

} // namespace nccl

/// X(name, type) for each function of NCCL that cgc calls. Counts are of elements.
#define CGC_NCCL_FUNCTIONS(X)                                                                      \
  X(ncclGetVersion, nccl::Code(int *version))                                                      \
  X(ncclGetUniqueId, nccl::Code(nccl::UniqueId *id))                                               \
  X(ncclCommInitRank, nccl::Code(nccl::Comm *comm, int ranks, nccl::UniqueId id, int rank))        \
  X(ncclCommDestroy, nccl::Code(nccl::Comm comm))                                                  \
  X(ncclCommAbort, nccl::Code(nccl::Comm comm))                                                    \
  X(ncclCommGetAsyncError, nccl::Code(nccl::Comm comm, nccl::Code *error))                         \
  X(ncclGetErrorString, const char *(nccl::Code code))                                             \
  X(ncclGetLastError, const char *(nccl::Comm comm))                                               \
  X(ncclGroupStart, nccl::Code())                                                                  \
  X(ncclGroupEnd, nccl::Code())                                                                    \
  X(ncclAllReduce,                                                                                 \
    nccl::Code(const void *operand, void *result, size_t count, nccl::DataType type,               \
               nccl::Operation operation, nccl::Comm comm, cudaStream_t stream))                   \
  X(ncclReduce,                                                                                    \
    nccl::Code(const void *operand, void *result, size_t count, nccl::DataType type,               \
               nccl::Operation operation, int root, nccl::Comm comm, cudaStream_t stream))         \
  X(ncclAllGather, nccl::Code(const void *operand, void *result, size_t operandCount,              \
                              nccl::DataType type, nccl::Comm comm, cudaStream_t stream))          \
  X(ncclReduceScatter,                                                                             \
    nccl::Code(const void *operand, void *result, size_t resultCount, nccl::DataType type,         \
               nccl::Operation operation, nccl::Comm comm, cudaStream_t stream))                   \
  X(ncclBroadcast,                                                                                 \
    nccl::Code(const void *operand, void *result, size_t count, nccl::DataType type, int root,     \
               nccl::Comm comm, cudaStream_t stream))

/// The library's file name.
inline constexpr const char *kNcclLibrary = "libnccl.so.2";

/// Pointers to the functions of the opened library, which is never closed.
struct Nccl {
  template <class Function> using Pointer = Function *;
#define X(name, ...) Pointer<__VA_ARGS__> name = nullptr;
  CGC_NCCL_FUNCTIONS(X)
#undef X

  /// Opens NCCL at `path`, or where CommunicatorOptions::ncclPath says. Device, with the next step,
  /// if it is missing, lacks a function or is older than 2.19.
  static Result<Nccl> open(const std::string &path);

  /// Ok for Success, else Device: "`what`: " and what NCCL says. `comm` may be null.
  Status status(nccl::Code code, nccl::Comm comm, const std::string &what) const;
};

} // namespace cgc
