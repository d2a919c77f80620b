// Optimizer options: the texts of values, and the rules among them.
#include "passes/train/optimizer_options.h"

#include "passes/path_glob.h"
#include "support/did_you_mean.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

namespace cgc::passes {
namespace {

using Spelling = llvm::function_ref<std::string(llvm::StringRef)>;

constexpr std::string_view kBools[] = {"false", "true"};

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
  /// Reads the enumerator, or bool, that is one of `names`.
  template <class T>
  Status takeOneOf(llvm::StringRef name, llvm::ArrayRef<std::string_view> values, T &value) {
    const auto text = options_.take(name);
    if (!text)
      return Status::ok();
    const llvm::SmallVector<llvm::StringRef> names(values.begin(), values.end());
    const auto *const found = llvm::find(names, *text);
    if (found == names.end())
      return wrong(name, *text, "one of " + llvm::join(names, ", ") + didYouMean(*text, names));
    value = static_cast<T>(found - names.begin());
    return Status::ok();
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

/// Reads `PATH=MIN:MAX`.
Result<ParameterClamp> Reader::parseClamp(llvm::StringRef text) const {
  const auto [path, limits] = text.rsplit('=');
  const auto [min, max] = limits.split(':');
  ParameterClamp clamp{path.str()};
  if (path.empty() || max.empty())
    return wrong("clamp", text, "limits as PATH=MIN:MAX;PATH=...");
  CGC_ASSIGN_OR_RETURN(clamp.min, number("clamp", min, -HUGE_VAL));
  CGC_ASSIGN_OR_RETURN(clamp.max, number("clamp", max, -HUGE_VAL));
  if (clamp.min > clamp.max)
    return wrong("clamp", text, "a minimum that is not above the maximum");
  return clamp;
}

} // namespace

bool contains(const ParameterGroup &group, llvm::StringRef path, const ir::TensorType &type) {
  return llvm::any_of(group.globs, [&](const std::string &glob) {
    return glob == kVectorsGlob ? type.rank() < 2 : matchesGlob(glob, path);
  });
}

std::string spellingOfPass(llvm::StringRef option) {
  return "option '" + option.str() + "' of optimize";
}

Result<OptimizerOptions> takeOptimizer(PassOptions &options, Spelling spelling,
                                       std::optional<OptimizerOptions> base) {
  Reader reader(options, spelling);
  OptimizerRule rule = base ? base->rule : OptimizerRule::Sgd;
  CGC_TRY(reader.takeOneOf("rule", kOptimizerRules, rule));
  OptimizerOptions result = base ? *std::move(base) : OptimizerOptions::of(rule);
  result.rule = rule;
  for (const OptimizerNumber &number : kOptimizerNumbers)
    if (number.isOf(rule))
      CGC_TRY(reader.takeNumber(number.name, result.*number.value));
  if (rule == OptimizerRule::Sgd) {
    CGC_TRY(reader.takeOneOf("nesterov", kBools, result.nesterov));
    if (result.nesterov && (result.momentum == 0 || result.dampening != 0))
      return Status(Code::Usage, reader.spell("nesterov") + " needs a momentum and no dampening");
  } else {
    for (const auto &[name, beta] :
         {std::pair("beta1", result.beta1), std::pair("beta2", result.beta2)})
      if (beta >= 1)
        return Status(Code::Usage, reader.spell(name) + " has to be below 1");
  }
  if (const auto groups = reader.take("groups")) {
    result.groups.clear();
    for (llvm::StringRef text : partsOf(*groups, ';')) {
      CGC_ASSIGN_OR_RETURN(ParameterGroup group, reader.parseGroup(text));
      result.groups.push_back(std::move(group));
    }
  }
  CGC_TRY(reader.takeOneOf("schedule", kSchedules, result.schedule));
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
  if (const auto clamps = reader.take("clamp")) {
    result.clamps.clear();
    for (llvm::StringRef text : partsOf(*clamps, ';')) {
      CGC_ASSIGN_OR_RETURN(ParameterClamp clamp, reader.parseClamp(text));
      result.clamps.push_back(std::move(clamp));
    }
  }
  if (const auto interval = reader.take("growth-interval")) {
    uint32_t steps = 0;
    if (llvm::StringRef(*interval).getAsInteger(10, steps))
      return reader.wrong("growth-interval", *interval, "a number of steps");
    result.growthInterval = steps;
  }
  if (static_cast<float>(result.averageDecay) >= 1)
    return Status(Code::Usage,
                  reader.spell("ema") + ", the decay of averages, has to be below 1 in f32");
  CGC_TRY(reader.takeOneOf("keep-gradients", kBools, result.keepsGradients));
  CGC_TRY(reader.takeOneOf("copies", kBools, result.copies));
  return result;
}

std::vector<PassOption> toOptions(const OptimizerOptions &optimizer) {
  std::vector<PassOption> options;
  for (auto &[name, value] : optionTexts(optimizer))
    options.push_back({std::move(name), std::move(value)});
  return options;
}

} // namespace cgc::passes
