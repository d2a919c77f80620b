// LossScale: the dynamic loss scale of a training step in f16, as torch.amp.GradScaler has it.
#pragma once

#include "passes/train/step_builder.h"

#include <optional>

namespace cgc::passes {

/// The values of a step whose gradients are those of the loss times a scale.
struct LossScale {
  ir::Value *inverse; ///< 1 / scale.
  ir::Value *norm;    ///< Of all scaled gradients together.
  ir::Value *skip;    ///< Whether a gradient is not finite, so that nothing may be updated.
};

/// Adds the state kLossScaleState, which begins as `first`, and returns a read of it in `dtype`:
/// the gradient of the loss, in place of 1.
ir::Value *readLossScale(ir::Graph &graph, float first, DType dtype);

/// The loss scale of a step with the scaled `gradients`, or nothing if its loss is not scaled.
/// Writes the next scale: doubled after `growthInterval` steps in a row with finite gradients,
/// halved after one without. Also writes the states that count both.
std::optional<LossScale> addLossScale(StepBuilder &builder, ir::Arg::List gradients,
                                      int64_t growthInterval);

} // namespace cgc::passes
