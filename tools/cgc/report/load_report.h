// load_report: the figures of a load as text and JSON.
#pragma once

#include "tools/cgc/load/load.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace cgc::tool {

/// The figures of a load while weights were swapped.
struct SwapFigures {
  std::string plan; ///< The file with the other weights.
  double every = 0; ///< Seconds between two swaps.
  uint64_t swaps = 0;
  LoadFigures load;
};

/// Everything that `cgc bench` measures under load.
struct LoadReport {
  std::string plan, target, executor, tensors;
  int clients = 0, contexts = 0, devices = 0;
  double rate = 0; ///< 0: a closed loop.
  std::vector<RequestKind> kinds;
  LoadFigures load;
  BackToBack backToBack; ///< No requests if none succeeded under load.
  std::optional<SwapFigures> swap;
};

/// Rows per second under load over those back to back; 0 if there are none back to back.
double shareOfBackToBack(const LoadReport &report);
/// The fields of the JSON object `load`.
nlohmann::ordered_json loadJson(const LoadReport &report);
/// Tables and definitions.
std::string loadText(const LoadReport &report);

} // namespace cgc::tool
