// cuBLASLt through dlopen. Its matrices are column-major, so it computes the transpose of a
// row-major result: d^T[N,M] = w[N,K] x^T[K,M], with the bias along the rows of d^T.
#include "runtime/exec/cublaslt.h"

#include "runtime/base/check.h"
#include "runtime/exec/library_path.h"

#include <algorithm>
#include <cstring>
#include <cublasLt.h>
#include <dlfcn.h>

namespace cgc {
namespace {

#define CGC_STRING_IMPL(x) #x
#define CGC_STRING(x) CGC_STRING_IMPL(x)
// The functions that cgc calls.
#define CGC_CUBLASLT_FUNCTIONS(X)                                                                  \
  X(cublasLtCreate)                                                                                \
  X(cublasLtDestroy)                                                                               \
  X(cublasLtGetStatusName)                                                                         \
  X(cublasLtGetVersion)                                                                            \
  X(cublasLtMatmul)                                                                                \
  X(cublasLtMatmulAlgoCapGetAttribute)                                                             \
  X(cublasLtMatmulAlgoCheck)                                                                       \
  X(cublasLtMatmulAlgoGetHeuristic)                                                                \
  X(cublasLtMatmulDescInit_internal)                                                               \
  X(cublasLtMatmulDescSetAttribute)                                                                \
  X(cublasLtMatmulPreferenceInit_internal)                                                         \
  X(cublasLtMatmulPreferenceSetAttribute)                                                          \
  X(cublasLtMatrixLayoutInit_internal)

/// Pointers to the functions of the opened library.
struct Functions {
#define X(name) decltype(&::name) name = nullptr;
  CGC_CUBLASLT_FUNCTIONS(X)
#undef X

  /// Looks up all functions in `library`. Returns the name of the first that is missing, or null.
  const char *load(void *library) {
#define X(NAME)                                                                                    \
  NAME = reinterpret_cast<decltype(NAME)>(dlsym(library, #NAME));                                  \
  if (!NAME)                                                                                       \
    return #NAME;
    CGC_CUBLASLT_FUNCTIONS(X)
#undef X
    return nullptr;
  }

  Status status(cublasStatus_t status, const char *what) const {
    if (status == CUBLAS_STATUS_SUCCESS)
      return Status::ok();
    return {status == CUBLAS_STATUS_ALLOC_FAILED ? Code::OutOfMemory : Code::Device,
            std::string("cuBLASLt ") + what + ": " + cublasLtGetStatusName(status)};
  }
};

/// The version as "13.1.0".
std::string versionText(uint64_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string machineText(const FrozenAlgorithm &a) {
  return a.gpu + " (" + std::to_string(a.multiprocessors) + " SMs) with cuBLASLt " +
         versionText(a.version);
}

cudaDataType_t cudaType(DType dtype) {
  return dtype == DType::F16 ? CUDA_R_16F : dtype == DType::BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/// The largest operand alignment in bytes that an algorithm may require.
constexpr uint32_t kMaxAlignment = 256;

/// The largest power of two up to kMaxAlignment that divides the address.
uint32_t alignmentOf(const void *p) {
  const auto address = reinterpret_cast<uintptr_t>(p) | kMaxAlignment;
  return static_cast<uint32_t>(address & (~address + 1));
}

/// The arguments of one cublasLtMatmul: a is the weight, b is x. Neither copied nor moved, so that
/// the descriptors keep their addresses. The library takes descriptors as mutable but only reads
/// them.
struct Operation {
  Operation() = default;
  Operation(const Operation &) = delete;
  Operation &operator=(const Operation &) = delete;

  cublasLtMatmulDescOpaque_t desc = {};
  cublasLtMatrixLayoutOpaque_t aLayout = {}, bLayout = {}, cLayout = {}, dLayout = {};
  const void *a = nullptr, *b = nullptr, *c = nullptr;
  void *d = nullptr, *workspace = nullptr;
  size_t workspaceBytes = 0;
  float beta = 0;
};

} // namespace

std::vector<std::byte> encode(const FrozenAlgorithm &f) {
  std::vector<std::byte> bytes(sizeof(f.version) + sizeof(f.multiprocessors) + f.algorithm.size() +
                               f.gpu.size());
  std::byte *to = bytes.data();
  const auto put = [&](const void *from, size_t size) {
    std::memcpy(to, from, size);
    to += size;
  };
  put(&f.version, sizeof(f.version));
  put(&f.multiprocessors, sizeof(f.multiprocessors));
  put(f.algorithm.data(), f.algorithm.size());
  put(f.gpu.data(), f.gpu.size());
  return bytes;
}

std::optional<FrozenAlgorithm> decodeAlgorithm(std::span<const std::byte> bytes) {
  FrozenAlgorithm f;
  const auto take = [&](void *to, size_t size) {
    std::memcpy(to, bytes.data(), size);
    bytes = bytes.subspan(size);
  };
  if (bytes.size() < sizeof(f.version) + sizeof(f.multiprocessors) + f.algorithm.size())
    return std::nullopt;
  take(&f.version, sizeof(f.version));
  take(&f.multiprocessors, sizeof(f.multiprocessors));
  take(f.algorithm.data(), f.algorithm.size());
  f.gpu.resize(bytes.size());
  take(f.gpu.data(), f.gpu.size());
  const auto printable = [](char c) { return c >= 0x20 && c < 0x7f; };
  if (f.gpu.size() > 256 || !std::all_of(f.gpu.begin(), f.gpu.end(), printable))
    return std::nullopt; // The name is printed in messages.
  return f;
}

struct CublasLt::Impl {
  Functions lib;
  cublasLtHandle_t handle = nullptr;
  FrozenAlgorithm machine; ///< Version and GPU at hand; no algorithm.

  ~Impl() {
    if (handle)
      (void)lib.cublasLtDestroy(handle);
  }

  Status layout(cublasLtMatrixLayoutOpaque_t &layout, DType dtype, int64_t rows, int64_t columns,
                int64_t stride) const {
    return lib.status(lib.cublasLtMatrixLayoutInit_internal(&layout, sizeof(layout),
                                                            cudaType(dtype), rows, columns, stride),
                      "cannot describe a matrix");
  }
  /// Describes the memory of a matrix: that of its transpose if it has dense rows.
  Status layout(cublasLtMatrixLayoutOpaque_t &layout, const TensorRef &matrix) const {
    if (isTransposed(matrix))
      return this->layout(layout, matrix.dtype, matrix.sizes[0], matrix.sizes[1],
                          matrix.strides[1]);
    return this->layout(layout, matrix.dtype, matrix.sizes[1], matrix.sizes[0], rowStride(matrix));
  }
  template <class T>
  Status set(Operation &operation, cublasLtMatmulDescAttributes_t attribute, T value) const {
    return lib.status(lib.cublasLtMatmulDescSetAttribute(&operation.desc, attribute,
                                                         static_cast<const void *>(&value),
                                                         sizeof(value)),
                      "cannot describe the GEMM");
  }
  template <class T>
  Status set(cublasLtMatmulPreferenceOpaque_t &preference,
             cublasLtMatmulPreferenceAttributes_t attribute, T value) const {
    return lib.status(
        lib.cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof(value)),
        "cannot set a preference");
  }

  Result<std::unique_ptr<Operation>> describe(const Operands &o) const;
  Result<std::vector<cublasLtMatmulAlgo_t>> heuristic(Operation &operation, int count) const;
  /// Whether the library supports `algorithm` for this operation, with its workspace size and the
  /// alignment of its operands' addresses.
  bool accepts(Operation &operation, const cublasLtMatmulAlgo_t &algorithm) const;
  /// Decodes `frozen` and returns its algorithm, or sets `note` and returns std::nullopt if it is
  /// not usable here.
  std::optional<cublasLtMatmulAlgo_t>
  usableAlgorithm(Operation &operation, std::span<const std::byte> frozen, std::string &note) const;
};

Result<std::unique_ptr<Operation>> CublasLt::Impl::describe(const Operands &o) const {
  const auto tensor = [&](TensorId id) -> const TensorRef & { return o.tensors[uint32_t(id)]; };
  const GemmCall &p = o.call;
  const bool hasBias = p.bias != kNoTensor, hasResidual = p.residual != kNoTensor;
  const TensorId c = hasResidual ? p.residual : p.d;
  auto owner = std::make_unique<Operation>();
  Operation &operation = *owner;
  CGC_TRY(lib.status(lib.cublasLtMatmulDescInit_internal(
                         &operation.desc, sizeof(operation.desc),
                         p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
                     "cannot describe the GEMM"));
  CGC_TRY(set(operation, CUBLASLT_MATMUL_DESC_TRANSA,
              int32_t(isTransposed(tensor(p.weight)) ? CUBLAS_OP_N : CUBLAS_OP_T)));
  CGC_TRY(set(operation, CUBLASLT_MATMUL_DESC_TRANSB,
              int32_t(isTransposed(tensor(p.x)) ? CUBLAS_OP_T : CUBLAS_OP_N)));
  const uint32_t epilogue = p.relu ? hasBias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU
                            : hasBias ? CUBLASLT_EPILOGUE_BIAS
                                      : CUBLASLT_EPILOGUE_DEFAULT;
  CGC_TRY(set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
  if (hasBias)
    CGC_TRY(set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                static_cast<const void *>(o.address(p.bias))));
  CGC_TRY(layout(operation.aLayout, tensor(p.weight)));
  CGC_TRY(layout(operation.bLayout, tensor(p.x)));
  CGC_TRY(layout(operation.cLayout, tensor(c)));
  CGC_TRY(layout(operation.dLayout, tensor(p.d)));
  operation.a = o.address(p.weight);
  operation.b = o.address(p.x);
  operation.c = o.address(c);
  operation.d = o.address(p.d);
  operation.workspace = o.address(p.workspace);
  operation.workspaceBytes = tensor(p.workspace).sizes[0];
  operation.beta = hasResidual ? 1 : 0;
  return owner;
}

Result<std::vector<cublasLtMatmulAlgo_t>> CublasLt::Impl::heuristic(Operation &operation,
                                                                    int count) const {
  cublasLtMatmulPreferenceOpaque_t preference;
  CGC_TRY(lib.status(lib.cublasLtMatmulPreferenceInit_internal(&preference, sizeof(preference)),
                     "cannot make preferences"));
  CGC_TRY(set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
              uint64_t(operation.workspaceBytes)));
  // Split-K partial results stay in f32 until they are reduced.
  CGC_TRY(set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
              uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
  CGC_TRY(set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignmentOf(operation.a)));
  CGC_TRY(set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignmentOf(operation.b)));
  CGC_TRY(set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignmentOf(operation.c)));
  CGC_TRY(set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignmentOf(operation.d)));
  std::vector<cublasLtMatmulHeuristicResult_t> results(count);
  int found = 0;
  CGC_TRY(lib.status(lib.cublasLtMatmulAlgoGetHeuristic(handle, &operation.desc, &operation.aLayout,
                                                        &operation.bLayout, &operation.cLayout,
                                                        &operation.dLayout, &preference, count,
                                                        results.data(), &found),
                     "has no algorithm for this GEMM"));
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; i < found; ++i)
    if (results[i].state == CUBLAS_STATUS_SUCCESS &&
        results[i].workspaceSize <= operation.workspaceBytes)
      algorithms.push_back(results[i].algo);
  if (algorithms.empty())
    return Status(Code::Device, "cuBLASLt has no algorithm for this GEMM");
  return algorithms;
}

bool CublasLt::Impl::accepts(Operation &o, const cublasLtMatmulAlgo_t &algorithm) const {
  cublasLtMatmulHeuristicResult_t result = {};
  if (lib.cublasLtMatmulAlgoCheck(handle, &o.desc, &o.aLayout, &o.bLayout, &o.cLayout, &o.dLayout,
                                  &algorithm, &result) != CUBLAS_STATUS_SUCCESS ||
      result.workspaceSize > o.workspaceBytes)
    return false;
  // cublasLtMatmulAlgoCheck does not see addresses, so their alignment is checked here. The
  // heuristic gets it as a preference.
  const std::pair<cublasLtMatmulAlgoCapAttributes_t, const void *> operands[] = {
      {CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES, o.a},
      {CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES, o.b},
      {CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES, o.c},
      {CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES, o.d}};
  return std::ranges::all_of(operands, [&](const auto &operand) {
    uint32_t needed = 0;
    size_t written = 0;
    const bool isKnown =
        lib.cublasLtMatmulAlgoCapGetAttribute(&algorithm, operand.first, &needed, sizeof(needed),
                                              &written) == CUBLAS_STATUS_SUCCESS;
    return alignmentOf(operand.second) >= (isKnown ? needed : kMaxAlignment);
  });
}

std::optional<cublasLtMatmulAlgo_t>
CublasLt::Impl::usableAlgorithm(Operation &operation, std::span<const std::byte> bytes,
                                std::string &note) const {
  constexpr const char *kInstead = ": its heuristic chooses instead";
  const std::optional<FrozenAlgorithm> frozen = decodeAlgorithm(bytes);
  if (!frozen) {
    note = std::string("the plan's cuBLASLt algorithms are of another version of cgc") + kInstead;
    return std::nullopt;
  }
  if (frozen->version != machine.version || frozen->gpu != machine.gpu ||
      frozen->multiprocessors != machine.multiprocessors) {
    note = "the plan's GEMMs were tuned on " + machineText(*frozen) + ", and this is " +
           machineText(machine) + kInstead;
    return std::nullopt;
  }
  cublasLtMatmulAlgo_t algorithm;
  static_assert(sizeof(algorithm) == sizeof(frozen->algorithm));
  std::memcpy(&algorithm, frozen->algorithm.data(), sizeof(algorithm));
  if (!accepts(operation, algorithm)) {
    note = std::string("cuBLASLt refuses an algorithm that the plan was tuned to") + kInstead;
    return std::nullopt;
  }
  return algorithm;
}

struct BoundGemm::Impl {
  const Functions &lib;
  cublasLtHandle_t handle;
  std::unique_ptr<Operation> operation;
  cublasLtMatmulAlgo_t algorithm;
};

BoundGemm::BoundGemm(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BoundGemm::BoundGemm(BoundGemm &&) noexcept = default;
BoundGemm &BoundGemm::operator=(BoundGemm &&) noexcept = default;
BoundGemm::~BoundGemm() = default;

Status BoundGemm::launch(cudaStream_t stream) const {
  constexpr float kAlpha = 1;
  Operation &o = *impl_->operation;
  return impl_->lib.status(impl_->lib.cublasLtMatmul(impl_->handle, &o.desc, &kAlpha, o.a,
                                                     &o.aLayout, o.b, &o.bLayout, &o.beta, o.c,
                                                     &o.cLayout, o.d, &o.dLayout, &impl_->algorithm,
                                                     o.workspace, o.workspaceBytes, stream),
                           "cannot launch the GEMM");
}

const char *const CublasLt::kLibrary = "libcublasLt.so." CGC_STRING(CUBLAS_VER_MAJOR);

CublasLt::CublasLt(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CublasLt::~CublasLt() = default;

Result<std::unique_ptr<CublasLt>> CublasLt::open(const std::string &path) {
  const Result<void *> library = openLibrary(kLibrary, path);
  if (!library.isOk())
    return Status(Code::Device, "the plan calls cuBLASLt, and " + library.status().message() +
                                    "; install cuBLAS " CGC_STRING(
                                        CUBLAS_VER_MAJOR) ", put its folder into LD_LIBRARY_PATH, "
                                                          "or say where it is");
  auto impl = std::make_unique<Impl>();
  const auto wrong = [&](const std::string &what) {
    return Status(Code::Device, "the library that was opened as " + std::string(kLibrary) + what +
                                    "; the plan needs cuBLASLt " CGC_STRING(
                                        CUBLAS_VER_MAJOR) " as it comes with CUDA 13");
  };
  if (const char *missing = impl->lib.load(*library))
    return wrong(std::string(" has no function ") + missing);
  impl->machine.version = impl->lib.cublasLtGetVersion();
  if (impl->machine.version / 10000 != CUBLAS_VER_MAJOR)
    return wrong(" is of version " + versionText(impl->machine.version));
  return std::unique_ptr<CublasLt>(new CublasLt(std::move(impl)));
}

Status CublasLt::initialize(const Gpu &gpu) {
  CGC_CHECK(!impl_->handle && "initialize once");
  impl_->machine.gpu = gpu.name;
  impl_->machine.multiprocessors = gpu.multiprocessors;
  return impl_->lib.status(impl_->lib.cublasLtCreate(&impl_->handle), "cannot be started");
}

Result<BoundGemm> CublasLt::bind(const Operands &operands, std::span<const std::byte> frozen,
                                 std::string &note) const {
  CGC_ASSIGN_OR_RETURN(auto operation, impl_->describe(operands));
  std::optional<cublasLtMatmulAlgo_t> algorithm;
  if (!frozen.empty())
    algorithm = impl_->usableAlgorithm(*operation, frozen, note);
  if (!algorithm) {
    CGC_ASSIGN_OR_RETURN(const auto found, impl_->heuristic(*operation, 4));
    algorithm = found[0];
  }
  return BoundGemm(std::make_unique<BoundGemm::Impl>(impl_->lib, impl_->handle,
                                                     std::move(operation), *algorithm));
}

Result<std::vector<std::vector<std::byte>>> CublasLt::candidates(const Operands &operands,
                                                                 int count) const {
  CGC_ASSIGN_OR_RETURN(const auto operation, impl_->describe(operands));
  CGC_ASSIGN_OR_RETURN(const auto algorithms, impl_->heuristic(*operation, count));
  std::vector<std::vector<std::byte>> frozen;
  for (const cublasLtMatmulAlgo_t &algorithm : algorithms) {
    FrozenAlgorithm f = impl_->machine;
    std::memcpy(f.algorithm.data(), &algorithm, sizeof(algorithm));
    frozen.push_back(encode(f));
  }
  return frozen;
}

} // namespace cgc
