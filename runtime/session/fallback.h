// Fallback: runs the requests that no bucket of a plan takes by LibTorch, from the model's file.
#pragma once

#include "runtime/base/tensor_view.h"
#include "runtime/exec/engine.h"
#include "runtime/plan/op_provider.h"

#include <map>
#include <memory>
#include <span>
#include <string>

namespace cgc {

/// The model on each device of a session. Thread-safe.
class Fallback final {
public:
  Fallback() = default;
  Fallback(const Fallback &) = delete;
  Fallback &operator=(const Fallback &) = delete;
  /// Waits for the work of all runs.
  ~Fallback();

  /// Loads the TorchScript file `path` to each of `devices`, or to the host if they are empty, in
  /// the precision of `plan`. `engine` says where the provider is. InvalidFile for a bad file;
  /// Usage if the model has a method for no entry of `plan` or is another one; Device if LibTorch
  /// is missing.
  static Result<std::unique_ptr<Fallback>> create(const std::string &path, const PlanData &plan,
                                                  const std::vector<int> &devices,
                                                  const EngineOptions &engine);

  /// Runs the method of `entry` on views that have been checked. On GPU `device`, a device of the
  /// session, enqueues on `stream`; on the host (-1), runs with `threads` threads for each op, 0
  /// for the host's setting. Usage if the model has no such method, or if the outputs have other
  /// sizes than the results.
  Status run(int device, const Entry &entry, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs, void *stream, int threads);

private:
  struct Model {
    std::unique_ptr<OpProvider> own; ///< Null with EngineOptions::provider.
    OpProvider *provider = nullptr;
    std::unique_ptr<ScriptModel> script; ///< Destroyed before its provider.
  };
  std::map<int, Model> models_; ///< By device; -1 is the host.
};

/// Usage, naming a weight, if weights with the same name have other values in `next` than in
/// `present`: the fallback's file would have the old ones.
Status checkEqualWeights(const Plan &present, const Plan &next);

} // namespace cgc
