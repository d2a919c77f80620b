// OptimizePass: learning rate, clipping, the update of each group, and the states that it writes.
#include "passes/train/optimize.h"

#include "passes/manager/registered_pass.h"
#include "passes/path_glob.h"
#include "passes/preconditions.h"
#include "passes/train/differentiate.h"
#include "passes/train/loss_scale.h"
#include "passes/train/parameter_copies.h"
#include "runtime/base/training_names.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <numbers>

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::OpKind;
using ir::Value;

/// A trained state with its gradient, and its value after the step.
struct Trained {
  std::string path;
  Value *value, *gradient, *updated = nullptr;
  std::optional<DType> copy = {}; ///< In which the update also writes it.
};

class Optimizer : StepBuilder {
public:
  Optimizer(ir::Graph &graph, const OptimizerOptions &options)
      : StepBuilder(graph), graph_(graph), options_(options) {}

  Status run() {
    takeGradients();
    if (trained_.empty())
      return {Code::Usage, "the graph has no gradients: run the pass 'differentiate' first"};
    CGC_TRY(checkClamps());
    CGC_TRY(checkGroups());
    if (options_.copies)
      chooseCopies();
    // Needs no gradient, so that an update may run as soon as its own are there.
    insertFirst();
    Value *before = readControl(kStepState, DType::I64, {}, nullptr);
    step_ = call(OpKind::Add, {before, 1, 1});
    Value *lr = scheduled(readLr());
    std::vector<Value *> rates;
    for (size_t group = 0; group <= options_.groups.size(); ++group)
      rates.push_back(call(OpKind::Select, {lr, 0, static_cast<int64_t>(group)}));
    insertLast();
    if (const auto scaled = addLossScale(*this, gradients(), options_.growthInterval))
      unscale(*scaled);
    graph_.addStateWrite(kStepState, skip_ ? call(OpKind::Where, {skip_, before, step_}) : step_);
    clip();
    for (size_t group = 0; group <= options_.groups.size(); ++group)
      for (const std::optional<DType> copy : {std::optional<DType>(), {DType::BF16}, {DType::F16}})
        update(group, copy, rates[group]);
    average();
    finishOutputs();
    for (const Trained &one : trained_)
      if (one.copy)
        readCopy(graph_, one.path, *one.copy);
    return Status::ok();
  }

private:
  /// Splits the outputs into those of the model and the gradients.
  void takeGradients() {
    for (const auto &[output, name] : llvm::zip_equal(graph_.outputs(), names())) {
      const llvm::StringRef path = gradientPath(name);
      if (path.empty()) {
        outputs_.push_back(output);
        names_.push_back(name);
        continue;
      }
      trained_.push_back({path.str(), read(path), output.value()});
      if (options_.keepsGradients) {
        outputs_.push_back(output);
        names_.push_back(name);
      }
    }
  }

  /// The names of the outputs; empty strings if they have none.
  std::vector<std::string> names() const {
    std::vector<std::string> names = graph_.outputNames();
    names.resize(graph_.outputs().size());
    return names;
  }

  Status checkClamps() const {
    for (const ParameterClamp &clamp : options_.clamps)
      if (llvm::none_of(trained_, [&](const Trained &one) { return one.path == clamp.path; }))
        return {Code::Usage, "the clamp of the optimizer names '" + clamp.path +
                                 "', which is no trained parameter with a path to the loss"};
    return Status::ok();
  }

  /// A glob that matches nothing is a mistake. A model may well have no vectors.
  Status checkGroups() const {
    for (const ParameterGroup &group : options_.groups)
      for (const std::string &glob : group.globs)
        if (glob != kVectorsGlob && llvm::none_of(trained_, [&](const Trained &one) {
              return matchesGlob(glob, one.path);
            }))
          return {Code::Usage, "the groups of the optimizer have '" + glob +
                                   "', which matches no trained parameter with a path to the loss"};
    return Status::ok();
  }

  /// A parameter with a clamp has none: the clamp follows the update, which would write the copy.
  /// The first bucket adds the state of the step. Later buckets have to make the same copies, since
  /// the plan has one set of states.
  void chooseCopies() {
    const bool isFirst = !graph_.owner()->findParameter(kStepState);
    for (Trained &one : trained_)
      if (llvm::none_of(options_.clamps,
                        [&](const ParameterClamp &clamp) { return clamp.path == one.path; }))
        one.copy = chooseCopy(graph_, one.path, isFirst);
  }

  Value *readLr() {
    std::vector<float> rates;
    for (const ParameterGroup &group : options_.groups)
      rates.push_back(static_cast<float>(options_.lr * group.lrScale));
    rates.push_back(static_cast<float>(options_.lr));
    const auto type = ir::TensorType::dense(DType::F32, {static_cast<int64_t>(rates.size())});
    auto bytes = llvm::ArrayRef(reinterpret_cast<const std::byte *>(rates.data()),
                                rates.size() * sizeof(float));
    return readControl(kLrState, DType::F32, type.sizes, ir::TensorData::copyOf(type, bytes));
  }

  Arg::List gradients() const {
    Arg::List gradients;
    for (const Trained &one : trained_)
      gradients.emplace_back(one.gradient);
    return gradients;
  }

  /// Leaves the division by the loss scale to the update, unless something else reads the
  /// gradients.
  void unscale(const LossScale &scaled) {
    skip_ = scaled.skip;
    norm_ = call(OpKind::Mul, {scaled.norm, scaled.inverse});
    if (!options_.keepsGradients && options_.clipValue == 0) {
      scale_ = scaled.inverse;
      return;
    }
    for (Trained &one : trained_) {
      Value *unscaled = call(OpKind::Mul, {one.gradient, scaled.inverse});
      for (size_t i = 0; i < outputs_.size(); ++i)
        if (gradientPath(names_[i]) == one.path)
          outputs_[i] = unscaled;
      one.gradient = unscaled;
    }
  }

  /// The gradients, clipped by value, and the factor that clips them by norm.
  void clip() {
    if (options_.clipValue > 0)
      for (Trained &one : trained_)
        one.gradient = call(OpKind::Clamp, {one.gradient, -options_.clipValue, options_.clipValue});
    if (options_.clipNorm == 0)
      return;
    Value *norm = norm_ && options_.clipValue == 0
                      ? norm_
                      : call(OpKind::CgcGradientNorm, {Arg(gradients())});
    outputs_.emplace_back(norm);
    names_.emplace_back("gradient_norm");
    // torch.nn.utils.clip_grad_norm_: min(1, most / (norm + 1e-6)).
    Value *shifted = call(OpKind::Add, {norm, 1e-6, 1});
    Value *factor = call(OpKind::Mul, {call(OpKind::Reciprocal, {shifted}), options_.clipNorm});
    factor = call(OpKind::Clamp, {factor, Arg(), 1.0});
    scale_ = scale_ ? call(OpKind::Mul, {factor, scale_}) : factor;
  }

  /// `lr` times the factor of the schedule.
  Value *scheduled(Value *lr) {
    const bool hasWarmup = options_.warmup > 0;
    if (options_.schedule == LearningRateSchedule::Constant && !hasWarmup)
      return lr;
    // The first step has number 0 here, as in PyTorch's schedulers.
    Value *step = call(OpKind::Sub, {call(OpKind::To, {step_, DType::F32}), 1.0, 1});
    Value *factor = decayFactor(step);
    if (hasWarmup) {
      Value *ramp = call(OpKind::Mul, {call(OpKind::Add, {step, 1.0, 1}), 1 / options_.warmup});
      Value *warm = call(OpKind::Lt, {step, options_.warmup});
      factor = call(OpKind::Where, {warm, ramp, factor ? Arg(factor) : Arg(1.0)});
    }
    return call(OpKind::Mul, {lr, factor});
  }

  /// The factor of the schedule at 0-based `step` after the warm-up; null if it is 1.
  Value *decayFactor(Value *step) {
    if (options_.schedule == LearningRateSchedule::Constant)
      return nullptr;
    if (options_.schedule == LearningRateSchedule::Step) {
      Value *count = call(OpKind::Floor, {call(OpKind::Div, {step, options_.stepSize})});
      // stepFactor^count.
      Value *exponent = call(OpKind::Mul, {count, std::log(options_.stepFactor)});
      return call(OpKind::Exp, {exponent});
    }
    const double length = options_.steps - options_.warmup;
    Value *past = call(OpKind::Sub, {step, options_.warmup, 1});
    Value *progress = call(OpKind::Clamp, {call(OpKind::Mul, {past, 1 / length}), 0.0, 1.0});
    if (options_.schedule == LearningRateSchedule::Linear)
      return call(OpKind::Add, {call(OpKind::Mul, {progress, options_.finalFactor - 1}), 1.0, 1});
    Value *cosine = call(OpKind::Cos, {call(OpKind::Mul, {progress, std::numbers::pi})});
    const double half = (1 - options_.finalFactor) / 2;
    return call(OpKind::Add, {call(OpKind::Mul, {cosine, half}), half + options_.finalFactor, 1});
  }

  size_t groupOf(const Trained &one) const {
    const auto found = llvm::find_if(options_.groups, [&](const ParameterGroup &group) {
      return contains(group, one.path, one.value->tensor());
    });
    return static_cast<size_t>(found - options_.groups.begin());
  }

  /// Updates the parameters of one group that have copies of this dtype.
  void update(size_t group, std::optional<DType> copy, Value *lr) {
    std::vector<Trained *> members;
    for (Trained &one : trained_)
      if (groupOf(one) == group && one.copy == copy)
        members.push_back(&one);
    if (members.empty())
      return;
    std::vector<const char *> moments;
    if (options_.rule != OptimizerRule::Sgd)
      moments = {"exp_avg", "exp_avg_sq"};
    else if (options_.momentum != 0)
      moments = {"momentum_buffer"};
    std::vector<std::string> paths;
    Arg::List parameters, gradients;
    std::vector<Arg::List> states(moments.size());
    for (const Trained *one : members) {
      paths.push_back(one->path);
      parameters.emplace_back(one->value);
      gradients.emplace_back(one->gradient);
    }
    for (size_t i = 0; i < moments.size(); ++i)
      for (const Trained *one : members) {
        paths.push_back(one->path + ":" + moments[i]);
        states[i].emplace_back(
            readState(paths.back(), StateRole::Optimizer,
                      ir::TensorType::dense(one->value->tensor().dtype, one->value->tensor().sizes),
                      nullptr));
      }
    if (copy)
      for (const Trained *one : members)
        paths.push_back(copyName(one->path, *copy));
    const Arg copyType = copy ? Arg(*copy) : Arg();
    const double decay = group < options_.groups.size()
                             ? options_.groups[group].weightDecay.value_or(options_.weightDecay)
                             : options_.weightDecay;
    const Arg scale = scale_ ? Arg(scale_) : Arg(), skip = skipArg();
    ir::Node *node =
        options_.rule == OptimizerRule::Sgd
            ? callNode(OpKind::CgcSgd,
                       {std::move(parameters), std::move(gradients),
                        states.empty() ? Arg::List() : std::move(states[0]), lr, step_, scale, skip,
                        options_.momentum, options_.dampening, decay, options_.nesterov, copyType})
            : callNode(OpKind::CgcAdam, {std::move(parameters), std::move(gradients),
                                         std::move(states[0]), std::move(states[1]), lr, step_,
                                         scale, skip, options_.beta1, options_.beta2, options_.eps,
                                         decay, options_.rule == OptimizerRule::AdamW, copyType});
    for (size_t i = 0; i < paths.size(); ++i) {
      Value *result = node->result(static_cast<unsigned>(i));
      if (i < members.size())
        result = members[i]->updated = clamped(paths[i], result);
      graph_.addStateWrite(paths[i], result);
    }
  }

  /// Moves the average of each parameter.
  void average() {
    if (options_.averageDecay == 0)
      return;
    std::vector<std::string> paths;
    Arg::List averages, parameters;
    for (const Trained &one : trained_) {
      paths.push_back(one.path + kAverageSuffix);
      const ir::Parameter &parameter = *graph_.owner()->findParameter(one.path);
      averages.emplace_back(
          readState(paths.back(), StateRole::Average, parameter.type, parameter.data));
      parameters.emplace_back(one.updated);
    }
    ir::Node *node = callNode(OpKind::CgcEma, {std::move(averages), std::move(parameters),
                                               options_.averageDecay, skipArg()});
    for (const auto &[path, result] : llvm::zip_equal(paths, node->results()))
      graph_.addStateWrite(path, &result);
  }

  Arg skipArg() const { return skip_ ? Arg(skip_) : Arg(); }

  Value *clamped(const std::string &path, Value *value) {
    for (const ParameterClamp &clamp : options_.clamps)
      if (clamp.path == path)
        value = call(OpKind::Clamp, {value, clamp.min, clamp.max});
    return value;
  }

  void finishOutputs() {
    const bool unnamed = llvm::all_of(names_, [](const std::string &name) { return name.empty(); });
    graph_.setOutputs(std::move(outputs_), unnamed ? std::vector<std::string>() : names_);
  }

  ir::Graph &graph_;
  const OptimizerOptions &options_;
  std::vector<Trained> trained_;
  std::vector<Arg> outputs_;
  std::vector<std::string> names_;
  Value *step_ = nullptr;
  Value *scale_ = nullptr; ///< Of gradients. Null: 1.
  Value *skip_ = nullptr;  ///< Whether the step updates nothing. Null: it does not.
  Value *norm_ = nullptr;  ///< Of all gradients, if the loss is scaled.
};

} // namespace

Result<OptimizePass> OptimizePass::create(PassOptions &options) {
  OptimizePass pass;
  CGC_ASSIGN_OR_RETURN(pass.options, takeOptimizer(options));
  return pass;
}

Result<Changed> OptimizePass::run(ir::Graph &graph, PassContext &) const {
  CGC_TRY(requireTypes(graph));
  CGC_TRY(requireFunctional(graph));
  CGC_TRY(Optimizer(graph, options).run());
  return Changed::Yes;
}

CGC_DEFINE_PASS(OptimizePass)

} // namespace cgc::passes
