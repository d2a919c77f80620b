// Optimizer flags: definitions of the options, and an optimizer from them and as text.
#include "tools/cgc/train/optimizer_flags.h"

#include "passes/train/optimizer_options.h"
#include "support/did_you_mean.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>

namespace cgc::tool {

void addOptimizerOptions(CLI::App &command, OptimizerFlags &flags, CLI::Option *with) {
  const auto add = [&](const char *name, auto &value, const char *text, const char *type) {
    command.add_option(name, value, text)->type_name(type)->needs(with)->group("Training");
  };
  add("--optimizer", flags.optimizer,
      "sgd[,lr=,momentum=,dampening=,nesterov=true,weight_decay=], adam or adamw[,lr=,beta1=,"
      "beta2=,eps=,weight_decay=]; defaults as in PyTorch",
      "RULE[,NAME=VALUE]");
  add("--groups", flags.groups,
      "Parameter groups with their own hyperparameters; @vectors are those of fewer than two "
      "dimensions",
      "GLOB|GLOB:weight_decay=X[:lr_scale=Y];...");
  add("--clip-norm", flags.clipNorm, "Largest norm of all gradients together", "X");
  add("--clip-value", flags.clipValue, "Largest magnitude of an element of a gradient", "X");
  add("--schedule", flags.schedule,
      "Factor on the learning rate: constant, linear, cosine (steps=, final_factor=) or step "
      "(step_size=, step_factor=), each with warmup=",
      "NAME[,NAME=VALUE]");
  add("--clamp", flags.clamps, "Limits of parameters after each update", "PATH=MIN:MAX;...");
}

namespace {

using Names = std::vector<llvm::StringRef>;

/// The names in --schedule.
const Names kScheduleNames = {"steps", "final_factor", "step_size", "step_factor", "warmup"};

/// The names in --optimizer with this rule.
Names optimizerNames(llvm::StringRef rule) {
  if (rule == "sgd")
    return {"lr", "momentum", "dampening", "nesterov", "weight_decay", "growth_interval"};
  return {"lr", "beta1", "beta2", "eps", "weight_decay", "growth_interval"};
}

/// Adds `text`, one of `words` followed by NAME=VALUE with each of `names` at most once, as options
/// of `optimize`, which calls the word `option`. Usage if it is anything else.
Status addList(const char *flag, llvm::StringRef text, const char *option, const Names &words,
               const Names &names, std::vector<passes::PassOption> &options) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',');
  const llvm::StringRef word = parts.front();
  if (!llvm::is_contained(words, word))
    return {Code::Usage,
            fmt::format("{} begins with one of {}, not with '{}'{}", flag, llvm::join(words, ", "),
                        word.str(), didYouMean(word.lower(), words))};
  options.push_back({option, word.str()});
  llvm::StringSet<> seen;
  for (const llvm::StringRef part : llvm::drop_begin(parts)) {
    const auto [name, value] = part.split('=');
    if (!part.contains('=') || !llvm::is_contained(names, name))
      return {Code::Usage, fmt::format("{} {} does not take '{}'; it takes NAME=VALUE with the "
                                       "names {}",
                                       flag, word.str(), part.str(), llvm::join(names, ", "))};
    if (!seen.insert(name).second)
      return {Code::Usage, fmt::format("{} has '{}' twice; give it once", flag, name.str())};
    std::string ofPass = name.str();
    std::ranges::replace(ofPass, '_', '-');
    options.push_back({std::move(ofPass), value.str()});
  }
  return Status::ok();
}

/// What the command line calls an option of the pass `optimize`.
std::string spelling(llvm::StringRef option) {
  if (option == "rule")
    return "--optimizer";
  for (const llvm::StringRef flag :
       {"groups", "schedule", "clamp", "clip-norm", "clip-value", "ema"})
    if (option == flag)
      return "--" + option.str();
  std::string name = option.str();
  std::ranges::replace(name, '-', '_');
  return fmt::format("{} of {}", name,
                     llvm::is_contained(kScheduleNames, name) ? "--schedule" : "--optimizer");
}

} // namespace

Result<OptimizerOptions> parseOptimizer(const OptimizerFlags &flags,
                                        std::optional<OptimizerOptions> base) {
  // Commas and braces would end the value in the text of a pass.
  for (const auto &[flag, text, how] :
       {std::tuple("--groups", flags.groups,
                   "globs are separated by '|', hyperparameters by ':' and groups by ';'"),
        std::tuple("--clamp", flags.clamps, "limits are PATH=MIN:MAX, separated by ';'")})
    if (const size_t at = text.find_first_of(",{}"); at != std::string::npos)
      return Status(Code::Usage, fmt::format("{} '{}' has a '{}': {}", flag, text, text[at], how));
  std::vector<passes::PassOption> options;
  if (const llvm::StringRef optimizer = flags.optimizer; !optimizer.empty())
    CGC_TRY(addList("--optimizer", optimizer, "rule", {"sgd", "adam", "adamw"},
                    optimizerNames(optimizer.split(',').first), options));
  if (!flags.schedule.empty())
    CGC_TRY(addList("--schedule", flags.schedule, "schedule",
                    {"constant", "linear", "cosine", "step"}, kScheduleNames, options));
  for (const auto &[name, text] : {std::pair("groups", flags.groups), {"clamp", flags.clamps}})
    if (!text.empty())
      options.push_back({name, text});
  for (const auto &[name, number] : {std::pair("clip-norm", flags.clipNorm),
                                     {"clip-value", flags.clipValue},
                                     {"ema", flags.ema}})
    if (number)
      options.push_back({name, fmt::format("{}", *number)});
  passes::PassOptions read("optimize", std::move(options));
  return passes::takeOptimizer(read, spelling, std::move(base));
}

std::string findDifference(const OptimizerOptions &a, const OptimizerOptions &b) {
  if (a.rule != b.rule)
    return spelling("rule");
  for (const OptimizerNumber &number : kOptimizerNumbers)
    if (a.*number.value != b.*number.value)
      return spelling(number.name);
  for (const auto &[option, isSame] : {std::pair("nesterov", a.nesterov == b.nesterov),
                                       {"growth-interval", a.growthInterval == b.growthInterval},
                                       {"groups", a.groups == b.groups},
                                       {"schedule", a.schedule == b.schedule},
                                       {"clamp", a.clamps == b.clamps}})
    if (!isSame)
      return spelling(option);
  return "";
}

std::string commandText(const TrainingStep &step) {
  std::string ofOptimizer, ofSchedule, others;
  for (auto [name, value] : optionTexts(step.optimizer)) {
    if (name == "keep-gradients" || name == "copies") // No settings of the optimizer.
      continue;
    const std::string flag = spelling(name);
    std::ranges::replace(name, '-', '_');
    if (flag.ends_with(" of --optimizer"))
      ofOptimizer += fmt::format(",{}={}", name, value);
    else if (flag.ends_with(" of --schedule"))
      ofSchedule += fmt::format(",{}={}", name, value);
    else if (flag != "--optimizer" && flag != "--schedule")
      others += fmt::format(" {} {}", flag, value);
  }
  std::string text = "--train " + step.method;
  if (step.loss != 0)
    text += fmt::format(" --loss {}", step.loss);
  if (step.autocast)
    text += fmt::format(" --autocast {}", *step.autocast == DType::F16 ? "fp16" : "bf16");
  text += fmt::format(" --optimizer {}{}",
                      kOptimizerRules[static_cast<size_t>(step.optimizer.rule)], ofOptimizer);
  if (step.optimizer.schedule != LearningRateSchedule::Constant || !ofSchedule.empty())
    text += fmt::format(" --schedule {}{}",
                        kSchedules[static_cast<size_t>(step.optimizer.schedule)], ofSchedule);
  return text + others;
}

} // namespace cgc::tool
