// Engine and Context: run a loaded plan. The public C++ API of libcgc_runtime.
#pragma once

#include "runtime/base/export.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/plan/plan_file.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cgc {

class Context;
class OpProvider;

struct EngineOptions {
  /// The GPU, for a plan with target cuda.
  int device = 0;
  /// Where the ATen provider library is; empty: beside libcgc_runtime, then beside the program.
  std::string providerPath;
  /// Where cuBLASLt is, the library or its folder; empty: where the loader finds it, then beside
  /// libcgc_runtime, then beside the program. Opened only for a plan that calls it.
  std::string cublasLtPath = {};
  /// Runs the plan's ATen records instead of that library; borrowed, outlives the engine. For
  /// tests.
  OpProvider *provider = nullptr;
  /// The op libraries that the plan names, in any order. Others are ignored, but each file has to
  /// be readable if the plan names any. They are code: none is loaded whose bytes are not those
  /// that the plan was compiled with.
  std::vector<std::string> opLibraries = {};
  /// Bytes that weights, arenas, inputs and outputs of this engine and its contexts may take
  /// together. 0: what the GPU has free, or what the host has for this process (the least of
  /// available memory, cgroup limits and RLIMIT_AS), each time that something is taken; the mapped
  /// weights of a cpu plan then do not count. LibTorch's and CUDA's own memory is not counted.
  uint64_t memoryLimit = 0;
  /// Gives each weight an allocation of its own and, in every context, each range of the arena that
  /// tensors share (of a plan compiled without reuse: each tensor), so that a memory checker sees
  /// where a kernel leaves its tensor. For tests.
  bool separateBuffers = false;
};

/// The weights on one device, uploaded once and shared by all contexts. Thread-safe. For target cpu
/// the weights are used where the plan file is mapped.
class CGC_API Engine final {
public:
  /// `plan` is borrowed and must outlive the engine. Device if there is no usable GPU or driver,
  /// the plan's kernels do not run on the GPU, or a library that the plan calls is missing;
  /// Usage if an op library is not given or has another hash;
  /// OutOfMemory with the bill, before anything is taken, if the weights do not fit.
  static Result<Engine> create(const Plan &plan, EngineOptions options = {});
  static Result<Engine> create(const Plan &&, EngineOptions = {}) = delete; // Would dangle.
  Engine(Engine &&) noexcept;
  Engine &operator=(Engine &&) noexcept;
  ~Engine();

  const Plan &plan() const;

  struct Impl;
  Impl &impl() const { return *impl_; } ///< For Context.

private:
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

enum class ExecutorKind {
  Stream, ///< Enqueues every record on the stream: the debug truth.
  Graph,  ///< Replays a CUDA graph captured from the same records. Target cuda only.
};

/// The largest ContextOptions::threads.
inline constexpr int kMaxIntraOpThreads = 1024;

struct ContextOptions {
  /// Graph on target cuda; a cpu plan always runs its records one by one, and so does a bucket
  /// whose outputs are all empty.
  ExecutorKind executor = ExecutorKind::Graph;
  /// Lets a kernel be scheduled before the one ahead of it ends, where it waits for it itself
  /// (programmatic dependent launch). The results are the same either way.
  bool programmaticEdges = true;
  /// Threads that compute one of LibTorch's records, for a plan with target cpu: 1 to
  /// kMaxIntraOpThreads. 0: as many as the host has set (at::get_num_threads). The host's setting
  /// stays as it is. Usage from Context::create for another number, and for a plan with target
  /// cuda.
  int threads = 0;
  /// Fills arena and outputs with 0xFF (NaN) before each run, so that a read of memory that nothing
  /// wrote shows. For tests of the memory plan.
  bool poisonArena = false;
};

/// What it took to make one bucket ready.
struct BucketStats {
  size_t graphNodes = 0;    ///< 0 with the stream executor.
  double captureMillis = 0; ///< Capture, instantiate and upload; not the warm-up runs.
};

/// Arena, static inputs and outputs, and captured graphs. One thread at a time; a second caller
/// gets an error. Several contexts may run at once, on one engine or on several. For target cpu
/// they touch no setting of LibTorch's that another thread sees, so the host's own calls of
/// LibTorch are not disturbed either. For target cuda LibTorch computes f32 products in f32: where
/// the host has turned TF32 on for products (allow_tf32, fp32_precision), that setting is off while
/// LibTorch launches such a record, one context at a time, and is set back exactly. A graph's
/// records are launched in Context::create alone.
class CGC_API Context final {
public:
  /// `engine` is borrowed and must outlive the context. All buckets are bound to memory here and,
  /// with the graph executor, warmed up and captured. OutOfMemory with the bill, before anything is
  /// taken, if arena, inputs and outputs do not fit.
  static Result<Context> create(const Engine &engine, ContextOptions options = {});
  static Result<Context> create(const Engine &&, ContextOptions = {}) = delete; // Would dangle.
  Context(Context &&) noexcept;
  Context &operator=(Context &&) noexcept;
  ~Context();

  /// Runs the bucket of `entry` whose input shapes are those of `inputs`, in the plan's order, and
  /// copies the results to `outputs`. Views may be on the host or, for target cuda, on the device;
  /// dense. For target cuda work is enqueued on `stream` (a cudaStream_t; null: a stream of the
  /// context's own, and the call returns when the results are there). Usage if a name, shape, dtype
  /// or count does not fit, or if an input on the host has an index outside its embedding
  /// (IoTensor::upperBound). Indices on the device are not looked at, as that would wait for them:
  /// cgc's kernels take the first or last row for one outside, and a LibTorch record stops the
  /// device with an assertion, after which the process cannot use it any more.
  Status run(std::string_view entry, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs, void *stream = nullptr);

  /// Microseconds that each record of a bucket takes, [record][run], in the plan's order, in `runs`
  /// runs on the inputs of the bucket's last run. Target cuda: between events inside a replayed
  /// graph, whose edges are all plain; event resolution is half a microsecond. Target cpu: on the
  /// host. Usage if there is no such entry or bucket.
  Result<std::vector<std::vector<double>>> profile(std::string_view entry, size_t bucket,
                                                   size_t runs);

  /// The bucket of `entry` that fits these inputs; Usage with what the plan offers if none does.
  Result<size_t> selectBucket(std::string_view entry, std::span<const TensorView> inputs) const;
  /// Usage if there is no such entry or bucket.
  Result<BucketStats> stats(std::string_view entry, size_t bucket) const;
  /// What a user may want to know and is no error, a line each: that the plan was tuned for another
  /// GPU, for example.
  const std::vector<std::string> &notes() const;

private:
  struct Impl;
  explicit Context(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace cgc
