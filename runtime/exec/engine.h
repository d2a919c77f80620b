// Engine and Context: run a loaded plan. The public C++ API of libcgc_runtime.
#pragma once

#include "runtime/base/export.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/exec/communicator.h"
#include "runtime/exec/host_function.h"
#include "runtime/exec/memory_pool.h"
#include "runtime/plan/plan_file.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cgc {

class Context;
class Engine;
class OpProvider;

enum class ExecutorKind {
  Stream, ///< Enqueues every record on the stream: for debugging.
  Graph,  ///< Replays a CUDA graph captured from the same records. Target cuda only.
  /// Runs a plan with target cuda on the host, without a GPU or a driver: for each kernel its
  /// reference in plain C++ (libcgc_reference), and LibTorch's CPU ops for ATen records. Slow. It
  /// rounds where the kernels round, except that tf32 is f32.
  Reference,
};

struct EngineOptions {
  /// The executor of the engine's contexts. Reference: the weights stay in the mapped plan file,
  /// and each context runs the references. Otherwise a context may choose between the other two.
  ExecutorKind executor = ExecutorKind::Graph;
  /// The index of the GPU, for a plan with target cuda and an executor other than Reference.
  int device = 0;
  /// Path of the ATen provider library, or of its folder. Empty: libcgc_aten.so in the folder of
  /// libcgc_runtime, then in the folder of the program.
  std::string providerPath;
  /// Path of cuBLASLt, or of its folder. Empty: the dynamic loader's search path, then the folder
  /// of libcgc_runtime, then the folder of the program. Opened only for a plan that calls cuBLASLt.
  std::string cublasLtPath = {};
  /// Path of libcgc_reference, or of its folder. Empty: as for `providerPath`. Opened only for the
  /// reference executor.
  std::string referencePath = {};
  /// A provider that runs the plan's ATen records instead of that library. Borrowed; it must
  /// outlive the engine. For tests.
  OpProvider *provider = nullptr;
  /// Paths of the op libraries that the plan calls, in any order. Other libraries are ignored, but
  /// if the plan calls any, each file must be readable. Op libraries are code: only a library whose
  /// bytes equal those that the plan was compiled with is loaded.
  std::vector<std::string> opLibraries = {};
  /// The functions that the plan calls in place of submodules, in any order. Others are ignored.
  std::vector<NamedHostFunction> hostFunctions = {};
  /// The ranks that run the plan's collectives together, whose GPU is `device`. Null: this engine
  /// alone, so that the results of collectives are copies of their operands.
  std::shared_ptr<Communicator> communicator = {};
  /// Limit in bytes on the weights, arenas, inputs and outputs of this engine and its contexts
  /// together. 0: each request is compared with the memory that is free at that moment. For a GPU
  /// that is its free memory; for the host it is the least of available memory, cgroup limits and
  /// RLIMIT_AS, and the mapped weights of a cpu plan do not count. LibTorch's and CUDA's own memory
  /// is never counted.
  uint64_t memoryLimit = 0;
  /// Shares arena and limit with other engines; memoryLimit must be 0. Null: the engine's contexts
  /// have arenas of their own.
  std::shared_ptr<MemoryPool> pool = {};
  std::string name = {}; ///< The model's name in reports.
  /// An engine of the same plan on another GPU, from which the weights are copied instead of being
  /// uploaded from the plan file again. Borrowed by Engine::create. Null: they are uploaded.
  const Engine *copyWeightsFrom = nullptr;
  /// Allocates each weight separately and, in every context, each range of the arena that tensors
  /// share (each tensor, if the plan was compiled without memory reuse). A memory checker then
  /// detects accesses outside a tensor. For tests.
  bool separateBuffers = false;
};

/// A plan's weights on one device, uploaded once and shared by all contexts. Thread-safe. For
/// target cpu and the reference executor the weights stay in the mapped plan file.
class CGC_API Engine final {
public:
  /// Opens the libraries that `plan` needs and uploads its weights. `plan` is borrowed and must
  /// outlive the engine. Device if there is no usable GPU or driver, the GPU cannot run the plan's
  /// kernels, or a library that the plan calls is missing. Usage if an op library is not given or
  /// has another hash, if a host function is not given, if the communicator is of another device,
  /// if it has several ranks and the plan no collectives, if the executor is Reference and the
  /// plan's target is cpu, or if `copyWeightsFrom` is of another plan or not on a GPU. Unsupported,
  /// naming the record, if the executor is Reference and the plan calls an op library. OutOfMemory
  /// with a memory breakdown, before anything is allocated, if the weights do not fit.
  static Result<Engine> create(const Plan &plan, EngineOptions options = {});
  static Result<Engine> create(const Plan &&, EngineOptions = {}) = delete; // It would dangle.
  Engine(Engine &&) noexcept;
  Engine &operator=(Engine &&) noexcept;
  ~Engine();

  const Plan &plan() const;
  /// The memory of the engine and its contexts now.
  MemoryReport memory() const;

  struct Impl; ///< engine_impl.h, which is not installed.

private:
  friend class Context;
  friend Impl &implOf(const Engine &engine);
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The largest value of ContextOptions::threads.
inline constexpr int kMaxIntraOpThreads = 1024;

/// When a context binds and captures a bucket.
enum class CaptureTime {
  AtCreation, ///< All buckets, in Context::create().
  OnFirstUse, ///< Each bucket in its first run, or in Context::prepare(). Not for plans with
              ///< states.
};

struct ContextOptions {
  /// The executor, for target cuda. Empty: the engine's. Usage if only one of engine and context
  /// has Reference. A cpu plan always runs its records one by one, and so does a bucket whose
  /// outputs are all empty.
  std::optional<ExecutorKind> executor = {};
  /// Lets a kernel be scheduled before the preceding kernel ends, if it waits for that kernel
  /// itself (programmatic dependent launch). The results are the same either way.
  bool programmaticEdges = true;
  /// Captures the parallel branches of a bucket (LaunchRecord::branch) as parallel paths of its
  /// graph. Otherwise, and with any executor but Graph, records run in the plan's order. The
  /// results are the same either way.
  bool parallelBranches = true;
  CaptureTime capture = CaptureTime::AtCreation;
  /// For each bucket, the sets of the caller's device tensors for which it keeps an executable
  /// graph of its own. A run with one of these sets copies nothing: its kernels read and write the
  /// caller's memory. Another set takes over the executable that was used longest ago, for some
  /// microseconds for each kernel at inputs and outputs. Each run of a split batch is a set of its
  /// own. 0: device tensors are copied.
  size_t addressSets = 4;
  /// Host inputs of at least so many bytes are copied to the GPU while the run before is on it, and
  /// from there to where the run reads them, for which the context takes their bytes once more. For
  /// runs that follow each other without a wait. 0: the copy follows the run before.
  uint64_t copyAheadBytes = 0;
  /// An arena of the context's own even if the engine has a memory pool. For a context whose graphs
  /// are launched by the caller, which the pool cannot put in order (Context::graph).
  bool ownArena = false;
  /// Intra-op threads for each record that LibTorch runs, for a plan with target cpu or the
  /// reference executor: 1 to kMaxIntraOpThreads. 0: the number that the host has set
  /// (at::get_num_threads). The host's setting does not change. Other values, and any value but 0
  /// on a GPU, make Context::create fail with Usage.
  int threads = 0;
  /// Fills arena and outputs with 0xFF (NaN) before each run, so that reads of memory that no
  /// record wrote become visible. Device tensors are then copied. For tests of the memory plan.
  bool poisonArena = false;
};

/// The cost of preparing one bucket.
struct BucketStats {
  size_t graphNodes = 0;    ///< 0 without the graph executor.
  double captureMillis = 0; ///< Capture, instantiation and upload, without the warm-up runs.
};

/// When a record runs, in microseconds since the begin of the run.
struct RecordSpan {
  double begin = 0, end = 0;
};

/// The arena, static input and output buffers, and captured graphs of a plan. One thread may use a
/// context at a time; a second caller gets Usage. Several contexts may run concurrently, on one
/// engine or on several.
///
/// On the host, a context changes no LibTorch setting that other threads see, so the host's own
/// LibTorch calls are not affected. On a GPU, LibTorch computes f32 GEMMs in f32. If the
/// host has enabled TF32 for GEMMs (allow_tf32, fp32_precision), that setting is disabled while
/// LibTorch launches such a record, by one context at a time, and is restored exactly. With the
/// graph executor, only create() and profile() launch records.
class CGC_API Context final {
public:
  /// Binds all buckets to memory and, with the graph executor, warms them up and captures them,
  /// unless ContextOptions::capture delays that. Reserves the memory of all buckets either way.
  /// `engine` is borrowed and must outlive the context. OutOfMemory with a memory breakdown, before
  /// anything is allocated, if arena, inputs and outputs do not fit.
  static Result<Context> create(const Engine &engine, ContextOptions options = {});
  static Result<Context> create(const Engine &&, ContextOptions = {}) = delete; // It would dangle.
  Context(Context &&) noexcept;
  Context &operator=(Context &&) noexcept;
  ~Context();

  /// Runs the bucket of `entry` whose input shapes equal those of `inputs`, in the plan's order,
  /// and copies the results to `outputs`. Views must be dense. They may be in host memory or, if
  /// the plan runs on a GPU, in device memory.
  ///
  /// On a GPU, work is enqueued on `stream`, a cudaStream_t. If `stream` is null, the
  /// context uses a stream of its own and the call returns when the outputs are complete.
  ///
  /// With the graph executor, the kernels read and write a tensor in the GPU's memory where it is,
  /// if its address is a multiple of 16 bytes, it overlaps no output, and only cgc's own kernels,
  /// copies and memsets use it (ContextOptions::addressSets). Another tensor is copied to or from a
  /// static buffer, unless it is that buffer (inputBuffer(), outputBuffer()).
  ///
  /// If `stream` is being captured, the run becomes part of the caller's graph, for any number of
  /// replays: copies of tensors that are not used where they are, which host memory should be
  /// pinned for, and a child graph. Nothing waits and no memory is allocated. The context, and the
  /// memory of all views, must outlive the caller's graph and its executables. The context cannot
  /// know about replays: they and its other runs must not overlap, and the caller orders them.
  /// Runs in one capture follow one another. Indices in host memory are checked now, not in
  /// replays. Usage if the bucket is not prepared, or if the arena is that of a memory pool
  /// (ContextOptions::ownArena); Unsupported for a bucket with LibTorch's records and without the
  /// graph executor.
  ///
  /// Usage if a name, shape, dtype or count does not fit, or if an input has an index out of range
  /// (IoTensor::indexBounds); the message names input, element, value and bound. Indices in host
  /// memory are checked before anything is enqueued, those in device memory by a kernel before the
  /// entry's. The call waits for that kernel if the entry writes states, which then stay as they
  /// are, or has LibTorch's records, which an index out of range would stop the device in.
  /// Otherwise a call with `stream` does not wait: the next call of run() after the kernel fails in
  /// place of it, once, and the run with the index has read the first or last row. So do replays of
  /// a caller's graph, which never wait. Indices that the plan computes are not checked: cgc's
  /// kernels read the first or last row, and a LibTorch record stops the device with an assertion,
  /// after which the process cannot use the device any more.
  Status run(std::string_view entry, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs, void *stream = nullptr);

  /// Copies a state of the plan (PlanData::states) to `to`, or `from` to it: dense views of its
  /// dtype and sizes, in host memory or, if the plan runs on a GPU, in device memory. The copy is
  /// ordered after the runs before it and before those after it. Without `stream` the call waits
  /// for it; with one, the memory of the view must stay as it is until the copy is complete. Usage
  /// if there is no such state, the view does not fit, or another rank holds the state.
  Status readState(std::string_view name, const TensorView &to, void *stream = nullptr);
  Status writeState(std::string_view name, const TensorView &from, void *stream = nullptr);
  /// Gives each state its first value, as after create(). Waits.
  Status resetStates();

  /// Binds and captures a bucket of `entry` unless that is done (CaptureTime::OnFirstUse). Usage if
  /// there is no such entry or bucket.
  Status prepare(std::string_view entry, size_t bucket);

  /// The static buffer of an input or output of a bucket, as a view that is valid as long as the
  /// context: device memory, or host memory if the plan runs on the host. Prepares the bucket. A
  /// run that is given the view copies nothing for it. Write an input after the last run, and read
  /// an output before the next one that is given it, or that copies from it. Usage if there is no
  /// such entry, bucket or tensor.
  Result<TensorView> inputBuffer(std::string_view entry, size_t bucket, size_t index);
  Result<TensorView> outputBuffer(std::string_view entry, size_t bucket, size_t index);

  /// The captured graph of a bucket, a cudaGraph_t on the static buffers, which lives as long as
  /// the context: for cudaGraphAddChildGraphNode, which copies it. Prepares the bucket. The context
  /// must outlive the caller's graphs and executables, whose launches must not overlap its runs.
  /// Unsupported without the graph executor; Usage if there is no such entry or bucket, or if the
  /// arena is that of a memory pool (ContextOptions::ownArena).
  Result<void *> graph(std::string_view entry, size_t bucket);

  /// Measures the microseconds that each record of a bucket takes, as [record][run] in the plan's
  /// order. Makes `runs` runs on what the static input buffers hold, which is the inputs of the
  /// last run that copied them. On a GPU: measured by events
  /// inside a replayed graph, all of whose edges are plain; the resolution of events is half a
  /// microsecond. On the host: measured by its clock. Usage if there is no such entry or bucket.
  Result<std::vector<std::vector<double>>> profile(std::string_view entry, size_t bucket,
                                                   size_t runs);
  /// When each record of a bucket runs, as [record][run], measured as profile() does, but with
  /// parallel branches and collectives beside each other as in a run.
  Result<std::vector<std::vector<RecordSpan>>> timeline(std::string_view entry, size_t bucket,
                                                        size_t runs);

  /// The index of the bucket of `entry` that fits these inputs. Usage if there is none; the message
  /// lists the shapes that the plan has.
  Result<size_t> selectBucket(std::string_view entry, std::span<const TensorView> inputs) const;
  /// The cost of preparing a bucket. Usage if there is no such entry or bucket.
  Result<BucketStats> stats(std::string_view entry, size_t bucket) const;
  /// Remarks for the user that are not errors, one line each: for example, that the plan was tuned
  /// for another GPU.
  const std::vector<std::string> &notes() const;

  struct Impl; ///< context_impl.h, which is not installed.

private:
  friend Impl &implOf(const Context &context);
  explicit Context(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace cgc
