/* The C interface of an op library, which contains the user's own ops. A plan calls them by name.
   docs/plugins.md has an example. An op library needs only this header; it links neither cgc nor
   LLVM. */
#ifndef CGC_OP_LIBRARY_ABI_H
#define CGC_OP_LIBRARY_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The ABI version. It changes whenever this header does. */
#define CGC_OP_LIBRARY_ABI 1

/* The values of CgcOpTensor.dtype. */
enum CgcOpDType {
  CGC_OP_F32 = 0,
  CGC_OP_F16 = 1,
  CGC_OP_BF16 = 2,
  CGC_OP_F64 = 3,
  CGC_OP_I64 = 4,
  CGC_OP_I32 = 5,
  CGC_OP_I16 = 6,
  CGC_OP_I8 = 7,
  CGC_OP_U8 = 8,
  CGC_OP_BOOL = 9
};

/* A dense, row-major tensor. `data` is device memory in `launch` and host memory in `run`; `check`
   must not dereference it. It is aligned to 16 bytes unless the tensor is part of another one. */
typedef struct {
  void *data;
  const int64_t *sizes;
  uint32_t rank;
  uint32_t dtype;
} CgcOpTensor;

/* The arguments of one call, as in the IR's cgc.library_op. */
typedef struct {
  const CgcOpTensor *inputs;
  const int64_t *ints;
  const double *floats;
  uint32_t numInputs, numInts, numFloats;
  CgcOpTensor output; /* Shares no memory with the inputs. */
} CgcOpCall;

/* An op. Its functions return null on success, or an error message that lives as long as the
   library. They throw nothing, keep no pointer, and may be called from several threads at once. */
typedef struct {
  const char *name; /* As in the IR, for example "acme.quick_gelu". */
  /* Checks whether the op supports these tensor types, sizes and numbers. Called when a plan is
     compiled and when it is loaded. */
  const char *(*check)(const CgcOpCall *call);
  /* Enqueues the op on `stream`, a cudaStream_t. The stream may be capturing, so the function must
     neither synchronize nor allocate. Null if the op has no CUDA implementation. */
  const char *(*launch)(const CgcOpCall *call, void *stream);
  /* Computes the op on the host. Null if the op has no host implementation. */
  const char *(*run)(const CgcOpCall *call);
} CgcOp;

typedef struct {
  uint32_t abi; /* CGC_OP_LIBRARY_ABI. The first member in every version. */
  uint32_t numOps;
  const CgcOp *ops;
} CgcOpLibrary;

/* The library's entry point, which the library defines. */
__attribute__((visibility("default"))) const CgcOpLibrary *cgcOpLibrary(void);

#ifdef __cplusplus
}
#endif
#endif
