// OptimizerOptions: reads the options of `optimize` from text.
#include "passes/train/optimizer_options.h"

#include "passes/path_glob.h"
#include "support/did_you_mean.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cgc::passes {
namespace {

using Spelling = llvm::function_ref<std::string(llvm::StringRef)>;

/// A reader of the values of options.
class Reader {
public:
  Reader(PassOptions &options, Spelling spelling) : options_(options), spelling_(spelling) {}

  Status wrong(llvm::StringRef name, llvm::StringRef value, llvm::StringRef expected) const {
    return {Code::Usage, spelling_(name) + " is '" + value.str() + "'; it takes " + expected.str()};
  }
  std::string spell(llvm::StringRef name) const { return spelling_(name); }

  /// Reads a number that is finite in f32 and at least `least`.
  Result<double> number(llvm::StringRef name, llvm::StringRef text, double least = 0) const {
    double value = 0;
    if (text.getAsDouble(value) || !std::isfinite(static_cast<float>(value)) || value < least)
      return wrong(name, text,
                   least == 0 ? "a finite f32 number that is not negative" : "a finite f32 number");
    return value;
  }

  Status takeNumber(llvm::StringRef name, double &value) {
    if (const auto text = options_.take(name)) {
      CGC_ASSIGN_OR_RETURN(value, number(name, *text));
    }
    return Status::ok();
  }
  /// Returns one of `values`, or `byDefault` if the option is not given.
  Result<std::string> takeOneOf(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> values,
                                const char *byDefault) {
    const std::string text = options_.take(name).value_or(byDefault);
    if (llvm::is_contained(values, text))
      return text;
    return wrong(name, text, "one of " + llvm::join(values, ", ") + didYouMean(text, values));
  }
  std::optional<std::string> take(llvm::StringRef name) { return options_.take(name); }

  Result<ParameterGroup> parseGroup(llvm::StringRef text) const;
  Result<ParameterClamp> parseClamp(llvm::StringRef text) const;

private:
  PassOptions &options_;
  Spelling spelling_;
};

/// The parts of `text` between separators. Empty parts are kept, and refused by the callers.
llvm::SmallVector<llvm::StringRef, 4> partsOf(llvm::StringRef text, char separator) {
  llvm::SmallVector<llvm::StringRef, 4> parts;
  text.split(parts, separator);
  return parts;
}

/// Reads `GLOB|GLOB:weight_decay=0:lr_scale=0.1`.
Result<ParameterGroup> Reader::parseGroup(llvm::StringRef text) const {
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
Result<ParameterClamp> Reader::parseClamp(llvm::StringRef text) const {
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

std::string OptimizerOptions::spellingOfPass(llvm::StringRef option) {
  return "option '" + option.str() + "' of optimize";
}

Result<OptimizerOptions> OptimizerOptions::take(PassOptions &options, Spelling spelling) {
  Reader reader(options, spelling);
  OptimizerOptions result;
  CGC_ASSIGN_OR_RETURN(const std::string rule,
                       reader.takeOneOf("rule", {"sgd", "adam", "adamw"}, "sgd"));
  result.rule = llvm::StringSwitch<OptimizerRule>(rule)
                    .Case("adam", OptimizerRule::Adam)
                    .Case("adamw", OptimizerRule::AdamW)
                    .Default(OptimizerRule::Sgd);
  if (result.rule == OptimizerRule::AdamW)
    result.weightDecay = 0.01;
  const bool isSgd = result.rule == OptimizerRule::Sgd;
  const auto takeNumber = [&](llvm::StringRef name, double &value) {
    return reader.takeNumber(name, value);
  };
  CGC_TRY(takeNumber("lr", result.lr));
  CGC_TRY(takeNumber("weight-decay", result.weightDecay));
  if (isSgd) {
    CGC_TRY(takeNumber("momentum", result.momentum));
    CGC_TRY(takeNumber("dampening", result.dampening));
    CGC_ASSIGN_OR_RETURN(const std::string nesterov,
                         reader.takeOneOf("nesterov", {"true", "false"}, "false"));
    result.nesterov = nesterov == "true";
    if (result.nesterov && (result.momentum == 0 || result.dampening != 0))
      return Status(Code::Usage, reader.spell("nesterov") + " needs a momentum and no dampening");
  } else {
    CGC_TRY(takeNumber("beta1", result.beta1));
    CGC_TRY(takeNumber("beta2", result.beta2));
    CGC_TRY(takeNumber("eps", result.eps));
    for (const auto &[name, beta] :
         {std::pair("beta1", result.beta1), std::pair("beta2", result.beta2)})
      if (beta >= 1)
        return Status(Code::Usage, reader.spell(name) + " has to be below 1");
  }
  if (const auto groups = reader.take("groups"))
    for (llvm::StringRef text : partsOf(*groups, ';')) {
      CGC_ASSIGN_OR_RETURN(ParameterGroup group, reader.parseGroup(text));
      result.groups.push_back(std::move(group));
    }
  CGC_TRY(takeNumber("clip-norm", result.clipNorm));
  CGC_TRY(takeNumber("clip-value", result.clipValue));
  CGC_ASSIGN_OR_RETURN(
      const std::string schedule,
      reader.takeOneOf("schedule", {"constant", "linear", "cosine", "step"}, "constant"));
  result.schedule = llvm::StringSwitch<LearningRateSchedule>(schedule)
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
    return Status(Code::Usage, reader.spell("steps") +
                                   " has to be more than the warmup for a linear or cosine "
                                   "schedule");
  if (result.schedule == LearningRateSchedule::Step && result.stepSize < 1)
    return Status(Code::Usage,
                  reader.spell("step-size") + " has to be at least 1 for a step schedule");
  if (result.schedule == LearningRateSchedule::Step && result.stepFactor <= 0)
    return Status(Code::Usage, reader.spell("step-factor") + " has to be above 0");
  if (const auto clamps = reader.take("clamp"))
    for (llvm::StringRef text : partsOf(*clamps, ';')) {
      CGC_ASSIGN_OR_RETURN(ParameterClamp clamp, reader.parseClamp(text));
      result.clamps.push_back(std::move(clamp));
    }
  if (const auto interval = reader.take("growth-interval")) {
    uint32_t steps = 0;
    if (llvm::StringRef(*interval).getAsInteger(10, steps))
      return reader.wrong("growth-interval", *interval, "a number of steps");
    result.growthInterval = steps;
  }
  CGC_TRY(takeNumber("ema", result.averageDecay));
  if (static_cast<float>(result.averageDecay) >= 1)
    return Status(Code::Usage,
                  reader.spell("ema") + ", the decay of averages, has to be below 1 in f32");
  CGC_ASSIGN_OR_RETURN(const std::string keeps,
                       reader.takeOneOf("keep-gradients", {"true", "false"}, "false"));
  result.keepsGradients = keeps == "true";
  CGC_ASSIGN_OR_RETURN(const std::string copies,
                       reader.takeOneOf("copies", {"true", "false"}, "true"));
  result.copies = copies == "true";
  return result;
}

} // namespace cgc::passes
