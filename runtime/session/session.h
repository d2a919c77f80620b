// Session: serves a plan to any number of threads, with batches of any size. The first class of the
// public C++ API of libcgc_runtime to use; Engine and Context lie beneath it.
#pragma once

#include "runtime/base/export.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/exec/engine.h"
#include "runtime/plan/plan_file.h"
#include "runtime/session/reservation.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cgc {

/// The largest values of SessionOptions::maxBatch, and of contexts and capturedContexts.
inline constexpr int64_t kMaxBatch = 1 << 20;
inline constexpr int kMaxContexts = 1024;

/// How much a message of a session matters: what it does, what a caller may want to change, or that
/// it can serve no longer.
enum class LogLevel { Info, Warning, Error };

/// Receives the messages of a session. Any thread may call it at any time, also several at once; it
/// must not call the session. The text lives as long as the call. Exceptions are ignored.
using LogSink = std::function<void(LogLevel level, std::string_view message)>;

struct SessionOptions {
  /// The GPUs, by index, without duplicates. Empty: EngineOptions::device. For a plan that runs on
  /// the host it must be empty.
  std::vector<int> devices = {};
  /// Contexts on each device, 1 to kMaxContexts: the number of requests that run on it at a time.
  /// Each has an arena and static buffers of its own and shares the weights.
  int contexts = 1;
  /// Further contexts on each device, for runs on streams that the caller captures. A capture holds
  /// one until the caller's graph and its executables are destroyed. They have arenas of their own
  /// and capture all buckets when they are created. 0 for a plan that runs on the host.
  int capturedContexts = 0;
  /// The largest batch of a request: 1 to kMaxBatch.
  int64_t maxBatch = 1 << 14;
  /// Requests that may wait for a context at a time. Others fail with Busy.
  size_t maxWaiting = 1024;
  /// The longest wait for a context, after which a request fails with Busy. Nothing: no limit.
  std::optional<std::chrono::milliseconds> timeout = {};
  /// The TorchScript file that the plan was compiled from. LibTorch then runs the requests that no
  /// bucket takes, such as images of another size; it needs libcgc_aten (EngineOptions::
  /// providerPath). The file is loaded to each device by create(), whose memory it takes beside the
  /// plan. Empty: such requests fail with Usage.
  std::string fallbackModel = {};
  /// The seed of a plan that draws random numbers. Context k of the session has the seed
  /// `seed` + k * 2^32, so that no two draw the same numbers. Requests are reproducible with one
  /// context; which context a request gets is not.
  int64_t seed = 0;
  /// Is told about captures, exchanges of the plan, and a lost device. Failed requests of each
  /// code, and requests that the fallback model runs, are told about when their number is a power
  /// of ten.
  LogSink log = {};
  EngineOptions engine = {};   ///< Of each device's engine. memoryLimit holds for each device.
  ContextOptions context = {}; ///< Of all contexts.
};

/// The number of values of Code.
inline constexpr size_t kNumCodes = size_t(Code::Busy) + 1;

/// The runs of the buckets of an entry that have the same inputs.
struct BucketCount {
  std::string entry;
  std::string inputs; ///< "image=f16[4,3,224,224], text=i64[4,77]"
  uint64_t runs = 0;
};

/// What a session has done since it was created. All counts only grow.
struct SessionStats {
#define CGC_SESSION_COUNTER(member, name, help) uint64_t member = 0;
#include "runtime/session/counters.def"
  std::array<uint64_t, kNumCodes> failuresByCode = {}; ///< Indexed by Code.
  /// The runs of each bucket, of all plans that the session has served, by entry and inputs.
  std::vector<BucketCount> buckets = {};
};

/// A plan on one or several devices, ready for requests. Thread-safe: any thread may call any
/// member at any time, except the destructor, which must not overlap other calls.
class CGC_API Session final {
public:
  /// Uploads the weights to each device and creates its contexts. Shares ownership of `plan`.
  /// Usage for options that do not fit; otherwise fails as Engine::create and Context::create do.
  static Result<Session> create(std::shared_ptr<const Plan> plan, SessionOptions options = {});
  /// Loads and verifies the plan file at `path`, then does the same.
  static Result<Session> load(const std::string &path, SessionOptions options = {});
  Session(Session &&) noexcept;
  Session &operator=(Session &&) noexcept;
  ~Session();

  /// Runs `entry` on `inputs`, in the plan's order, and copies the results to `outputs`. Views are
  /// dense, in host memory or, if the plan runs on GPUs, in device memory.
  ///
  /// The batch may have any size from 1 to SessionOptions::maxBatch if the plan says that the rows
  /// of the entry are independent (Entry::rows): the bucket of that size runs it, otherwise the
  /// buckets that take the least time together, the last of which may be padded with zeros.
  /// Otherwise the inputs must have the shapes of one of the buckets. With
  /// SessionOptions::fallbackModel, LibTorch runs every other request, with any shapes that the
  /// model takes; the sizes of the outputs must be those that the model returns.
  ///
  /// If `stream`, a cudaStream_t, is given, the work is enqueued on it and the call returns; the
  /// views must stay valid until that work is complete. Otherwise the call returns when the outputs
  /// are complete.
  ///
  /// Usage, before anything is enqueued, if the request does not fit: an unknown entry, a wrong
  /// number, shape, dtype or device of a view, an empty or too large batch, an index out of range
  /// (Context::run says when one in device memory fails a later call), or an output that overlaps
  /// an input or another output. Busy if it waited too long for a context or if too many requests
  /// wait. If the device fails, the outputs are undefined.
  ///
  /// If `stream` is being captured, the run becomes part of the caller's graph (Context::run). All
  /// runs of one capture use one of SessionOptions::capturedContexts and follow one another. The
  /// session and the memory of the views must outlive the caller's graph and its executables;
  /// replays of one graph must not overlap. The graph keeps the plan that serves requests now, with
  /// its weights, whatever update() does. Usage without such a context, Busy if graphs hold all.
  Status run(std::string_view entry, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs, void *stream = nullptr);

  /// Takes a context for the caller alone, who writes inputs and reads outputs where they are: of
  /// the smallest bucket of at least `batch` rows, or, if the rows are not independent, of the
  /// bucket of `batch` rows, which are dimension 0 of the first input if the plan does not know the
  /// batch dimension. Waits for a context as run() does, and for the end of the work before; other
  /// requests wait meanwhile if the session has no other context. `device` is the index of the GPU
  /// that must run it; else the least busy one does. Usage if there is no such entry, bucket or
  /// GPU, or if buckets of several sizes fit.
  Result<Reservation> reserve(std::string_view entry, int64_t batch,
                              std::optional<int> device = {});

  /// Captures, in all contexts, the buckets that a batch of `batch` rows takes, if the contexts
  /// capture on first use. For an entry without batch dimension, `batch` is ignored and all buckets
  /// are captured. Usage if there is no such entry or batch.
  Status prepare(std::string_view entry, int64_t batch);

  /// Serves later requests with `plan`. Its weights are uploaded and its buckets are captured while
  /// the session serves requests with the present plan; requests that have begun end with it. No
  /// request fails, and none waits for a capture unless contexts capture on first use. Until the
  /// call returns, both plans take memory. A plan that a reservation uses takes memory until that
  /// is destroyed; one in a graph of the caller until the first call of update(), swapWeights() or
  /// reset() after the graph is destroyed. Each entry of the present plan must be in `plan`, with
  /// equal names, dtypes and numbers of dimensions; else Usage. With a fallback model, also Usage
  /// if a weight has other values. If it fails, the present plan stays.
  Status update(std::shared_ptr<const Plan> plan);

  /// Does the same as update(), for a plan of the same model with other weights: all of its
  /// entries, buckets, records and weights are equal but for the bytes of weights. Otherwise Usage
  /// names the first difference. With a fallback model, Usage names a weight with other values,
  /// because the fallback model would keep the present ones.
  Status swapWeights(std::shared_ptr<const Plan> plan);

  /// The plan that serves requests now.
  std::shared_ptr<const Plan> plan() const;
  SessionStats stats() const;
  /// Counters and memory in the text format of Prometheus, with the label session="`name`".
  std::string metrics(std::string_view name) const;
  /// Whether no device was lost to an error that CUDA calls sticky. After one, every request fails
  /// with it. Calls no CUDA function.
  bool healthy() const;
  /// Builds engines and contexts anew for the same plan, as update() does. For a session that is
  /// not healthy; it fails if the driver still refuses the device, and the process must end then.
  Status reset();
  /// The memory of the plan that serves requests now, the sum over the devices. Its `peak` is since
  /// the session was created, and has both plans while they were exchanged.
  MemoryReport memory() const;

  struct Impl; ///< session_impl.h, which is not installed.

private:
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace cgc
