// Validation: runs `evaluate` batch by batch.
#include "tools/cgc/train/validation.h"

#include "tools/cgc/cli/signals.h"

#include <fmt/format.h>

#include <algorithm>

namespace cgc::tool {

Result<const Bucket *> Validation::bucketOf(const PlanData &plan, const Bucket &step, int ranks) {
  const Entry *const entry = plan.findEntry(kEvaluateEntry);
  std::vector<IoTensor> whole = step.inputs;
  const int64_t batch = step.inputs[0].sizes[0];
  for (IoTensor &input : whole)
    if (!input.sizes.empty() && input.sizes[0] == batch)
      input.sizes[0] *= ranks;
  const std::string shapes = shapesText(step.inputs), wholeShapes = shapesText(whole);
  for (const Bucket &candidate : entry ? std::span(entry->buckets) : std::span<const Bucket>())
    if (const std::string own = shapesText(candidate.inputs); own == shapes || own == wholeShapes)
      return &candidate;
  return Status(Code::Usage, fmt::format("--validate: the plan has no entry '{}' for {}; compile "
                                         "it again",
                                         kEvaluateEntry, shapes));
}

Result<Validation> Validation::create(const PlanData &plan, const Bucket &step,
                                      const Bucket &evaluate, const Dataset &data, bool pinned) {
  // The loss is the first output of `step`, and any output of the method.
  const auto loss = std::ranges::find(evaluate.outputs, step.outputs[0].name, &IoTensor::name);
  if (loss == evaluate.outputs.end())
    return Status(Code::Usage, fmt::format("--validate: the entry '{}' has no output '{}'; "
                                           "compile the plan again",
                                           kEvaluateEntry, step.outputs[0].name));
  Validation validation;
  CGC_ASSIGN_OR_RETURN(validation.reader_, BatchReader::create(data, {.pinned = pinned}));
  validation.batch_ = static_cast<uint64_t>(evaluate.inputs[0].sizes[0]);
  validation.batches_ = data.samples() / validation.batch_;
  validation.loss_ = static_cast<size_t>(loss - evaluate.outputs.begin());
  for (const IoTensor &output : evaluate.outputs)
    validation.outputs_.push_back(makeTensor(output.name, output.dtype, output.sizes));
  validation.isRandom_ = plan.findState(kOffsetState).has_value();
  return validation;
}

Result<std::optional<double>> Validation::loss(Trainer &trainer) {
  // The only state that `evaluate` writes.
  int64_t offset = 0;
  const TensorView view{&offset, DType::I64, DeviceKind::Cpu, {}, {}};
  if (isRandom_)
    CGC_TRY(trainer.read(kOffsetState, view));
  double sum = 0;
  uint64_t done = 0;
  // The reader goes on from pass to pass, so that a loss that was ended early has to be the last.
  for (; done < batches_ && requestedStop() == 0; ++done) {
    const auto loss = batchLoss(trainer);
    CGC_TRY(loss.status().withContext(fmt::format("batch {} of --validate", done + 1)));
    sum += *loss;
  }
  if (isRandom_)
    CGC_TRY(trainer.write(kOffsetState, view));
  if (done < batches_)
    return std::optional<double>();
  return std::optional(sum / static_cast<double>(batches_));
}

Result<double> Validation::batchLoss(Trainer &trainer) {
  const Batch &batch = reader_->next();
  const Status status = trainer.evaluate(batch.inputs, viewsOf(outputs_));
  reader_->release();
  CGC_TRY(status);
  return toDoubles(outputs_[loss_])[0];
}

} // namespace cgc::tool
