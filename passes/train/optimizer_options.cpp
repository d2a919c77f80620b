// OptimizerOptions: reads the options of `optimize` from text.
#include "passes/train/optimizer_options.h"

#include "passes/path_glob.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cgc::passes {
namespace {

Status wrong(llvm::StringRef name, llvm::StringRef value, llvm::StringRef expected) {
  return {Code::Usage, "option '" + name.str() + "' of optimize is '" + value.str() +
                           "'; it takes " + expected.str()};
}

/// Reads a number that is finite in f32 and at least `least`.
Result<double> number(llvm::StringRef name, llvm::StringRef text, double least = 0) {
  double value = 0;
  if (text.getAsDouble(value) || !std::isfinite(static_cast<float>(value)) || value < least)
    return wrong(name, text,
                 least == 0 ? "a finite f32 number that is not negative" : "a finite f32 number");
  return value;
}

/// The parts of `text` between separators. Empty parts are kept, and refused by the callers.
llvm::SmallVector<llvm::StringRef, 4> partsOf(llvm::StringRef text, char separator) {
  llvm::SmallVector<llvm::StringRef, 4> parts;
  text.split(parts, separator);
  return parts;
}

/// Reads `GLOB|GLOB:weight_decay=0:lr_scale=0.1`.
Result<ParameterGroup> parseGroup(llvm::StringRef text) {
  ParameterGroup group;
  const auto parts = partsOf(text, ':');
  for (llvm::StringRef glob : partsOf(parts.front(), '|'))
    group.globs.push_back(glob.str());
  if (parts.size() < 2 || llvm::is_contained(group.globs, ""))
    return wrong("groups", text, "groups as GLOB|GLOB:weight_decay=0:lr_scale=0.1;GLOB:...");
  for (llvm::StringRef setting : llvm::drop_begin(parts)) {
    const auto [name, value] = setting.split('=');
    if (name == "weight_decay") {
      CGC_ASSIGN_OR_RETURN(group.weightDecay, number("groups", value));
    } else if (name == "lr_scale") {
      CGC_ASSIGN_OR_RETURN(group.lrScale, number("groups", value));
    } else {
      return wrong("groups", text, "for each group weight_decay and lr_scale");
    }
  }
  return group;
}

/// Reads `PATH=LEAST:MOST`.
Result<ParameterClamp> parseClamp(llvm::StringRef text) {
  const auto [path, limits] = text.rsplit('=');
  const auto [least, most] = limits.split(':');
  ParameterClamp clamp{path.str()};
  if (path.empty() || most.empty())
    return wrong("clamp", text, "limits as PATH=LEAST:MOST;PATH=...");
  CGC_ASSIGN_OR_RETURN(clamp.least, number("clamp", least, -HUGE_VAL));
  CGC_ASSIGN_OR_RETURN(clamp.most, number("clamp", most, -HUGE_VAL));
  if (clamp.least > clamp.most)
    return wrong("clamp", text, "a least value that is not above the most");
  return clamp;
}

} // namespace

bool ParameterGroup::contains(llvm::StringRef path, const ir::TensorType &type) const {
  return llvm::any_of(globs, [&](const std::string &glob) {
    return glob == kVectorsGlob ? type.rank() < 2 : matchesGlob(glob, path);
  });
}

double OptimizerOptions::factorAt(uint64_t step) const {
  const auto done = static_cast<double>(step) - 1;
  if (done < warmup)
    return (done + 1) / warmup;
  const auto progress = [&] { return std::clamp((done - warmup) / (steps - warmup), 0.0, 1.0); };
  switch (schedule) {
  case LearningRateSchedule::Constant:
    return 1;
  case LearningRateSchedule::Linear:
    return 1 + progress() * (finalFactor - 1);
  case LearningRateSchedule::Cosine:
    return finalFactor + (1 - finalFactor) * (1 + std::cos(progress() * std::numbers::pi)) / 2;
  case LearningRateSchedule::Step:
    return std::pow(stepFactor, std::floor(done / stepSize));
  }
  return 1;
}

Result<OptimizerOptions> OptimizerOptions::take(PassOptions &options) {
  OptimizerOptions result;
  CGC_ASSIGN_OR_RETURN(const auto rule, options.takeOneOf("rule", {"sgd", "adam", "adamw"}));
  result.rule = llvm::StringSwitch<OptimizerRule>(rule.value_or("sgd"))
                    .Case("adam", OptimizerRule::Adam)
                    .Case("adamw", OptimizerRule::AdamW)
                    .Default(OptimizerRule::Sgd);
  if (result.rule == OptimizerRule::AdamW)
    result.weightDecay = 0.01;
  const bool isSgd = result.rule == OptimizerRule::Sgd;
  const auto takeNumber = [&](llvm::StringRef name, double &value) -> Status {
    if (const auto text = options.take(name)) {
      CGC_ASSIGN_OR_RETURN(value, number(name, *text));
    }
    return Status::ok();
  };
  CGC_TRY(takeNumber("lr", result.lr));
  CGC_TRY(takeNumber("weight-decay", result.weightDecay));
  if (isSgd) {
    CGC_TRY(takeNumber("momentum", result.momentum));
    CGC_TRY(takeNumber("dampening", result.dampening));
    CGC_ASSIGN_OR_RETURN(const auto nesterov, options.takeOneOf("nesterov", {"true", "false"}));
    result.nesterov = nesterov == "true";
    if (result.nesterov && (result.momentum == 0 || result.dampening != 0))
      return Status(Code::Usage, "option 'nesterov' of optimize needs a momentum and no dampening");
  } else {
    CGC_TRY(takeNumber("beta1", result.beta1));
    CGC_TRY(takeNumber("beta2", result.beta2));
    CGC_TRY(takeNumber("eps", result.eps));
    if (result.beta1 >= 1 || result.beta2 >= 1)
      return Status(Code::Usage, "options 'beta1' and 'beta2' of optimize have to be below 1");
  }
  if (const auto groups = options.take("groups"))
    for (llvm::StringRef text : partsOf(*groups, ';')) {
      CGC_ASSIGN_OR_RETURN(ParameterGroup group, parseGroup(text));
      result.groups.push_back(std::move(group));
    }
  CGC_TRY(takeNumber("clip-norm", result.clipNorm));
  CGC_TRY(takeNumber("clip-value", result.clipValue));
  CGC_ASSIGN_OR_RETURN(const auto schedule,
                       options.takeOneOf("schedule", {"constant", "linear", "cosine", "step"}));
  result.schedule = llvm::StringSwitch<LearningRateSchedule>(schedule.value_or("constant"))
                        .Case("linear", LearningRateSchedule::Linear)
                        .Case("cosine", LearningRateSchedule::Cosine)
                        .Case("step", LearningRateSchedule::Step)
                        .Default(LearningRateSchedule::Constant);
  CGC_TRY(takeNumber("warmup", result.warmup));
  CGC_TRY(takeNumber("steps", result.steps));
  CGC_TRY(takeNumber("final-factor", result.finalFactor));
  CGC_TRY(takeNumber("step-size", result.stepSize));
  CGC_TRY(takeNumber("step-factor", result.stepFactor));
  const bool isCurve = result.schedule == LearningRateSchedule::Linear ||
                       result.schedule == LearningRateSchedule::Cosine;
  if (isCurve && result.steps <= result.warmup)
    return Status(
        Code::Usage,
        "option 'steps' of optimize has to be more than 'warmup' for a linear or cosine schedule");
  if (result.schedule == LearningRateSchedule::Step && result.stepSize < 1)
    return Status(Code::Usage,
                  "option 'step-size' of optimize has to be at least 1 for a step schedule");
  if (result.schedule == LearningRateSchedule::Step && result.stepFactor <= 0)
    return Status(Code::Usage, "option 'step-factor' of optimize has to be above 0");
  if (const auto clamps = options.take("clamp"))
    for (llvm::StringRef text : partsOf(*clamps, ';')) {
      CGC_ASSIGN_OR_RETURN(ParameterClamp clamp, parseClamp(text));
      result.clamps.push_back(std::move(clamp));
    }
  CGC_ASSIGN_OR_RETURN(const auto interval, options.takeNumber("growth-interval"));
  result.growthInterval = static_cast<int64_t>(interval.value_or(result.growthInterval));
  CGC_TRY(takeNumber("ema", result.averageDecay));
  if (static_cast<float>(result.averageDecay) >= 1)
    return Status(Code::Usage,
                  "option 'ema' of optimize, the decay of averages, has to be below 1 in f32");
  CGC_ASSIGN_OR_RETURN(const auto keeps, options.takeOneOf("keep-gradients", {"true", "false"}));
  result.keepsGradients = keeps == "true";
  CGC_ASSIGN_OR_RETURN(const auto copies, options.takeOneOf("copies", {"true", "false"}));
  result.copies = copies != "false";
  return result;
}

} // namespace cgc::passes
