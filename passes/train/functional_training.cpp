// functional-training: makes ops of training mode functions of states.
#include "ir/op_def.h"
#include "passes/canonicalize/random_states.h"
#include "passes/manager/registered_pass.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

namespace cgc::passes {

/// With mode=step: batch_norm with training=true becomes cgc.batch_norm_train, whose new running
/// statistics are written to states; dropout with train=true becomes cgc.dropout, whose random
/// offset each run advances; an in-place op on a buffer of the model, such as the count of batches,
/// gives that buffer, now a state, its new value. With mode=evaluate: all three do what they do
/// after eval(). The graph is flat and need not have types.
struct FunctionalTrainingPass {
  static constexpr const char *name = "functional-training";
  static constexpr bool isRequired = true;
  /// Option: mode, step (the default) or evaluate.
  static Result<FunctionalTrainingPass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  bool evaluates = false;
};

namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

class GraphChange {
public:
  GraphChange(ir::Graph &graph, DeviceKind target, bool evaluates)
      : graph_(graph), target_(target), evaluates_(evaluates) {}

  bool run() {
    for (Node &node : llvm::make_early_inc_range(graph_)) {
      if (node.kind() != ir::NodeKind::CallFunction)
        continue;
      if (node.is(OpKind::BatchNorm) && node.arg("training") == Arg(true))
        evaluates_ ? switchOff(node, "training") : replaceBatchNorm(node);
      else if (node.is(OpKind::Dropout) && node.arg("train") == Arg(true))
        evaluates_ ? switchOff(node, "train") : replaceDropout(node);
      else if (node.isInPlace())
        updateBuffer(node);
    }
    for (const std::string &path : written_)
      graph_.addStateWrite(path, latest_.lookup(path));
    if (random_)
      advanceRandomOffset(graph_, target_);
    return changed_;
  }

private:
  /// The path of the buffer or state that `value` reads; empty if it reads none.
  std::string bufferOf(const Arg &arg) const {
    if (!arg.isValue() || arg.value()->node()->kind() != ir::NodeKind::GetAttr)
      return "";
    const std::string &path = arg.value()->node()->target();
    const ir::Parameter *parameter = graph_.owner()->findParameter(path);
    const bool isBuffer =
        parameter &&
        (parameter->kind == ir::Parameter::Kind::Buffer ||
         (parameter->kind == ir::Parameter::Kind::State && parameter->role == StateRole::Buffer));
    return isBuffer ? path : "";
  }

  /// The value of a buffer at this place: the last one that was given to it.
  Arg current(const std::string &path, Arg read) const {
    Value *value = latest_.lookup(path);
    return value ? Arg(value) : std::move(read);
  }

  void give(const std::string &path, Value *value) {
    graph_.owner()->makeState(path, StateRole::Buffer);
    if (!latest_.contains(path))
      written_.push_back(path);
    latest_[path] = value;
    changed_ = true;
  }

  void switchOff(Node &node, llvm::StringRef mode) {
    node.setArg(mode, false);
    changed_ = true;
  }

  void replaceBatchNorm(Node &node) {
    const std::string mean = bufferOf(node.arg("running_mean")),
                      var = bufferOf(node.arg("running_var"));
    const bool hasStatistics = !mean.empty() && !var.empty();
    if (!hasStatistics && !node.arg("running_mean").isNone())
      return; // The statistics are no buffers: batch_norm refuses its training mode.
    std::vector<Arg> args = {node.arg("input"),
                             node.arg("weight"),
                             node.arg("bias"),
                             current(mean, node.arg("running_mean")),
                             current(var, node.arg("running_var")),
                             node.arg("momentum"),
                             node.arg("eps"),
                             /*residual=*/Arg(),
                             /*relu=*/false,
                             /*channels_last=*/false};
    Node *trained = graph_.call(OpKind::CgcBatchNormTrain, std::move(args), hasStatistics ? 5 : 3,
                                node.loc(), &node);
    if (hasStatistics) {
      give(mean, trained->result(3));
      give(var, trained->result(4));
    }
    replace(node, trained->result());
  }

  void replaceDropout(Node &node) {
    if (node.arg("p").asNumber() == 0 && node.arg("input").isValue())
      return replace(node, node.arg("input").value());
    const RandomStates random = readRandomStates(graph_, target_, node);
    Node *dropout =
        graph_.call(OpKind::CgcDropout,
                    {node.arg("input"), random.seed, random.offset, node.arg("p"), nextStream_++},
                    1, node.loc(), &node);
    random_ = true;
    replace(node, dropout->result());
  }

  void updateBuffer(Node &node) {
    const std::string path = bufferOf(ir::aliasedArg(node));
    if (path.empty())
      return; // `specialize` and `canonicalize` decide about it.
    if (evaluates_)
      return replace(node, ir::aliasedArg(node).value());
    std::vector<Arg> args = node.args();
    for (Arg &arg : args)
      if (bufferOf(arg) == path)
        arg = current(path, arg);
    Node *updated = graph_.call(node.op(), std::move(args), 1, node.loc(), &node);
    give(path, updated->result());
    replace(node, updated->result());
  }

  void replace(Node &node, Value *by) {
    graph_.replaceAllUsesWith(node.result(), by);
    graph_.erase(&node);
    changed_ = true;
  }

  ir::Graph &graph_;
  const DeviceKind target_;
  const bool evaluates_;
  llvm::StringMap<Value *> latest_;  ///< Looked up, never iterated.
  std::vector<std::string> written_; ///< The keys of `latest_`, by first write.
  int64_t nextStream_ = 0;
  bool random_ = false, changed_ = false;
};

} // namespace

Result<FunctionalTrainingPass> FunctionalTrainingPass::create(PassOptions &options) {
  CGC_ASSIGN_OR_RETURN(const auto mode, options.takeOneOf("mode", {"step", "evaluate"}));
  return FunctionalTrainingPass{mode == "evaluate"};
}

Result<Changed> FunctionalTrainingPass::run(ir::Graph &graph, PassContext &context) const {
  return GraphChange(graph, context.target, evaluates).run() ? Changed::Yes : Changed::No;
}

CGC_DEFINE_PASS(FunctionalTrainingPass)

} // namespace cgc::passes
