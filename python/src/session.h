// Session: a cgc_session that any thread may use, and that may be closed while others use it.
#pragma once

#include "plan.h"
#include "tensor.h"

#include <atomic>
#include <shared_mutex>
#include <string>
#include <vector>

namespace cgc_python {

/// Every member releases the GIL while the runtime works.
class Session final {
public:
  /// `options` has members of cgc_session_options by name; those that it lacks have their defaults.
  /// `log`, or None, is called with a level, 0 to 2, and a message.
  Session(const Plan &plan, const nanobind::kwargs &options);
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

  /// The log; null if there is none. Borrowed.
  PyObject *log() const { return log_.ptr(); }
  /// Closes the session and releases its log.
  void clear();

private:
  /// Runs `call(session, cgc_error **)` without the GIL, unless the session is closed.
  template <class Call> void use(const Call &call) const;

  std::atomic<bool> closing_ = false;
  mutable std::shared_mutex using_;         ///< Shared by calls, exclusive to close().
  nanobind::object log_ = nanobind::none(); ///< The session calls it.
  cgc_session *session_ = nullptr;
};

} // namespace cgc_python
