// FoldPass: classifies constant nodes, decides which to fold, and evaluates them.
#include "passes/canonicalize/fold.h"

#include "ir/rewriter.h"
#include "passes/canonicalize/center_rows.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/match.h"
#include "passes/preconditions.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

constexpr uint64_t kLargestGrowth = 8; ///< The results may exceed the constants read by at most one
                                       ///< part in this many.

/// Masks of attention of at most this many bytes are folded: they are read in any case.
constexpr uint64_t kLargestMask = 16 << 20;

using Data = std::shared_ptr<const ir::TensorData>;

/// Returns true if an attention adds the result of `node`, or a slice of it, to its scores.
bool isMask(const ir::Node &node) {
  return llvm::any_of(node.result()->users(), [&](const ir::Node *user) {
    if (user->is(ir::OpKind::Slice))
      return isMask(*user);
    if (!user->is(ir::OpKind::CgcAttention))
      return false;
    const ir::Arg &mask = user->arg("attn_mask");
    return mask.isValue() && mask.value() == node.result();
  });
}

class Folder {
public:
  Folder(ir::Graph &graph, ConstantEvaluator &evaluator, uint64_t limit)
      : graph_(graph), evaluator_(evaluator), limit_(limit) {}

  Result<Changed> run() {
    ir::GraphRewriter rewriter(graph_);
    for (ir::Node &node : graph_)
      classify(node);
    for (ir::Node &node : llvm::make_early_inc_range(graph_)) {
      if (!isConstant(node) || !worthFolding(node))
        continue;
      CGC_TRY(materialize(node));
      for (ir::Value &result : node.results()) {
        ir::Type type = result.type();
        std::string hint = "folded_" + ir::opName(node.op()).split('.').second.str();
        const Data data = data_.lookup(&result);
        ir::Node *constant =
            rewriter.getAttr(findOrAddConstant(*graph_.owner(), hint, data), type, node, &node);
        data_[constant->result()] = data;
        rewriter.replaceAllUsesWith(&result, constant->result());
      }
      for (const ir::Value *value : computed_)
        data_.erase(value);
      computed_.clear();
      rewriter.erase(&node);
    }
    return rewriter.changed() ? Changed::Yes : Changed::No;
  }

private:
  struct Facts {
    bool constant = false;
    bool view = false;      ///< A view has no memory of its own.
    uint64_t readBytes = 0; ///< Bytes of the parameters that it reads, through views.
  };

  void classify(ir::Node &node) {
    Facts facts;
    if (node.kind() == ir::NodeKind::GetAttr) {
      const ir::Parameter *parameter = graph_.owner()->findParameter(node.target());
      facts.constant = parameter && parameter->data && !readsState(node);
      facts.view = true;
      if (facts.constant) {
        data_[node.result()] = parameter->data;
        facts.readBytes = parameter->type.numBytes();
      }
    } else if (node.kind() == ir::NodeKind::CallFunction && node.result()->isTensor() &&
               // An op library may implement its op for the GPU only.
               !node.is(ir::OpKind::CgcLibraryOp) && !ir::hasTrait(node.op(), ir::kOpaque)) {
      facts.constant = true;
      facts.view = isView(node);
      node.forEachInput([&](ir::Value *input) {
        Facts from = facts_.lookup(input->node());
        facts.constant &= from.constant;
        facts.readBytes += from.readBytes;
      });
    }
    facts_[&node] = facts;
  }

  bool isConstant(ir::Node &node) const { return facts_.lookup(&node).constant; }

  bool worthFolding(ir::Node &node) const {
    Facts facts = facts_.lookup(&node);
    uint64_t bytes = 0;
    for (const ir::Value &result : node.results()) {
      bytes += result.tensor().numBytes();
      if (!result.tensor().isContiguous()) // A constant is dense.
        return false;
    }
    return node.kind() == ir::NodeKind::CallFunction && !facts.view &&
           (bytes <= facts.readBytes + facts.readBytes / kLargestGrowth || bytes <= limit_ ||
            (bytes <= kLargestMask && isMask(node)));
  }

  /// Computes the dense bytes of a constant node's results, and of its operands.
  Status materialize(ir::Node &node) {
    if (data_.count(node.result()))
      return Status::ok();
    Status status;
    std::vector<Data> inputs;
    node.forEachInput([&](ir::Value *input) {
      if (status.isOk())
        status = materialize(*input->node());
      inputs.push_back(data_.lookup(input));
    });
    CGC_TRY(status);
    auto results = node.is(ir::OpKind::CgcCenterRows)
                       ? Result<std::vector<Data>>({centerRows(node, *inputs[0])})
                       : evaluator_.evaluate(node, inputs);
    if (!results)
      return results.status().withContext("while folding %" + node.result()->name());
    if (results->size() != node.numResults())
      return Status(Code::Failed, "the evaluator gave " + std::to_string(results->size()) +
                                      " results for %" + node.result()->name());
    for (unsigned i = 0; i < node.numResults(); ++i) {
      data_[node.result(i)] = (*results)[i];
      computed_.push_back(node.result(i));
    }
    return Status::ok();
  }

  ir::Graph &graph_;
  ConstantEvaluator &evaluator_;
  const uint64_t limit_;
  // Looked up, never iterated.
  llvm::DenseMap<const ir::Node *, Facts> facts_;
  llvm::DenseMap<const ir::Value *, Data> data_;
  /// Entries of data_ needed by the node being folded, dropped afterwards: f32 weights are too
  /// large to keep.
  std::vector<const ir::Value *> computed_;
};

} // namespace

Result<FoldPass> FoldPass::create(PassOptions &options) {
  CGC_ASSIGN_OR_RETURN(const auto limit, options.takeNumber("limit"));
  return limit ? FoldPass{.limit = *limit} : FoldPass();
}

Result<Changed> FoldPass::run(ir::Graph &graph, PassContext &context) const {
  CGC_TRY(requireFunctional(graph));
  if (!context.evaluator || !graph.owner())
    return Changed::No;
  return Folder(graph, *context.evaluator, limit).run();
}

CGC_DEFINE_PASS(FoldPass)

} // namespace cgc::passes
