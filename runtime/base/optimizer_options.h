// OptimizerOptions: the optimizer of a training step: its rule, numbers, groups and schedule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cgc {

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
  /// Globs over paths of parameters; `@vectors` stands for parameters of fewer than two dimensions.
  std::vector<std::string> globs;
  std::optional<double> weightDecay; ///< In place of the optimizer's.
  double lrScale = 1;                ///< Multiplies the learning rate.
  bool operator==(const ParameterGroup &) const = default;
};

/// Limits of a parameter after each update.
struct ParameterClamp {
  std::string path;
  double min = 0, max = 0;
  bool operator==(const ParameterClamp &) const = default;
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
  std::vector<ParameterGroup> groups = {};
  double clipNorm = 0;  ///< Largest norm of all gradients together; 0: none.
  double clipValue = 0; ///< Largest magnitude of an element of a gradient; 0: none.
  LearningRateSchedule schedule = LearningRateSchedule::Constant;
  double warmup = 0;      ///< Steps in which the learning rate grows from 0, linearly.
  double steps = 0;       ///< The length of the schedule, warm-up included.
  double finalFactor = 0; ///< The factor at its end.
  double stepSize = 0, stepFactor = 0.1;
  std::vector<ParameterClamp> clamps = {};
  double averageDecay = 0;       ///< Of exponential moving averages of the parameters; 0: none.
  int64_t growthInterval = 2000; ///< Steps with finite gradients before a loss scale doubles.
  bool keepsGradients = false;   ///< The gradients stay outputs.
  bool copies = true;            ///< Keeps 16-bit copies of parameters that the step casts.
  bool operator==(const OptimizerOptions &) const = default;

  /// The optimizer of this rule with PyTorch's defaults.
  static OptimizerOptions of(OptimizerRule rule);
  /// The factor on the learning rate in `step`, from 1 on, as the step computes it.
  double factorAt(uint64_t step) const;
};

// The names of rules and schedules, in the order of the enumerators.
inline constexpr std::string_view kOptimizerRules[] = {"sgd", "adam", "adamw"},
                                  kSchedules[] = {"constant", "linear", "cosine", "step"};

/// A number of an optimizer, by the name of its option of the pass `optimize`.
struct OptimizerNumber {
  std::string_view name;
  double OptimizerOptions::*value;
  enum { OfAll, OfSgd, OfAdam } rules = OfAll;

  bool isOf(OptimizerRule rule) const {
    return rules == OfAll || (rules == OfSgd) == (rule == OptimizerRule::Sgd);
  }
};
/// All numbers. A plan file has them in this order.
inline constexpr OptimizerNumber kOptimizerNumbers[] = {
    {"lr", &OptimizerOptions::lr},
    {"weight-decay", &OptimizerOptions::weightDecay},
    {"momentum", &OptimizerOptions::momentum, OptimizerNumber::OfSgd},
    {"dampening", &OptimizerOptions::dampening, OptimizerNumber::OfSgd},
    {"beta1", &OptimizerOptions::beta1, OptimizerNumber::OfAdam},
    {"beta2", &OptimizerOptions::beta2, OptimizerNumber::OfAdam},
    {"eps", &OptimizerOptions::eps, OptimizerNumber::OfAdam},
    {"clip-norm", &OptimizerOptions::clipNorm},
    {"clip-value", &OptimizerOptions::clipValue},
    {"warmup", &OptimizerOptions::warmup},
    {"steps", &OptimizerOptions::steps},
    {"final-factor", &OptimizerOptions::finalFactor},
    {"step-size", &OptimizerOptions::stepSize},
    {"step-factor", &OptimizerOptions::stepFactor},
    {"ema", &OptimizerOptions::averageDecay},
};

/// The names and values of the options of the pass `optimize`: the rule, `lr`, and what is not as
/// in PyTorch.
std::vector<std::pair<std::string, std::string>> optionTexts(const OptimizerOptions &options);

} // namespace cgc
