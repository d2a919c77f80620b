// Session: a cgc_session that any thread may use, and that may be closed while others use it.
#include "session.h"

#include "raise.h"
#include "structures.h"

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

Session::Session(const Plan &plan, const nb::kwargs &given) {
  cgc_session_options options = CGC_INIT(cgc_session_options);
  Options named(given);
  std::vector<const char *> opLibraries;
  takeShared(named, options, opLibraries);
  std::vector<int32_t> devices;
  named.take("devices", devices);
  options.devices = devices.data();
  options.device_count = devices.size();
  named.take("contexts", options.contexts);
  named.take("max_batch", options.max_batch);
  named.take("max_waiting", options.max_waiting);
  named.take("timeout_ms", options.timeout_ms);
  named.take("capture_on_first_use", options.capture_on_first_use);
  named.take("captured_contexts", options.captured_contexts);
  named.take("seed", options.seed);
  named.take("fallback_model", options.fallback_model);
  named.take("log", log_);
  named.finish();
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
  const std::vector<cgc_tensor> in = viewsOf(inputs), out = viewsOf(outputs);
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
#define CGC_SESSION_COUNTER(member, name, help) named[#name] = stats.name;
#include "runtime/session/counters.def"
  return named;
}

nb::dict Session::memory() const {
  cgc_memory_report report = CGC_INIT(cgc_memory_report);
  use([&](cgc_session *session, cgc_error **error) {
    return cgc_session_get_memory(session, &report, error);
  });
  return named(report);
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
