// Optimizer flags: definitions of the options, and their text for the pass `optimize`.
#include "tools/cgc/train/optimizer_flags.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace cgc::tool {

CLI::Option *addOptimizerOptions(CLI::App &command, OptimizerFlags &flags, CLI::Option *with) {
  const auto add = [&](const char *name, auto &value, const char *text, const char *type) {
    return command.add_option(name, value, text)->type_name(type)->needs(with)->group("Training");
  };
  CLI::Option *const optimizer =
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
  add("--clamp", flags.clamps, "Limits of parameters after each update", "PATH=LEAST:MOST;...");
  return optimizer;
}

std::string optimizerText(const OptimizerFlags &flags) {
  const auto number = [](const char *name, double value) {
    return value == 0 ? "" : fmt::format(",{}={}", name, value);
  };
  std::string text = "rule=" + flags.optimizer;
  if (!flags.schedule.empty())
    text += ",schedule=" + flags.schedule;
  std::ranges::replace(text, '_', '-'); // weight_decay, as PyTorch has it.
  if (!flags.groups.empty())
    text += ",groups=" + flags.groups;
  if (!flags.clamps.empty())
    text += ",clamp=" + flags.clamps;
  return text + number("clip-norm", flags.clipNorm) + number("clip-value", flags.clipValue);
}

} // namespace cgc::tool
