// A model of Triton: a plan and the session that all of its instances use.
#include "triton/model.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace cgc_triton {

namespace {

std::string subjectOf(TRITONBACKEND_Model *model) {
  return "model '" + std::string(get(TRITONBACKEND_ModelName, model)) + "', version " +
         std::to_string(get(TRITONBACKEND_ModelVersion, model)) + ": ";
}

Plan loadPlan(TRITONBACKEND_Model *model, const std::string &file) {
  TRITONBACKEND_ArtifactType type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  const char *folder = nullptr;
  check(TRITONBACKEND_ModelRepository(model, &type, &folder));
  const std::filesystem::path path =
      std::filesystem::path(folder) / std::to_string(get(TRITONBACKEND_ModelVersion, model)) / file;
  if (!std::filesystem::exists(path))
    throw Error(TRITONSERVER_ERROR_NOT_FOUND,
                "there is no plan " + path.string() +
                    ": put the plan of cgc compile there, or name another file of its folder in "
                    "the parameter 'plan' of config.pbtxt");
  cgc_plan *plan = nullptr;
  callCgc(cgc_plan_load, path.c_str(), &plan);
  return Plan(plan);
}

/// Receives the messages of a session; `name` is that of the model.
void writeLog(void *name, cgc_log_level level, const char *message) {
  static_assert(int(CGC_LOG_INFO) == TRITONSERVER_LOG_INFO &&
                int(CGC_LOG_WARNING) == TRITONSERVER_LOG_WARN &&
                int(CGC_LOG_ERROR) == TRITONSERVER_LOG_ERROR);
  const std::string text = *static_cast<const std::string *>(name) + message;
  TRITONSERVER_ErrorDelete(
      TRITONSERVER_LogMessage(TRITONSERVER_LogLevel(level), "cgc", 0, text.c_str()));
}

} // namespace

Model::Model(TRITONBACKEND_Model *model) : model_(model), name_(subjectOf(model)) {
  nlohmann::json config = readConfig(model);
  parameters_ = parametersOf(config);
  plan_ = loadPlan(model, parameters_.plan);
  entry_ = findEntry(plan_.get(), parameters_.entry);
  if (get(TRITONBACKEND_ModelAutoCompleteConfig, model)) {
    complete(config, entry_);
    writeConfig(model, config);
  }
  checkAgainst(config, entry_);
  maxBatch_ = maxBatchOf(config);
}

std::shared_ptr<cgc_session> Model::session() const {
  const std::lock_guard lock(mutex_);
  return session_;
}

int32_t Model::deviceOf(TRITONBACKEND_ModelInstance *instance) const {
  if (parameters_.executor == CGC_REFERENCE || !cgc_plan_is_for_gpu(plan_.get()))
    return kHost;
  if (get(TRITONBACKEND_ModelInstanceKind, instance) == TRITONSERVER_INSTANCEGROUPKIND_CPU)
    throw Error(TRITONSERVER_ERROR_INVALID_ARG,
                "the plan is for GPUs, but instance '" +
                    std::string(get(TRITONBACKEND_ModelInstanceName, instance)) +
                    "' has KIND_CPU, as on a server without a GPU: set instance_group [{ kind: "
                    "KIND_GPU }], compile the plan with --target cpu, or, for tests, set the "
                    "parameter 'executor' to 'reference'");
  return get(TRITONBACKEND_ModelInstanceDeviceId, instance);
}

int32_t Model::addInstance(TRITONBACKEND_ModelInstance *instance) {
  const int32_t device = deviceOf(instance);
  const std::lock_guard lock(mutex_);
  if (!session_)
    room_ = instancesOf(readConfig(model_), device == kHost);
  const bool fits = ++instances_[device] <= room_[device];
  try {
    room_[device] = std::max(room_[device], instances_[device]);
    if (!session_ || !fits)
      session_ = createSession();
  } catch (...) {
    --instances_[device];
    throw;
  }
  return device;
}

void Model::removeInstance(int32_t device) {
  const std::lock_guard lock(mutex_);
  --instances_[device];
}

std::shared_ptr<cgc_session> Model::createSession() const {
  cgc_session_options options = CGC_INIT(cgc_session_options);
  std::vector<int32_t> devices;
  for (const auto &[device, count] : room_) {
    if (device != kHost)
      devices.push_back(device);
    options.contexts = std::max(options.contexts, count);
  }
  options.executor = parameters_.executor;
  options.devices = devices.data();
  options.device_count = devices.size();
  options.max_batch = maxBatch_;
  options.log = writeLog;
  options.log_user = const_cast<std::string *>(&name_);
  cgc_session *session = nullptr;
  callCgc(cgc_session_create, plan_.get(), &options, &session);
  return {session, cgc_session_destroy};
}

} // namespace cgc_triton
