// Fallback: loads the model by the ATen provider of each device.
#include "runtime/session/fallback.h"

#include "runtime/exec/cuda_support.h"
#include "runtime/exec/provider.h"

#include <algorithm>

namespace cgc {

Result<std::unique_ptr<Fallback>> Fallback::create(const std::string &path, const PlanData &plan,
                                                   const std::vector<int> &devices,
                                                   const EngineOptions &engine) {
  auto fallback = std::make_unique<Fallback>();
  const std::string what = "the fallback model '" + path + "'";
  const bool onHost = plan.target == DeviceKind::Cpu || engine.executor == ExecutorKind::Reference;
  for (const int device : onHost ? std::vector<int>{-1} : devices) {
    Model &model = fallback->models_[device];
    if (!engine.provider) {
      auto loaded = loadProvider(engine.providerPath);
      if (!loaded.isOk())
        return loaded.status().withContext(what);
      model.own = *std::move(loaded);
    }
    model.provider = engine.provider ? engine.provider : model.own.get();
    CGC_TRY(
        model.provider->initialize(onHost ? DeviceKind::Cpu : DeviceKind::Cuda, std::max(device, 0))
            .withContext(what));
    auto script = model.provider->loadScript(path, plan.precision);
    if (!script.isOk())
      return script.status().withContext("the fallback model");
    model.script = *std::move(script);
    // An entry group is no method of the model.
    if (std::ranges::none_of(
            plan.entries, [&](const Entry &entry) { return model.script->hasMethod(entry.name); }))
      return Status(Code::Usage, what + " has no method '" + plan.entries[0].name +
                                     "', nor another entry of the plan; give the file that the "
                                     "plan was compiled from");
    if (Status same = model.script->checkPlan(plan); !same.isOk())
      return Status(same.code(), what + ": " + same.message() +
                                     "; give the file that the plan was compiled from");
  }
  return fallback;
}

Fallback::~Fallback() {
  // Work on a stream of a caller reads the model's weights.
  for (const auto &[device, model] : models_)
    if (device >= 0) {
      const DeviceGuard guard(device);
      (void)cudaDeviceSynchronize();
    }
}

Status Fallback::run(int device, const Entry &entry, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs, void *stream, int threads) {
  Model &model = models_.at(device);
  const auto body = [&] { return model.script->run(entry, inputs, outputs); };
  if (!model.script->hasMethod(entry.name))
    return {Code::Usage, "no bucket of entry '" + entry.name +
                             "' takes the request, and the fallback model has no such method; add "
                             "the shapes to the plan"};
  const Status status = device < 0 && threads > 0 ? model.provider->withThreads(threads, body)
                                                  : model.provider->onStream(stream, body);
  return status.withContext("entry '" + entry.name + "' of the fallback model");
}

Status checkEqualWeights(const Plan &present, const Plan &next) {
  const std::vector<Weight> &weights = next.data().weights;
  for (size_t i = 0; i < present.data().weights.size(); ++i) {
    const Weight &weight = present.data().weights[i];
    const auto bytes = present.weightBytes(i);
    bool isThere = false, isEqual = false; // Weights that depend on sizes may share a name.
    for (size_t j = 0; j < weights.size() && !isEqual; ++j)
      if (weights[j].name == weight.name && weights[j].dtype == weight.dtype &&
          weights[j].sizes == weight.sizes) {
        isThere = true;
        isEqual = std::ranges::equal(bytes, next.weightBytes(j));
      }
    if (isThere && !isEqual)
      return {Code::Usage, "weight '" + weight.name +
                               "' has other values than in the plan that the session serves, and "
                               "the session has a fallback model, which would keep the old ones; "
                               "create a new session for the new weights"};
  }
  return Status::ok();
}

} // namespace cgc
