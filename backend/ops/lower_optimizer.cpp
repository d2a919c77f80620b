// OptimizerStep: operands, scale and skipped steps.
#include "backend/ops/lower_optimizer.h"

#include "backend/kernels.h"
#include "runtime/kernels/optimizer/tensor_groups.h"

namespace cgc::backend {

OptimizerStep optimizerStep(const ir::Node &node, llvm::ArrayRef<llvm::StringRef> names,
                            BucketBuilder &builder) {
  const auto places = [&](llvm::StringRef name) {
    std::vector<Place> places;
    for (const ir::Arg &arg : node.arg(name).list())
      places.push_back(flatPlace(builder.place(arg.value()), builder));
    return places;
  };
  const auto optional = [&](llvm::StringRef name) {
    const ir::Arg &arg = node.arg(name);
    return arg.isNone() ? std::nullopt : std::optional(builder.place(arg.value()));
  };
  OptimizerStep step{.gradients = places("gradients"),
                     .values = {},
                     .results = {},
                     .lr = builder.place(node.arg("lr").value()),
                     .step = builder.place(node.arg("step").value()),
                     .scale = optional("scale"),
                     .skip = optional("skip")};
  unsigned next = 0;
  for (llvm::StringRef name : names) {
    step.values.push_back(places(name));
    std::vector<Place> &results = step.results.emplace_back();
    for (size_t i = 0; i < step.size(); ++i)
      results.push_back(flatPlace(builder.allocate(*node.result(next++)), builder));
  }
  return step;
}

std::vector<size_t> launchOptimizer(llvm::StringRef kernel, const OptimizerStep &step,
                                    std::vector<int64_t> ints, std::vector<double> floats,
                                    BucketBuilder &builder) {
  const Kernel &row = *findKernel(kernel);
  TensorMath math(builder);
  std::vector<size_t> groups, rest;
  for (size_t i = 0; i < step.size(); ++i) {
    const Place &parameter = step.values[0][i];
    if (parameter.sizes[0] > 0)
      (builder.target() == DeviceKind::Cuda && parameter.dtype == DType::F32 ? groups : rest)
          .push_back(i);
  }
  if (groups.empty())
    return rest;
  const auto inF32 = [&](const std::optional<Place> &number) {
    return number ? std::optional(math.converted(*number, DType::F32)) : std::nullopt;
  };
  const RecordTensors shared{{inF32(step.lr), step.step, inF32(step.scale), step.skip}, {}};
  for (llvm::ArrayRef<size_t> left = groups; !left.empty();) {
    const llvm::ArrayRef<size_t> members = left.take_front(kMaxTensorGroups);
    left = left.drop_front(members.size());
    RecordTensors tensors = shared;
    uint64_t chunks = 0;
    for (size_t i : members) {
      std::vector<std::optional<Place>> reads = {step.values[0][i],
                                                 math.converted(step.gradients[i], DType::F32)};
      std::vector<std::optional<Place>> writes = {step.results[0][i]};
      for (size_t list = 1; list < step.values.size(); ++list) {
        reads.emplace_back(step.values[list][i]);
        writes.emplace_back(step.results[list][i]);
      }
      reads.resize(row.groupReads());
      writes.resize(row.groupWrites());
      llvm::append_range(tensors.reads, reads);
      llvm::append_range(tensors.writes, writes);
      chunks += groupChunks(uint64_t(step.values[0][i].sizes[0]));
    }
    KernelLaunch record = launchOf(row);
    record.grid[0] = static_cast<uint32_t>(groupBlocks(chunks, builder.multiprocessors()));
    record.block[0] = kGroupThreads;
    record.ints = ints;
    record.floats = floats;
    if (!launch(std::move(record), tensors, builder))
      llvm::append_range(rest, members);
  }
  return rest;
}

Place scaledGradient(const OptimizerStep &step, size_t i, TensorMath &math) {
  Place gradient = math.converted(step.gradients[i], step.values[0][i].dtype);
  return step.scale ? math.mul(gradient, *step.scale) : gradient;
}

Place newValue(const OptimizerStep &step, size_t list, size_t i, BucketBuilder &builder) {
  const Place &result = step.results[list][i];
  return step.skip ? builder.temporary(result.dtype, result.sizes) : result;
}

void keepIfSkipped(const OptimizerStep &step, size_t list, size_t i, const Place &value,
                   TensorMath &math) {
  if (step.skip)
    math.where(*step.skip, step.values[list][i], value, step.results[list][i]);
}

} // namespace cgc::backend
