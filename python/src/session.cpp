// Session: a cgc_session that any thread may use, and that may be closed while others use it.
#include "session.h"

#include "raise.h"

#include <mutex>

namespace nb = nanobind;

namespace cgc_python {

namespace {

/// Calls Python's log. The session calls this without the GIL.
void callLog(void *log, cgc_log_level level, const char *message) {
  const nb::gil_scoped_acquire acquired;
  try {
    nb::handle(static_cast<PyObject *>(log))(int(level), message);
  } catch (nb::python_error &error) {
    error.discard_as_unraisable("the log of a cgc.Session");
  }
}

} // namespace

Session::Session(const Plan &plan, const Options &given) : log_(given.log) {
  cgc_session_options options = CGC_INIT(cgc_session_options);
  options.executor = cgc_executor(given.executor);
  options.devices = given.devices.data();
  options.device_count = given.devices.size();
  options.contexts = given.contexts;
  options.threads = given.threads;
  options.max_batch = given.maxBatch;
  options.max_waiting = given.maxWaiting;
  options.timeout_ms = given.timeoutMs;
  options.capture_on_first_use = given.captureOnFirstUse;
  options.memory_limit = given.memoryLimit;
  options.captured_contexts = given.capturedContexts;
  options.seed = given.seed;
  options.aten_path = given.atenPath.c_str();
  options.cublaslt_path = given.cublasltPath.c_str();
  options.reference_path = given.referencePath.c_str();
  std::vector<const char *> opLibraries;
  for (const std::string &path : given.opLibraries)
    opLibraries.push_back(path.c_str());
  options.op_libraries = opLibraries.data();
  options.op_library_count = opLibraries.size();
  options.fallback_model = given.fallback.c_str();
  if (!log_.is_none()) {
    options.log = callLog;
    options.log_user = log_.ptr();
  }
  checkWithoutGil([&](cgc_error **error) {
    return cgc_session_create(plan.get(), &options, &session_, error);
  });
}

Session::~Session() {
  close();
}

template <class Call> void Session::use(const Call &call) const {
  cgc_error *error = nullptr;
  cgc_code code = CGC_OK;
  bool open = false;
  {
    const nb::gil_scoped_release released;
    // closing_ keeps new calls from holding up close().
    if (!closing_) {
      const std::shared_lock lock(using_);
      if (session_) {
        open = true;
        code = call(session_, &error);
      }
    }
  }
  if (!open)
    raise(CGC_USAGE, "the session is closed; load the plan again");
  check(code, error);
}

void Session::run(const char *entry, const std::vector<const Tensor *> &inputs,
                  const std::vector<const Tensor *> &outputs, uintptr_t stream) {
  std::vector<cgc_tensor> in, out;
  for (const Tensor *tensor : inputs)
    in.push_back(tensor->view());
  for (const Tensor *tensor : outputs)
    out.push_back(tensor->view());
  use([&](cgc_session *session, cgc_error **error) {
    return cgc_session_run(session, entry, in.data(), in.size(), out.data(), out.size(),
                           reinterpret_cast<void *>(stream), error);
  });
}

void Session::prepare(const char *entry, int64_t batch) {
  use([&](cgc_session *session, cgc_error **error) {
    return cgc_session_prepare(session, entry, batch, error);
  });
}

void Session::update(const Plan &plan) {
  use([&](cgc_session *session, cgc_error **error) {
    return cgc_session_update(session, plan.get(), error);
  });
}

void Session::swapWeights(const Plan &plan) {
  use([&](cgc_session *session, cgc_error **error) {
    return cgc_session_swap_weights(session, plan.get(), error);
  });
}

nb::dict Session::stats() const {
  cgc_session_stats stats = CGC_INIT(cgc_session_stats);
  use([&](cgc_session *session, cgc_error **error) {
    return cgc_session_get_stats(session, &stats, error);
  });
  nb::dict named;
  named["requests"] = stats.requests;
  named["failures"] = stats.failures;
  named["splits"] = stats.splits;
  named["bucket_runs"] = stats.bucket_runs;
  named["rows"] = stats.rows;
  named["padded_rows"] = stats.padded_rows;
  named["waits"] = stats.waits;
  named["wait_micros"] = stats.wait_micros;
  named["updates"] = stats.updates;
  named["fallbacks"] = stats.fallbacks;
  named["replays"] = stats.replays;
  named["captures"] = stats.captures;
  return named;
}

nb::dict Session::memory() const {
  cgc_memory_report report = CGC_INIT(cgc_memory_report);
  use([&](cgc_session *session, cgc_error **error) {
    return cgc_session_get_memory(session, &report, error);
  });
  nb::dict named;
  named["weights"] = report.weights;
  named["arenas"] = report.arenas;
  named["io"] = report.io;
  named["graphs"] = report.graphs;
  named["workspace"] = report.workspace;
  named["peak"] = report.peak;
  named["states"] = report.states;
  return named;
}

std::string Session::metrics(const char *name) const {
  std::string text;
  use([&](cgc_session *session, cgc_error **error) {
    // Counters grow between two calls, so that the text may become longer.
    for (size_t size = 4096;;) {
      text.resize(size + 1);
      const cgc_code code =
          cgc_session_metrics(session, name, text.data(), text.size(), &size, error);
      if (code != CGC_OK || size < text.size()) {
        text.resize(size);
        return code;
      }
    }
  });
  return text;
}

bool Session::healthy() const {
  bool healthy = false;
  use([&](cgc_session *session, cgc_error **) {
    healthy = cgc_session_healthy(session) == 1;
    return CGC_OK;
  });
  return healthy;
}

void Session::reset() {
  use([](cgc_session *session, cgc_error **error) { return cgc_session_reset(session, error); });
}

void Session::close() {
  closing_ = true;
  const nb::gil_scoped_release released;
  const std::unique_lock lock(using_);
  cgc_session_destroy(session_);
  session_ = nullptr;
}

void Session::clear() {
  close();
  log_.reset();
}

} // namespace cgc_python
