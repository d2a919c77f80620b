// The C API: trainers.
#include "runtime/c_api/arguments.h"
#include "runtime/c_api/handles.h"

using namespace cgc;
using namespace cgc::c_api;

namespace {

Result<TrainerOptions> optionsOf(const cgc_trainer_options *given) {
  CGC_ASSIGN_OR_RETURN(const cgc_trainer_options o, fromCaller(given, "cgc_trainer_options"));
  if (o.op_library_count > 0)
    CGC_TRY(require(o.op_libraries, "op_libraries"));
  TrainerOptions options;
  CGC_ASSIGN_OR_RETURN(options.engine.executor, executorOf(o.executor));
  options.engine.device = o.device;
  options.engine.providerPath = text(o.aten_path);
  options.engine.cublasLtPath = text(o.cublaslt_path);
  options.engine.referencePath = text(o.reference_path);
  for (size_t i = 0; i < o.op_library_count; ++i)
    options.engine.opLibraries.push_back(text(o.op_libraries[i]));
  options.engine.memoryLimit = o.memory_limit;
  options.context.executor = options.engine.executor;
  options.context.threads = o.threads;
  options.stepsInFlight = orDefault(o.steps_in_flight, options.stepsInFlight);
  options.prefix = text(o.prefix);
  if (o.communicator)
    options.communicator = o.communicator->communicator;
  options.words = {"any_plan", "cgc_trainer_load_model", "another cgc_trainer_options::prefix"};
  return options;
}

/// "rank 1"; empty without other ranks.
std::string rankText(const Communicator *communicator) {
  return communicator && communicator->ranks() > 1 ? "rank " + std::to_string(communicator->rank())
                                                   : "";
}

/// The status of a trainer, whose errors name its rank.
Status ofRank(const std::string &rank, const Status &status) {
  return rank.empty() ? status : status.withContext(rank);
}

/// Runs `body` for a call of a trainer.
template <class Body>
cgc_code callTrainer(const cgc_trainer *trainer, cgc_error **error, const Body &body) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(trainer, "trainer"));
    return ofRank(trainer->rank, body());
  });
}

/// Runs `body`, which takes the view of `tensor`, for a call that names a state.
template <class Body>
cgc_code withState(const cgc_trainer *trainer, const char *name, const cgc_tensor *tensor,
                   cgc_error **error, const Body &body) {
  return callTrainer(trainer, error, [&]() -> Status {
    CGC_TRY(require(name, "name"));
    Views views;
    CGC_TRY(views.assign(tensor, 1, "tensor"));
    return body(views.views()[0]);
  });
}

} // namespace

cgc_code cgc_trainer_create(const cgc_plan *plan, const cgc_trainer_options *options,
                            cgc_trainer **trainer, cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(plan, "plan"));
    CGC_TRY(require(trainer, "trainer"));
    CGC_ASSIGN_OR_RETURN(TrainerOptions converted, optionsOf(options));
    const std::string rank = rankText(converted.communicator.get());
    Result<Trainer> created = Trainer::create(plan->plan, std::move(converted));
    CGC_TRY(ofRank(rank, created.status()));
    *trainer = new cgc_trainer{*std::move(created), rank, {}};
    return Status::ok();
  });
}

void cgc_trainer_destroy(cgc_trainer *trainer) {
  delete trainer;
}

cgc_code cgc_trainer_step(cgc_trainer *trainer, const cgc_tensor *inputs, size_t input_count,
                          void *stream, cgc_error **error) {
  return callTrainer(trainer, error, [&]() -> Status {
    Views in;
    CGC_TRY(in.assign(inputs, input_count, "inputs"));
    return trainer->trainer.step(in.views(), stream);
  });
}

cgc_code cgc_trainer_accumulate(cgc_trainer *trainer, const cgc_tensor *inputs, size_t input_count,
                                void *stream, cgc_error **error) {
  return callTrainer(trainer, error, [&]() -> Status {
    Views in;
    CGC_TRY(in.assign(inputs, input_count, "inputs"));
    return trainer->trainer.accumulate(in.views(), stream);
  });
}

cgc_code cgc_trainer_update(cgc_trainer *trainer, void *stream, cgc_error **error) {
  return callTrainer(trainer, error, [&]() -> Status { return trainer->trainer.update(stream); });
}

cgc_code cgc_trainer_poll(cgc_trainer *trainer, cgc_step_result *results, size_t capacity,
                          size_t *count, cgc_error **error) {
  return callTrainer(trainer, error, [&]() -> Status {
    CGC_TRY(require(count, "count"));
    if (capacity > 0)
      CGC_TRY(require(results, "results"));
    std::deque<cgc_step_result> &kept = trainer->results;
    if (kept.size() < capacity) { // The trainer keeps those for which there is no room.
      CGC_ASSIGN_OR_RETURN(const std::vector<StepResult> polled, trainer->trainer.poll());
      for (const StepResult &result : polled)
        kept.push_back({result.step, result.loss});
    }
    *count = std::min(capacity, kept.size());
    std::copy_n(kept.begin(), *count, results);
    kept.erase(kept.begin(), kept.begin() + ptrdiff_t(*count));
    return Status::ok();
  });
}

cgc_code cgc_trainer_wait(cgc_trainer *trainer, cgc_error **error) {
  return callTrainer(trainer, error, [&]() -> Status { return trainer->trainer.wait(); });
}

cgc_code cgc_trainer_evaluate(cgc_trainer *trainer, const cgc_tensor *inputs, size_t input_count,
                              const cgc_tensor *outputs, size_t output_count, void *stream,
                              cgc_error **error) {
  return callTrainer(trainer, error, [&]() -> Status {
    Views in, out;
    CGC_TRY(in.assign(inputs, input_count, "inputs"));
    CGC_TRY(out.assign(outputs, output_count, "outputs"));
    return trainer->trainer.evaluate(in.views(), out.views(), stream);
  });
}

cgc_code cgc_trainer_set(cgc_trainer *trainer, const char *name, const double *values, size_t count,
                         cgc_error **error) {
  return callTrainer(trainer, error, [&]() -> Status {
    CGC_TRY(require(name, "name"));
    if (count > 0)
      CGC_TRY(require(values, "values"));
    return trainer->trainer.set(name, {values, count});
  });
}

cgc_code cgc_trainer_read(cgc_trainer *trainer, const char *name, const cgc_tensor *tensor,
                          cgc_error **error) {
  return withState(trainer, name, tensor, error,
                   [&](const TensorView &to) { return trainer->trainer.read(name, to); });
}

cgc_code cgc_trainer_write(cgc_trainer *trainer, const char *name, const cgc_tensor *tensor,
                           cgc_error **error) {
  return withState(trainer, name, tensor, error,
                   [&](const TensorView &from) { return trainer->trainer.write(name, from); });
}

cgc_code cgc_trainer_save(cgc_trainer *trainer, const char *folder, cgc_error **error) {
  return callTrainer(trainer, error, [&]() -> Status {
    CGC_TRY(require(folder, "folder"));
    return trainer->trainer.save(folder);
  });
}

cgc_code cgc_trainer_load(cgc_trainer *trainer, const char *folder, int32_t any_plan,
                          cgc_error **error) {
  return callTrainer(trainer, error, [&]() -> Status {
    CGC_TRY(require(folder, "folder"));
    CGC_TRY(trainer->trainer.load(folder, {.anyPlan = any_plan != 0}).status());
    trainer->results.clear();
    return Status::ok();
  });
}

cgc_code cgc_trainer_load_model(cgc_trainer *trainer, const char *path, cgc_error **error) {
  return callTrainer(trainer, error, [&]() -> Status {
    CGC_TRY(require(path, "path"));
    return trainer->trainer.loadModel(path).status();
  });
}

cgc_code cgc_trainer_reset(cgc_trainer *trainer, cgc_error **error) {
  return callTrainer(trainer, error, [&]() -> Status {
    CGC_TRY(trainer->trainer.reset());
    trainer->results.clear();
    return Status::ok();
  });
}

uint64_t cgc_trainer_step_number(const cgc_trainer *trainer) {
  return trainer ? trainer->trainer.stepNumber() : 0;
}

uint64_t cgc_trainer_micro_batches(const cgc_trainer *trainer) {
  return trainer ? trainer->trainer.microBatches() : 0;
}

uint64_t cgc_trainer_non_finite(const cgc_trainer *trainer) {
  return trainer ? trainer->trainer.nonFinite() : 0;
}

cgc_code cgc_trainer_get_memory(const cgc_trainer *trainer, cgc_memory_report *report,
                                cgc_error **error) {
  return callTrainer(trainer, error, [&]() -> Status {
    const MemoryReport m = trainer->trainer.memory();
    return toCaller({0, m.weights, m.arenas, m.io, m.graphs, m.workspace, m.peak, m.states}, report,
                    "cgc_memory_report");
  });
}
