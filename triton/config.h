// The configuration of a model, config.pbtxt, as JSON.
#pragma once

#include "triton/entry.h"
#include "triton/triton_api.h"

#include <nlohmann/json_fwd.hpp>

#include <map>

namespace cgc_triton {

/// The parameters of config.pbtxt.
struct Parameters final {
  std::string plan = "model.cgplan"; ///< A file of the version's folder.
  std::string entry;                 ///< Empty: the only one.
  cgc_executor executor = CGC_GRAPH;
};
/// Throws an error for a parameter that is unknown or has a bad value.
Parameters parametersOf(const nlohmann::json &config);

/// Completes what `config` leaves out: inputs, outputs, the largest batch and dynamic batching.
void complete(nlohmann::json &config, const Entry &entry);
/// Throws an error if the inputs, outputs or the largest batch of `config` are not those of
/// `entry`.
void checkAgainst(const nlohmann::json &config, const Entry &entry);
/// 0: requests are not batched.
int64_t maxBatchOf(const nlohmann::json &config);

/// The number of instances on each GPU; on the host, by the index kHost.
using Instances = std::map<int32_t, int32_t>;
constexpr int32_t kHost = -1;
/// The instances of the instance groups, all on the host if `onHost`.
Instances instancesOf(const nlohmann::json &config, bool onHost);

/// Triton's type for elements of cgc.
TRITONSERVER_DataType typeOf(cgc_dtype dtype);

/// The configuration of a model.
nlohmann::json readConfig(TRITONBACKEND_Model *model);
void writeConfig(TRITONBACKEND_Model *model, const nlohmann::json &config);

} // namespace cgc_triton
