// random-numbers: makes random ops functions of states.
#include "ir/rewriter.h"
#include "passes/canonicalize/random_states.h"
#include "passes/manager/registered_pass.h"
#include "passes/preconditions.h"

#include "llvm/ADT/STLExtras.h"

#include <numbers>

namespace cgc::passes {

/// Computes rand, randn, bernoulli and their forms from cgc.uniform. Seed and offset are states,
/// and each run advances the offset. Each call has streams that no other call of the graph has.
struct RandomNumbersPass {
  static constexpr const char *name = "random-numbers";
  static constexpr bool isRequired = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// The number of significant bits of a floating dtype, at most those of cgc.uniform.
int bitsOf(DType dtype) {
  return dtype == DType::BF16 ? 8 : dtype == DType::F16 ? 11 : 24;
}

/// Builds what replaces one call.
class Drawing {
public:
  Drawing(ir::GraphRewriter &rewriter, Node &node, DeviceKind target, int64_t &nextStream)
      : rewriter_(rewriter), node_(node), target_(target), nextStream_(nextStream) {}

  Value *run() {
    if (node_.is(OpKind::Bernoulli))
      return bernoulli();
    return node_.is(OpKind::Rand) || node_.is(OpKind::RandLike) ? uniform() : normal();
  }

private:
  const ir::TensorType &type() const { return node_.result()->tensor(); }

  Value *call(OpKind op, std::vector<Arg> args) {
    return rewriter_.create(op, std::move(args), node_, &node_)->result();
  }

  /// f32 numbers of a stream of their own.
  Value *draw() {
    const RandomStates random = readRandomStates(rewriter_.graph(), target_, node_);
    return call(OpKind::CgcUniform,
                {Arg::ints(type().sizes), random.seed, random.offset, nextStream_++});
  }

  Value *cast(Value *value) {
    return value->tensor().dtype == type().dtype ? value
                                                 : call(OpKind::To, {value, type().dtype, Arg()});
  }

  /// Rounds towards zero to what the dtype has: rounding to nearest would give 1.
  Value *uniform() {
    Value *numbers = draw();
    const int bits = bitsOf(type().dtype);
    if (bits < 24) {
      const double steps = double(1 << bits);
      Value *whole = call(OpKind::Floor, {call(OpKind::Mul, {numbers, steps})});
      numbers = call(OpKind::Mul, {whole, 1 / steps});
    }
    return cast(numbers);
  }

  /// The Box-Muller transform. The logarithm is that of 1 - u, at least 2^-24.
  Value *normal() {
    Value *log = call(OpKind::Log1p, {call(OpKind::Neg, {draw()})});
    Value *radius = call(OpKind::Sqrt, {call(OpKind::Mul, {log, -2.0})});
    Value *cosine = call(OpKind::Cos, {call(OpKind::Mul, {draw(), 2 * std::numbers::pi})});
    return cast(call(OpKind::Mul, {radius, cosine}));
  }

  Value *bernoulli() {
    const Arg &p = node_.arg("p");
    return cast(call(OpKind::Lt, {draw(), p.isNone() ? node_.arg("self") : p}));
  }

  ir::GraphRewriter &rewriter_;
  Node &node_;
  const DeviceKind target_;
  int64_t &nextStream_;
};

bool isRandom(const Node &node) {
  return node.is(OpKind::Rand) || node.is(OpKind::RandLike) || node.is(OpKind::Randn) ||
         node.is(OpKind::RandnLike) || node.is(OpKind::Bernoulli);
}

} // namespace

Result<Changed> RandomNumbersPass::run(ir::Graph &graph, PassContext &context) const {
  if (llvm::none_of(graph, isRandom))
    return Changed::No;
  CGC_TRY(requireTypes(graph));
  CGC_TRY(requireFunctional(graph));
  ir::GraphRewriter rewriter(graph);
  int64_t nextStream = firstFreeStream(graph);
  bool draws = false;
  for (Node &node : llvm::make_early_inc_range(graph)) {
    if (!isRandom(node))
      continue;
    if (node.result()->users().empty()) {
      rewriter.erase(&node);
      continue;
    }
    rewriter.replace(&node, Drawing(rewriter, node, context.target, nextStream).run());
    draws = true;
  }
  if (draws)
    advanceRandomOffset(graph, context.target);
  return Changed::Yes;
}

CGC_DEFINE_PASS(RandomNumbersPass)

} // namespace cgc::passes
