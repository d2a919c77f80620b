// The configuration of a model, config.pbtxt, as JSON.
#include "triton/config.h"
#include "triton/error.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace cgc_triton {

namespace {

using nlohmann::json;

[[noreturn]] void fail(const std::string &message) {
  throw Error(TRITONSERVER_ERROR_INVALID_ARG, message);
}

/// A type of elements, as Triton has it in its API and in configurations. By cgc_dtype.
struct Type final {
  TRITONSERVER_DataType type;
  const char *name;
};
constexpr Type kTypes[] = {
    {TRITONSERVER_TYPE_FP32, "TYPE_FP32"},   {TRITONSERVER_TYPE_FP16, "TYPE_FP16"},
    {TRITONSERVER_TYPE_BF16, "TYPE_BF16"},   {TRITONSERVER_TYPE_FP64, "TYPE_FP64"},
    {TRITONSERVER_TYPE_INT64, "TYPE_INT64"}, {TRITONSERVER_TYPE_INT32, "TYPE_INT32"},
    {TRITONSERVER_TYPE_INT16, "TYPE_INT16"}, {TRITONSERVER_TYPE_INT8, "TYPE_INT8"},
    {TRITONSERVER_TYPE_UINT8, "TYPE_UINT8"}, {TRITONSERVER_TYPE_BOOL, "TYPE_BOOL"}};
static_assert(std::size(kTypes) == CGC_BOOL + 1);

/// The list `key` of the configuration; empty if there is none.
json listOf(const json &config, const char *key) {
  return config.value(key, json::array());
}

json configOf(const Entry &entry, const std::vector<Tensor> &tensors, bool batched) {
  json list = json::array();
  for (const Tensor &tensor : tensors)
    list.push_back({{"name", tensor.name},
                    {"data_type", kTypes[tensor.dtype].name},
                    {"dims", entry.dims(tensor, batched)}});
  return list;
}

bool areCompatible(const Sizes &configured, const Sizes &dims) {
  return std::ranges::equal(configured, dims,
                            [](int64_t a, int64_t b) { return a == b || a == -1 || b == -1; });
}

/// Checks the configured tensors of one list. Those of `tensors` that are absent may be so if
/// `areOptional`.
void checkTensors(const json &list, const char *what, const Entry &entry,
                  const std::vector<Tensor> &tensors, bool batched, bool areOptional) {
  std::vector<std::string> absent;
  for (const Tensor &tensor : tensors)
    absent.push_back(tensor.name);
  for (const json &configured : list) {
    const std::string name = configured.at("name");
    const std::string object = "config.pbtxt: " + std::string(what) + " '" + name + "' ";
    const auto tensor = std::ranges::find(tensors, name, &Tensor::name);
    if (tensor == tensors.end())
      fail(object + "is none of entry '" + entry.name + "': remove it; without a list of " + what +
           "s, that of the plan holds");
    std::erase(absent, name);
    const Sizes dims = entry.dims(*tensor, batched);
    const Sizes own = configured.at("dims");
    const std::string type = configured.at("data_type");
    if (type != kTypes[tensor->dtype].name || !areCompatible(own, dims))
      fail(object + "has " + type + " " + textOf(own) + ", but the plan has " +
           kTypes[tensor->dtype].name + " " + textOf(dims) + ": correct it, or remove the list");
  }
  if (!absent.empty() && !areOptional)
    fail("config.pbtxt lacks " + std::string(what) + " '" + absent.front() + "' of entry '" +
         entry.name + "': add it, or leave the list out and let the server complete it");
}

} // namespace

Parameters parametersOf(const json &config) {
  Parameters parameters;
  const json given = config.value("parameters", json::object());
  for (const auto &[name, value] : given.items()) {
    const std::string text = value.value("string_value", "");
    if (name == "plan")
      parameters.plan = text;
    else if (name == "entry")
      parameters.entry = text;
    else if (name == "executor" && text == "reference")
      parameters.executor = CGC_REFERENCE;
    else if (name == "executor" && text != "graph")
      fail("config.pbtxt: parameter 'executor' is '" + text + "': use 'graph' or 'reference'");
    else if (name != "executor" && !name.starts_with("TRITON_")) // Those are Triton's own.
      fail("config.pbtxt has the unknown parameter '" + name +
           "': remove it; cgc takes plan, entry and executor");
  }
  return parameters;
}

void complete(json &config, const Entry &entry) {
  const bool listsInputs = !listOf(config, "input").empty();
  if (entry.canBatch() && maxBatchOf(config) == 0 && !listsInputs)
    config["max_batch_size"] = entry.batches().back();
  const int64_t maxBatch = maxBatchOf(config);
  if (!listsInputs)
    config["input"] = configOf(entry, entry.inputs, maxBatch > 0);
  if (listOf(config, "output").empty())
    config["output"] = configOf(entry, entry.outputs, maxBatch > 0);
  if (maxBatch > 0 && entry.canBatch() && !config.contains("dynamic_batching") &&
      !config.contains("sequence_batching")) {
    std::vector<int64_t> preferred = entry.batches();
    std::erase_if(preferred, [&](int64_t batch) { return batch > maxBatch; });
    config["dynamic_batching"] = {{"preferred_batch_size", preferred}};
  }
}

void checkAgainst(const json &config, const Entry &entry) {
  const int64_t maxBatch = maxBatchOf(config);
  if (maxBatch > 0 && !entry.canBatch())
    fail("config.pbtxt: max_batch_size is " + std::to_string(maxBatch) + ", but entry '" +
         entry.name +
         "' cannot be batched, as its rows depend on each other or a tensor has no batch (cgc "
         "inspect says which): remove max_batch_size");
  checkTensors(listOf(config, "input"), "input", entry, entry.inputs, maxBatch > 0, false);
  checkTensors(listOf(config, "output"), "output", entry, entry.outputs, maxBatch > 0, true);
}

int64_t maxBatchOf(const json &config) {
  return config.value("max_batch_size", int64_t(0));
}

Instances instancesOf(const json &config, bool onHost) {
  Instances instances;
  for (const json &group : listOf(config, "instance_group")) {
    const int32_t count = std::max(group.value("count", 1), 1);
    const auto gpus = group.value("gpus", std::vector<int32_t>());
    if (onHost)
      instances[kHost] += count * int32_t(std::max(gpus.size(), size_t(1)));
    else
      for (const int32_t gpu : gpus)
        instances[gpu] += count;
  }
  return instances;
}

TRITONSERVER_DataType typeOf(cgc_dtype dtype) {
  return kTypes[dtype].type;
}

json readConfig(TRITONBACKEND_Model *model) {
  TRITONSERVER_Message *message = nullptr;
  check(TRITONBACKEND_ModelConfig(model, 1, &message));
  const std::unique_ptr<TRITONSERVER_Message, Destroy<TRITONSERVER_MessageDelete>> owner(message);
  const char *text = nullptr;
  size_t size = 0;
  check(TRITONSERVER_MessageSerializeToJson(message, &text, &size));
  return json::parse(text, text + size);
}

void writeConfig(TRITONBACKEND_Model *model, const json &config) {
  const std::string text = config.dump();
  TRITONSERVER_Message *message = nullptr;
  check(TRITONSERVER_MessageNewFromSerializedJson(&message, text.data(), text.size()));
  const std::unique_ptr<TRITONSERVER_Message, Destroy<TRITONSERVER_MessageDelete>> owner(message);
  check(TRITONBACKEND_ModelSetConfig(model, 1, message));
}

} // namespace cgc_triton
