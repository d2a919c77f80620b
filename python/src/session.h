// Session: a cgc_session that any thread may use, and that may be closed while others use it.
#pragma once

#include "plan.h"
#include "tensor.h"

#include <atomic>
#include <shared_mutex>
#include <string>
#include <vector>

namespace cgc_python {

/// cgc_session_options with owned values. An empty path has its default.
struct Options {
  int executor = 0;
  std::vector<int32_t> devices;
  int32_t contexts = 0;
  int32_t threads = 0;
  int64_t maxBatch = 0;
  size_t maxWaiting = 0;
  int64_t timeoutMs = 0;
  bool captureOnFirstUse = false;
  uint64_t memoryLimit = 0;
  int32_t capturedContexts = 0;
  int64_t seed = 0;
  std::string atenPath, cublasltPath, referencePath;
  std::vector<std::string> opLibraries;
  std::string fallback;
  nanobind::object log; ///< Called with a level, 0 to 2, and a message; or None.
};

/// Every member releases the GIL while the runtime works.
class Session final {
public:
  Session(const Plan &plan, const Options &options);
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;
  ~Session();

  /// `stream` is a cudaStream_t, or 0 for none.
  void run(const char *entry, const std::vector<const Tensor *> &inputs,
           const std::vector<const Tensor *> &outputs, uintptr_t stream);
  void prepare(const char *entry, int64_t batch);
  void update(const Plan &plan);
  void swapWeights(const Plan &plan);
  /// The members of cgc_session_stats and cgc_memory_report by name.
  nanobind::dict stats() const;
  nanobind::dict memory() const;
  std::string metrics(const char *name) const;
  bool healthy() const;
  void reset();
  /// Waits for calls that have begun, and destroys the session. Later calls fail with Usage.
  void close();
  bool closed() const { return closing_; }

  /// Options::log; null if there is none. Borrowed.
  PyObject *log() const { return log_.ptr(); }
  /// Closes the session and releases its log.
  void clear();

private:
  /// Runs `call(session, cgc_error **)` without the GIL, unless the session is closed.
  template <class Call> void use(const Call &call) const;

  std::atomic<bool> closing_ = false;
  mutable std::shared_mutex using_; ///< Shared by calls, exclusive to close().
  nanobind::object log_;            ///< The session calls it.
  cgc_session *session_ = nullptr;
};

} // namespace cgc_python
