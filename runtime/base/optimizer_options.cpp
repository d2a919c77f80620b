// OptimizerOptions: the factor of a schedule, and the text of options.
#include "runtime/base/optimizer_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numbers>

namespace cgc {
namespace {

/// The shortest text that parses back to the same number.
std::string numberText(double value) {
  char buffer[32];
  return {buffer, std::to_chars(std::begin(buffer), std::end(buffer), value).ptr};
}

/// The text of each item, separated by `separator`.
template <class T, class F>
std::string joined(const std::vector<T> &items, char separator, F &&text) {
  std::string all;
  for (const T &item : items)
    all += (&item == items.data() ? "" : std::string(1, separator)) + text(item);
  return all;
}

std::string groupText(const ParameterGroup &group) {
  std::string text = joined(group.globs, '|', [](const std::string &glob) { return glob; });
  if (group.weightDecay)
    text += ":weight_decay=" + numberText(*group.weightDecay);
  if (group.lrScale != 1 || !group.weightDecay)
    text += ":lr_scale=" + numberText(group.lrScale);
  return text;
}

std::string clampText(const ParameterClamp &clamp) {
  return clamp.path + "=" + numberText(clamp.min) + ":" + numberText(clamp.max);
}

} // namespace

OptimizerOptions OptimizerOptions::of(OptimizerRule rule) {
  return {.rule = rule, .weightDecay = rule == OptimizerRule::AdamW ? 0.01 : 0};
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

std::vector<std::pair<std::string, std::string>> optionTexts(const OptimizerOptions &options) {
  const OptimizerOptions defaults = OptimizerOptions::of(options.rule);
  std::vector<std::pair<std::string, std::string>> texts;
  texts.emplace_back("rule", kOptimizerRules[static_cast<size_t>(options.rule)]);
  for (const OptimizerNumber &number : kOptimizerNumbers)
    if (number.name == "lr" || options.*number.value != defaults.*number.value)
      texts.emplace_back(number.name, numberText(options.*number.value));
  if (options.nesterov)
    texts.emplace_back("nesterov", "true");
  if (!options.groups.empty())
    texts.emplace_back("groups", joined(options.groups, ';', groupText));
  if (options.schedule != defaults.schedule)
    texts.emplace_back("schedule", kSchedules[static_cast<size_t>(options.schedule)]);
  if (!options.clamps.empty())
    texts.emplace_back("clamp", joined(options.clamps, ';', clampText));
  if (options.growthInterval != defaults.growthInterval)
    texts.emplace_back("growth-interval", std::to_string(options.growthInterval));
  if (options.keepsGradients)
    texts.emplace_back("keep-gradients", "true");
  if (!options.copies)
    texts.emplace_back("copies", "false");
  return texts;
}

} // namespace cgc
