// Context::Impl: the memory, bound records and executors of a context's buckets, which Context and
// Session see.
#pragma once

#include "runtime/exec/address_sets.h"
#include "runtime/exec/branch_streams.h"
#include "runtime/exec/caller_capture.h"
#include "runtime/exec/engine_impl.h"
#include "runtime/exec/executors.h"
#include "runtime/exec/index_checks.h"
#include "runtime/exec/input_staging.h"
#include "runtime/exec/row_range.h"
#include "runtime/exec/split_executor.h"

#include <atomic>
#include <variant>

namespace cgc {

/// A bucket that is ready to run. It must not move: executors point to `records`.
struct BoundBucket {
  BucketMemory memory;
  std::vector<Buffer> parts; ///< Arena memory if the engine has separate buffers.
  std::vector<BoundRecord> records;
  /// For each input, the leading rows of its static buffer that may hold other values than zeros.
  std::vector<int64_t> usedRows;
  std::variant<std::monostate, StreamExecutor, GraphExecutor, SplitExecutor> executor;
  /// Null if the graph, if there is one, runs on the static buffers only.
  std::unique_ptr<AddressPatch> patch;
  std::unique_ptr<AddressSets> sets; ///< Null if `patch` is.
  IoAddresses wanted;                ///< Scratch memory of findWanted().
  /// A run waits for the checks of its inputs before its records, which change states or which an
  /// index out of range would stop the device in.
  bool waitsForChecks = false;

  /// Whether a run replays graphs.
  bool hasGraphs() const {
    return std::holds_alternative<GraphExecutor>(executor) ||
           std::holds_alternative<SplitExecutor>(executor);
  }
};

/// A run of a bucket on a caller's tensors, or on `rows` of them.
struct BucketCall {
  BoundBucket &bound;
  const Bucket &bucket;
  const std::optional<RowRange> &rows;
  std::span<const TensorView> inputs, outputs;
};

/// Memory that consists of blocks, of which each begins `pitch` bytes after the one before.
struct Block {
  std::byte *data = nullptr;
  DeviceKind device = DeviceKind::Cpu;
  uint64_t pitch = 0;
};

struct Context::Impl {
  Impl(Engine::Impl &engine, ContextOptions options) : engine(engine), options(options) {}
  ~Impl();

  Status create();
  /// Reserves memory for arena, inputs and outputs, and creates the arena.
  Status createArena();
  /// Gives all ranks the states of rank 0 that every rank holds, and waits.
  Status broadcastStates(Communicator &communicator);
  /// Copies a state of a shard from the rank that holds it to `view` of rank 0, or from there to
  /// that rank, and waits. All ranks make the call.
  Status moveState(Communicator &communicator, size_t index, const TensorView &view, bool toState);
  /// Whether the context captures records in parallel. Otherwise it runs them in order.
  bool runsBranches() const;
  /// Whether the engine has as many ranks as sizes of the bucket are made for.
  bool hasRanks(const Bucket &bucket) const;
  /// The most records of each detached branch of a bucket that it captures beside other records.
  DetachedCounts parallelDetached() const;
  /// The largest branch that the context captures in parallel; 0 if it runs records in order.
  uint32_t parallelBranches() const;
  /// Adds a note if the plan was tuned on another GPU.
  void noteOtherGpu();
  Status createStaging();
  /// Allocates the states; createBucket() binds their addresses.
  Status createStates();
  /// Gives each state its first value.
  Status initializeStates();
  /// Copies the state with this index from or to `view`.
  Status copyState(size_t index, const TensorView &view, bool toState, cudaStream_t callers);
  /// Context::readState() and writeState(), by index or by name, whose search takes time in
  /// proportion to the number of states.
  Status transferState(size_t index, const TensorView &view, bool toState,
                       cudaStream_t callers = nullptr);
  Status transferState(std::string_view name, const TensorView &view, bool toState,
                       cudaStream_t callers);
  /// The indices of an entry and its bucket. Usage if there is no such entry or bucket.
  Result<std::pair<size_t, size_t>> findBucket(std::string_view entry, size_t bucket) const;
  Status createBucket(const Bucket &bucket, BoundBucket &bound);
  /// Warms up the records of a bucket and captures them as one graph, or as a graph for each
  /// sequence of records between two host calls.
  Status captureGraph(const Bucket &bucket, BoundBucket &bound);
  Status captureParts(const Bucket &bucket, BoundBucket &bound);
  /// Allocates memory for each range of the arena that tensors of the bucket share
  /// (EngineOptions::separateBuffers).
  Status createParts(const Bucket &bucket, BoundBucket &bound);
  /// Binds and captures a bucket of an entry unless that is done.
  Status prepare(size_t entry, size_t bucket);
  /// prepare() for a caller. Usage if the context is busy, or if there is no such entry or bucket.
  Result<BoundBucket *> use(std::string_view entry, size_t bucket);
  /// The same for the context's only user, on whose thread the device is current.
  Result<BoundBucket *> prepared(std::string_view entry, size_t bucket);
  /// Runs buckets of one entry, one after another, on views that have been checked. Usage if the
  /// context is busy.
  Status run(size_t entry, std::span<const BucketRun> runs, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs, cudaStream_t callers);
  Status runBuckets(size_t entry, std::span<const BucketRun> runs,
                    std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                    cudaStream_t callers);
  Status enqueueBucket(const BucketCall &call, cudaStream_t on);
  /// Sets `bound.wanted` to the addresses of those tensors, or of their rows, that a graph could
  /// use where they are. Returns whether there are any.
  bool findWanted(const BucketCall &call) const;
  /// Copies the tensors that have the addresses of static buffers in `at`; all if it is empty.
  Status copyInputs(const BucketCall &call, const IoAddresses &at, cudaStream_t on);
  Status copyOutputs(const BucketCall &call, const IoAddresses &at, cudaStream_t on);
  /// Enqueues checks of the inputs that the caller has in device memory. Returns whether there are
  /// any.
  Result<bool> enqueueChecks(const BucketCall &call, const IoAddresses &at, cudaStream_t on);
  /// copyInputs() and enqueueChecks(), whose result the call waits for if the bucket says so. Usage
  /// for an index out of range.
  Status copyAndCheckInputs(const BucketCall &call, const IoAddresses &at, cudaStream_t on);
  /// Copies a caller's tensor, or its rows, to a static input buffer and clears the rows behind
  /// them that an earlier run used.
  Status copyIn(const BucketCall &call, size_t input, cudaStream_t on);
  Status copyOut(const BucketCall &call, size_t output, cudaStream_t on);
  /// Calls `profile` with a bucket whose records have plain edges, in its turn on the stream.
  Status profileBucket(std::string_view entry, size_t bucket,
                       const std::function<Status(BoundBucket &)> &profile);
  /// Calls `body`, which enqueues work on `on` that uses arena and static buffers, in its turn and
  /// after the last run.
  Status inTurn(cudaStream_t on, const std::function<Status()> &body);
  Status launch(BoundBucket &bound, cudaStream_t on);
  /// Fills arena and outputs if ContextOptions::poisonArena says so.
  Status poison(BoundBucket &bound, cudaStream_t on);

  /// Waits until the work of earlier runs is complete.
  void waitForLastRun() {
    const DeviceGuard guard(engine.device);
    arena->synchronize();
  }

  // context_capture.cpp
  /// Adds the runs to the graph that captures `callers`.
  Status runCaptured(size_t entry, std::span<const BucketRun> runs,
                     std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                     cudaStream_t callers);
  Status captureBucket(const BucketCall &call, cudaStream_t on);
  /// A copy of the graph on the addresses `at`, of those that are wanted. Null if none can be used.
  Result<CudaGraph> patchedGraph(BoundBucket &bound, IoAddresses &at) const;
  /// Usage if launches of the graphs by a caller could overlap runs of other contexts.
  Status checkLaunchedByCaller() const;
  Result<TensorView> staticBuffer(std::string_view entry, size_t bucket, size_t index,
                                  bool isInput);

  Libraries libraries() const {
    return {engine.provider,         engine.cublasLt.get(), engine.opLibraries,
            engine.references.get(), engine.hostFunctions,  engine.communicator.get(),
            engine.shardOwners};
  }
  /// The number of buckets that have been captured.
  size_t capturedBuckets() const;
  /// Whether the arena is that of the engine's pool.
  bool sharesArena() const { return engine.pool && !engine.separateBuffers && !options.ownArena; }
  /// Adds memory that the driver took for graphs to the reports.
  void countGraphs(uint64_t bytes) {
    if (bytes == 0) // As in nearly every run.
      return;
    counted.graphs += bytes;
    engine.memory().addDriver(bytes);
    engine.account->add({.graphs = bytes});
  }
  /// Calls `body`, which runs records, with ContextOptions::threads threads.
  Status withThreads(const std::function<Status()> &body);
  /// Copies `blocks` blocks of `width` bytes each.
  Status copy(const Block &to, const Block &from, uint64_t width, uint64_t blocks, cudaStream_t on);
  /// Sets `blocks` blocks of `width` bytes each to `value`.
  Status fill(const Block &to, int value, uint64_t width, uint64_t blocks, cudaStream_t on);
  Status fill(const Buffer &buffer, int value, cudaStream_t on) {
    return fill({buffer.data(), device, buffer.size()}, value, buffer.size(), 1, on);
  }

  Engine::Impl &engine;
  const ContextOptions options;
  const ExecutorKind executor = options.executor.value_or(engine.executor);
  const DeviceKind device = engine.runsOn; ///< Of all memory and records.
  uint64_t reserved = 0;                   ///< Bytes reserved in the engine's MemoryBudget.
  MemoryReport counted;                    ///< Its part of the engine's MemoryAccount.
  std::shared_ptr<Arena> arena;            ///< Its own, or that of the engine's pool.
  std::vector<Buffer> stateBuffers;        ///< One for all states, or one for each.
  /// The address of each state; null for one that another rank holds.
  std::vector<std::byte *> states;
  CudaStream stream;      ///< For warm-up, capture, and runs without a caller's stream.
  BranchStreams branches; ///< For warm-up and capture of parallel branches.
  std::unique_ptr<InputStaging> staging; ///< Null unless ContextOptions::copyAheadBytes.
  /// [entry][bucket]; null until prepare().
  std::vector<std::vector<std::unique_ptr<BoundBucket>>> buckets;
  std::vector<std::string> notes;
  IndexChecks checks;
  CaptureOrder captureOrder;
  std::atomic<bool> busy = false;
};

/// For Session, which runs rows of a batch.
Context::Impl &implOf(const Context &context);

} // namespace cgc
