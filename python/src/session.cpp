// Session: a cgc_session that any thread may use, and that may be closed while others use it.
#include "session.h"

#include "raise.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <mutex>
#include <utility>

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

/// Reads keyword arguments. A member that is not given keeps its default.
class Options final {
public:
  explicit Options(const nb::kwargs &given) : given_(given) {}

  template <class T> void take(const char *name, T &member) {
    if (!given_.contains(name))
      return;
    ++taken_;
    if (!nb::try_cast(given_[name], member))
      throw nb::type_error(("the option '" + std::string(name) + "' has the wrong type").c_str());
  }
  void take(const char *name, cgc_executor &member) {
    int number = member;
    take(name, number);
    member = cgc_executor(number);
  }
  /// The text lives as long as the reader.
  void take(const char *name, const char *&member) {
    std::string &text = texts_.emplace_back();
    take(name, text);
    member = text.c_str();
  }
  void takeAll(const char *name, std::vector<const char *> &member) {
    std::vector<std::string> all;
    take(name, all);
    for (std::string &text : all)
      member.push_back(texts_.emplace_back(std::move(text)).c_str());
  }
  /// TypeError if an option is given that nothing took.
  void finish() const {
    if (taken_ != given_.size())
      throw nb::type_error("an option of the session is unknown");
  }

private:
  const nb::kwargs &given_;
  size_t taken_ = 0;
  std::deque<std::string> texts_; ///< Whose elements stay where they are.
};

} // namespace

Session::Session(const Plan &plan, const nb::kwargs &given) {
  cgc_session_options options = CGC_INIT(cgc_session_options);
  Options named(given);
  named.take("executor", options.executor);
  std::vector<int32_t> devices;
  named.take("devices", devices);
  options.devices = devices.data();
  options.device_count = devices.size();
  named.take("contexts", options.contexts);
  named.take("threads", options.threads);
  named.take("max_batch", options.max_batch);
  named.take("max_waiting", options.max_waiting);
  named.take("timeout_ms", options.timeout_ms);
  named.take("capture_on_first_use", options.capture_on_first_use);
  named.take("memory_limit", options.memory_limit);
  named.take("captured_contexts", options.captured_contexts);
  named.take("seed", options.seed);
  named.take("aten_path", options.aten_path);
  named.take("cublaslt_path", options.cublaslt_path);
  named.take("reference_path", options.reference_path);
  named.take("fallback_model", options.fallback_model);
  std::vector<const char *> opLibraries;
  named.takeAll("op_libraries", opLibraries);
  options.op_libraries = opLibraries.data();
  options.op_library_count = opLibraries.size();
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
#define CGC_SESSION_COUNTER(member, name, help) named[#name] = stats.name;
#include "runtime/session/counters.def"
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
