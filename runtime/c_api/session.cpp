// The C API: sessions.
#include "runtime/c_api/arguments.h"
#include "runtime/c_api/handles.h"

using namespace cgc;
using namespace cgc::c_api;

static_assert(int(LogLevel::Error) == CGC_LOG_ERROR && int(LogLevel::Info) == CGC_LOG_INFO);

constexpr size_t kNumCounters =
#define CGC_SESSION_COUNTER(member, name, help) 1 +
#include "runtime/session/counters.def"
    0;
static_assert(sizeof(cgc_session_stats) == sizeof(size_t) + kNumCounters * sizeof(uint64_t),
              "cgc_session_stats has a member without a row in counters.def");

namespace {

/// The tensors of a call of a host function. Calls of up to eight tensors need no allocation.
class Tensors final {
public:
  explicit Tensors(std::span<const TensorView> views) : count_(views.size()) {
    if (count_ > kFew)
      many_.resize(count_);
    for (size_t i = 0; i < count_; ++i)
      data()[i] = tensorOf(views[i]);
  }
  cgc_tensor *data() { return count_ > kFew ? many_.data() : few_; }
  size_t count() const { return count_; }

private:
  static constexpr size_t kFew = 8;
  size_t count_;
  cgc_tensor few_[kFew];
  std::vector<cgc_tensor> many_;
};

/// Empty, which the engine refuses, if the caller's function is null.
HostFunction hostFunctionOf(const cgc_host_function &given) {
  if (!given.function)
    return {};
  return [given](std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                 void *stream) {
    Tensors in(inputs), out(outputs);
    const char *const why =
        given.function(given.user_data, in.data(), in.count(), out.data(), out.count(), stream);
    return why ? Status(Code::Failed, why) : Status::ok();
  };
}

Result<SessionOptions> optionsOf(const cgc_session_options *given) {
  CGC_ASSIGN_OR_RETURN(const cgc_session_options o, fromCaller(given, "cgc_session_options"));
  SessionOptions options;
  if (o.device_count > 0)
    CGC_TRY(require(o.devices, "devices"));
  if (o.op_library_count > 0)
    CGC_TRY(require(o.op_libraries, "op_libraries"));
  if (o.host_function_count > 0)
    CGC_TRY(require(o.host_functions, "host_functions"));
  options.devices.assign(o.devices, o.devices + o.device_count);
  options.contexts = orDefault<int>(o.contexts, options.contexts);
  options.maxBatch = orDefault(o.max_batch, options.maxBatch);
  options.maxWaiting = orDefault(o.max_waiting, options.maxWaiting);
  if (o.timeout_ms < 0)
    return Status(Code::Usage,
                  "a time-out of " + std::to_string(o.timeout_ms) + " ms; it must not be negative");
  if (o.timeout_ms > 0)
    options.timeout = std::chrono::milliseconds(o.timeout_ms);
  CGC_ASSIGN_OR_RETURN(options.engine.executor, executorOf(o.executor));
  options.engine.providerPath = text(o.aten_path);
  options.engine.cublasLtPath = text(o.cublaslt_path);
  options.engine.referencePath = text(o.reference_path);
  for (size_t i = 0; i < o.op_library_count; ++i)
    options.engine.opLibraries.push_back(text(o.op_libraries[i]));
  for (size_t i = 0; i < o.host_function_count; ++i) {
    const cgc_host_function &given = o.host_functions[i];
    options.engine.hostFunctions.push_back({text(given.name), hostFunctionOf(given)});
  }
  options.engine.memoryLimit = o.memory_limit;
  if (o.pool)
    options.engine.pool = o.pool->pool;
  options.capturedContexts = o.captured_contexts;
  options.seed = o.seed;
  if (o.address_sets != 0)
    options.context.addressSets = size_t(std::max(o.address_sets, 0));
  options.context.threads = o.threads;
  if (o.capture_on_first_use)
    options.context.capture = CaptureTime::OnFirstUse;
  options.fallbackModel = text(o.fallback_model);
  if (o.log)
    options.log = [log = o.log, user = o.log_user](LogLevel level, std::string_view message) {
      log(user, cgc_log_level(level), std::string(message).c_str());
    };
  return options;
}

} // namespace

cgc_code cgc_session_create(const cgc_plan *plan, const cgc_session_options *options,
                            cgc_session **session, cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(plan, "plan"));
    CGC_TRY(require(session, "session"));
    CGC_ASSIGN_OR_RETURN(SessionOptions converted, optionsOf(options));
    CGC_ASSIGN_OR_RETURN(Session created, Session::create(plan->plan, std::move(converted)));
    *session = new cgc_session{std::move(created)};
    return Status::ok();
  });
}

void cgc_session_destroy(cgc_session *session) {
  delete session;
}

cgc_code cgc_session_run(cgc_session *session, const char *entry, const cgc_tensor *inputs,
                         size_t input_count, const cgc_tensor *outputs, size_t output_count,
                         void *stream, cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(session, "session"));
    CGC_TRY(require(entry, "entry"));
    Views in, out;
    CGC_TRY(in.assign(inputs, input_count, "inputs"));
    CGC_TRY(out.assign(outputs, output_count, "outputs"));
    return session->session.run(entry, in.views(), out.views(), stream);
  });
}

cgc_code cgc_session_prepare(cgc_session *session, const char *entry, int64_t batch,
                             cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(session, "session"));
    CGC_TRY(require(entry, "entry"));
    return session->session.prepare(entry, batch);
  });
}

cgc_code cgc_session_update(cgc_session *session, const cgc_plan *plan, cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(session, "session"));
    CGC_TRY(require(plan, "plan"));
    return session->session.update(plan->plan);
  });
}

cgc_code cgc_session_swap_weights(cgc_session *session, const cgc_plan *plan, cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(session, "session"));
    CGC_TRY(require(plan, "plan"));
    return session->session.swapWeights(plan->plan);
  });
}

cgc_code cgc_session_get_stats(const cgc_session *session, cgc_session_stats *stats,
                               cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(session, "session"));
    const SessionStats counted = session->session.stats();
    cgc_session_stats result = {};
#define CGC_SESSION_COUNTER(member, name, help) result.name = counted.member;
#include "runtime/session/counters.def"
    return toCaller(result, stats, "cgc_session_stats");
  });
}

cgc_code cgc_session_metrics(const cgc_session *session, const char *name, char *text,
                             size_t capacity, size_t *size, cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(session, "session"));
    CGC_TRY(require(name, "name"));
    CGC_TRY(require(size, "size"));
    if (capacity > 0)
      CGC_TRY(require(text, "text"));
    const std::string metrics = session->session.metrics(name);
    *size = metrics.size();
    if (capacity > 0)
      text[metrics.copy(text, capacity - 1)] = '\0';
    return Status::ok();
  });
}

int cgc_session_healthy(const cgc_session *session) {
  if (!session)
    return 0;
  const Result<bool> healthy =
      noThrow([&]() -> Result<bool> { return session->session.healthy(); });
  return healthy.isOk() && *healthy;
}

cgc_code cgc_session_reset(cgc_session *session, cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(session, "session"));
    return session->session.reset();
  });
}

cgc_code cgc_session_get_memory(const cgc_session *session, cgc_memory_report *report,
                                cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(session, "session"));
    const MemoryReport m = session->session.memory();
    return toCaller({0, m.weights, m.arenas, m.io, m.graphs, m.workspace, m.peak, m.states}, report,
                    "cgc_memory_report");
  });
}
