// LossScale: reads the scale, finds gradients that are not finite, and computes the next scale.
#include "passes/train/loss_scale.h"

#include "runtime/base/training_names.h"

#include "llvm/ADT/ArrayRef.h"

namespace cgc::passes {
namespace {

using ir::OpKind;
using ir::Value;

// The defaults of torch.amp.GradScaler.
constexpr double kGrowth = 2, kBackoff = 0.5;

/// A step doubles the scale up to the largest power of two of f32.
constexpr double kLargestScale = 0x1p127;

} // namespace

Value *readLossScale(ir::Graph &graph, float first, DType dtype) {
  StepBuilder builder(graph);
  const auto type = ir::TensorType::dense(DType::F32, {});
  const auto bytes = llvm::ArrayRef(reinterpret_cast<const std::byte *>(&first), sizeof(first));
  Value *scale =
      builder.readControl(kLossScaleState, DType::F32, {}, ir::TensorData::copyOf(type, bytes));
  return dtype == DType::F32 ? scale : builder.call(OpKind::To, {scale, dtype});
}

std::optional<LossScale> addLossScale(StepBuilder &builder, ir::Arg::List gradients,
                                      int64_t growthInterval) {
  Value *scale = builder.read(kLossScaleState);
  if (!scale)
    return std::nullopt;
  const auto call = [&](OpKind op, std::vector<ir::Arg> args) {
    return builder.call(op, std::move(args));
  };
  LossScale result;
  result.inverse = call(OpKind::Reciprocal, {scale});
  result.norm = call(OpKind::CgcGradientNorm, {ir::Arg(std::move(gradients))});
  result.skip = call(OpKind::LogicalNot, {call(OpKind::IsFinite, {result.norm})});

  const auto count = [&](const char *name) {
    return builder.readControl(name, DType::I64, {}, nullptr);
  };
  Value *good = call(OpKind::Add, {count(kGrowthTrackerState), 1, 1});
  Value *grows = call(OpKind::Eq, {good, growthInterval});
  Value *grown =
      call(OpKind::Clamp, {call(OpKind::Mul, {scale, kGrowth}), ir::Arg(), kLargestScale});
  Value *kept = call(OpKind::Where, {grows, grown, scale});
  Value *next = call(OpKind::Where, {result.skip, call(OpKind::Mul, {scale, kBackoff}), kept});
  Value *restarts = call(OpKind::LogicalOr, {result.skip, grows});
  Value *skipped = call(OpKind::To, {result.skip, DType::I64});
  ir::Graph &graph = builder.graph();
  graph.addStateWrite(kLossScaleState, next);
  graph.addStateWrite(kGrowthTrackerState, call(OpKind::Where, {restarts, 0, good}));
  graph.addStateWrite(kSkippedState, call(OpKind::Add, {count(kSkippedState), skipped, 1}));
  return result;
}

} // namespace cgc::passes
