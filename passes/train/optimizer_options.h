// OptimizerOptions: the optimizer of a training step: its rule, numbers, groups and schedule.
#pragma once

#include "ir/module.h"
#include "passes/manager/pass_options.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>
#include <string>
#include <vector>

namespace cgc::passes {

enum class OptimizerRule : uint8_t { Sgd, Adam, AdamW };

/// The factor on the learning rate as a function of the step, from 1 on.
enum class LearningRateSchedule : uint8_t {
  Constant,
  Linear, ///< From 1 to `finalFactor` between the warm-up and `steps`.
  Cosine, ///< The same by half a cosine.
  Step,   ///< Times `stepFactor` after each `stepSize` steps.
};

/// Stands for parameters of fewer than two dimensions.
inline constexpr const char *kVectorsGlob = "@vectors";

/// A parameter group: parameters with their own hyperparameters.
struct ParameterGroup {
  /// Globs over paths of parameters (path_glob.h); `@vectors` stands for parameters of fewer than
  /// two dimensions.
  std::vector<std::string> globs;
  std::optional<double> weightDecay; ///< In place of the optimizer's.
  double lrScale = 1;                ///< Multiplies the learning rate.

  bool contains(llvm::StringRef path, const ir::TensorType &type) const;
};

/// Limits of a parameter after each update.
struct ParameterClamp {
  std::string path;
  double least = 0, most = 0;
};

/// As PyTorch's optimizers, with the defaults of these.
struct OptimizerOptions {
  OptimizerRule rule = OptimizerRule::Sgd;
  double lr = 1e-3;
  double momentum = 0, dampening = 0; ///< Of SGD.
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8; ///< Of Adam and AdamW.
  double weightDecay = 0;                        ///< AdamW: 0.01.
  /// A parameter belongs to the first group that contains it, others to one after all of these.
  std::vector<ParameterGroup> groups;
  double clipNorm = 0;  ///< Largest norm of all gradients together; 0: none.
  double clipValue = 0; ///< Largest magnitude of an element of a gradient; 0: none.
  LearningRateSchedule schedule = LearningRateSchedule::Constant;
  double warmup = 0;      ///< Steps in which the learning rate grows from 0, linearly.
  double steps = 0;       ///< The length of the schedule, warm-up included.
  double finalFactor = 0; ///< The factor at its end.
  double stepSize = 0, stepFactor = 0.1;
  std::vector<ParameterClamp> clamps;
  double averageDecay = 0;       ///< Of exponential moving averages of the parameters; 0: none.
  int64_t growthInterval = 2000; ///< Steps with finite gradients before a loss scale doubles.
  bool keepsGradients = false;   ///< The gradients stay outputs.
  bool copies = true;            ///< Keeps 16-bit copies of parameters that the step casts.

  /// The factor on the learning rate in `step`, from 1 on, as the step computes it.
  double factorAt(uint64_t step) const;

  /// Reads the options of the pass `optimize`. Usage if a value is wrong; the message calls the
  /// option what `spelling` returns for its name.
  static Result<OptimizerOptions>
  take(PassOptions &options,
       llvm::function_ref<std::string(llvm::StringRef)> spelling = spellingOfPass);
  /// The inverse of take(). Leaves out what is as in PyTorch, except for the rule and `lr`.
  std::vector<PassOption> toOptions() const;
  /// "option 'lr' of optimize".
  static std::string spellingOfPass(llvm::StringRef option);
};

} // namespace cgc::passes
