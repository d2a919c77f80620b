// Trainer: a cgc_trainer.
#include "trainer.h"

#include "raise.h"
#include "structures.h"

#include <array>

namespace nb = nanobind;

namespace cgc_python {

namespace {

void *streamOf(uintptr_t stream) {
  return reinterpret_cast<void *>(stream);
}

} // namespace

Trainer::Trainer(const Plan &plan, const Communicator *communicator, const nb::kwargs &given) {
  cgc_trainer_options options = CGC_INIT(cgc_trainer_options);
  options.communicator = communicator ? communicator->get() : nullptr;
  Options named(given);
  std::vector<const char *> opLibraries;
  takeShared(named, options, opLibraries);
  named.take("device", options.device);
  named.take("prefix", options.prefix);
  named.finish();
  checkWithoutGil([&](cgc_error **error) {
    return cgc_trainer_create(plan.get(), &options, &trainer_, error);
  });
}

Trainer::~Trainer() {
  const nb::gil_scoped_release released;
  cgc_trainer_destroy(trainer_);
}

void Trainer::step(const std::vector<const Tensor *> &inputs, uintptr_t stream) {
  const std::vector<cgc_tensor> in = viewsOf(inputs);
  checkWithoutGil([&](cgc_error **error) {
    return cgc_trainer_step(trainer_, in.data(), in.size(), streamOf(stream), error);
  });
}

void Trainer::accumulate(const std::vector<const Tensor *> &inputs, uintptr_t stream) {
  const std::vector<cgc_tensor> in = viewsOf(inputs);
  checkWithoutGil([&](cgc_error **error) {
    return cgc_trainer_accumulate(trainer_, in.data(), in.size(), streamOf(stream), error);
  });
}

void Trainer::update(uintptr_t stream) {
  checkWithoutGil(
      [&](cgc_error **error) { return cgc_trainer_update(trainer_, streamOf(stream), error); });
}

nb::list Trainer::poll() {
  nb::list polled;
  std::array<cgc_step_result, 64> results;
  for (size_t count = results.size(); count == results.size();) {
    checkWithoutGil([&](cgc_error **error) {
      return cgc_trainer_poll(trainer_, results.data(), results.size(), &count, error);
    });
    for (size_t i = 0; i < count; ++i)
      polled.append(nb::make_tuple(results[i].step, results[i].loss));
  }
  return polled;
}

void Trainer::wait() {
  checkWithoutGil([&](cgc_error **error) { return cgc_trainer_wait(trainer_, error); });
}

void Trainer::evaluate(const std::vector<const Tensor *> &inputs,
                       const std::vector<const Tensor *> &outputs, uintptr_t stream) {
  const std::vector<cgc_tensor> in = viewsOf(inputs), out = viewsOf(outputs);
  checkWithoutGil([&](cgc_error **error) {
    return cgc_trainer_evaluate(trainer_, in.data(), in.size(), out.data(), out.size(),
                                streamOf(stream), error);
  });
}

void Trainer::set(const char *name, const std::vector<double> &values) {
  checkWithoutGil([&](cgc_error **error) {
    return cgc_trainer_set(trainer_, name, values.data(), values.size(), error);
  });
}

void Trainer::read(const char *name, const Tensor &to) {
  checkWithoutGil(
      [&](cgc_error **error) { return cgc_trainer_read(trainer_, name, &to.view(), error); });
}

void Trainer::write(const char *name, const Tensor &from) {
  checkWithoutGil(
      [&](cgc_error **error) { return cgc_trainer_write(trainer_, name, &from.view(), error); });
}

void Trainer::save(const char *folder) {
  checkWithoutGil([&](cgc_error **error) { return cgc_trainer_save(trainer_, folder, error); });
}

void Trainer::load(const char *folder, bool anyPlan) {
  checkWithoutGil([&](cgc_error **error) {
    return cgc_trainer_load(trainer_, folder, int32_t(anyPlan), error);
  });
}

void Trainer::loadModel(const char *path) {
  checkWithoutGil([&](cgc_error **error) { return cgc_trainer_load_model(trainer_, path, error); });
}

void Trainer::reset() {
  checkWithoutGil([&](cgc_error **error) { return cgc_trainer_reset(trainer_, error); });
}

nb::dict Trainer::memory() const {
  cgc_memory_report report = CGC_INIT(cgc_memory_report);
  checkWithoutGil(
      [&](cgc_error **error) { return cgc_trainer_get_memory(trainer_, &report, error); });
  return named(report);
}

} // namespace cgc_python
