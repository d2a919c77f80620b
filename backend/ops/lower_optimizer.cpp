// OptimizerStep: operands, scale and skipped steps.
#include "backend/ops/lower_optimizer.h"

#include "runtime/base/check.h"
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
  OptimizerStep step{.gradients = places("gradients"),
                     .values = {},
                     .results = {},
                     .copies = {},
                     .lr = builder.place(node.arg("lr").value()),
                     .step = builder.place(node.arg("step").value()),
                     .scale = builder.optionalPlace(node.arg("scale")),
                     .skip = builder.optionalPlace(node.arg("skip"))};
  unsigned next = 0;
  for (llvm::StringRef name : names) {
    step.values.push_back(places(name));
    std::vector<Place> &results = step.results.emplace_back();
    for (size_t i = 0; i < step.size(); ++i)
      results.push_back(flatPlace(builder.allocate(*node.result(next++)), builder));
  }
  if (!node.arg("copy").isNone())
    for (size_t i = 0; i < step.size(); ++i)
      step.copies.push_back(flatPlace(builder.allocate(*node.result(next++)), builder));
  return step;
}

bool launchOptimizer(llvm::StringRef kernel, const OptimizerStep &step, std::vector<int64_t> ints,
                     std::vector<double> floats, BucketBuilder &builder) {
  const auto inF32 = [&](const std::optional<Place> &number) {
    return number ? std::optional(converted(*number, DType::F32, builder)) : std::nullopt;
  };
  const auto shared = [&] {
    return std::vector{inF32(step.lr), std::optional(step.step), inF32(step.scale), step.skip};
  };
  const auto group = [&](size_t i) {
    RecordTensors tensors{{step.values[0][i], converted(step.gradients[i], DType::F32, builder)},
                          {step.results[0][i]}};
    for (size_t list = 1; list < step.values.size(); ++list) {
      tensors.reads.emplace_back(step.values[list][i]);
      tensors.writes.emplace_back(step.results[list][i]);
    }
    if (!step.copies.empty()) {
      tensors.writes.resize(findKernel(kernel)->groupWrites());
      tensors.writes.back() = step.copies[i];
    }
    return tensors;
  };
  return launchGroups(kernel, step.values[0], shared, group, std::move(ints), std::move(floats),
                      builder);
}

bool isOptimizerLaunch(const LaunchRecord &record) {
  const auto *launch = std::get_if<KernelLaunch>(&record.op);
  return launch && llvm::is_contained({"adam_f32", "ema_f32", "sgd_f32"}, launch->kernel);
}

bool launchGroups(llvm::StringRef kernel, const std::vector<Place> &firsts,
                  llvm::function_ref<std::vector<std::optional<Place>>()> shared,
                  llvm::function_ref<RecordTensors(size_t)> group, std::vector<int64_t> ints,
                  std::vector<double> floats, BucketBuilder &builder) {
  if (builder.target() != DeviceKind::Cuda ||
      llvm::any_of(firsts, [](const Place &first) { return first.dtype != DType::F32; }))
    return false;
  const Kernel &row = *findKernel(kernel);
  std::vector<size_t> groups;
  for (size_t i = 0; i < firsts.size(); ++i)
    if (firsts[i].sizes[0] > 0)
      groups.push_back(i);
  if (groups.empty())
    return true;
  const std::vector<std::optional<Place>> sharedReads = shared();
  for (llvm::ArrayRef<size_t> left = groups; !left.empty();) {
    const llvm::ArrayRef<size_t> members = left.take_front(kMaxTensorGroups);
    left = left.drop_front(members.size());
    RecordTensors tensors{sharedReads, {}};
    uint64_t chunks = 0;
    for (size_t i : members) {
      RecordTensors own = group(i);
      own.reads.resize(row.groupReads());
      own.writes.resize(row.groupWrites());
      llvm::append_range(tensors.reads, own.reads);
      llvm::append_range(tensors.writes, own.writes);
      chunks += groupChunks(uint64_t(firsts[i].sizes[0]));
    }
    KernelLaunch record = launchOf(row);
    record.grid[0] = static_cast<uint32_t>(groupBlocks(chunks, builder.multiprocessors()));
    record.block[0] = kGroupThreads;
    record.ints = ints;
    record.floats = floats;
    const bool isLaunched = launch(std::move(record), tensors, builder);
    CGC_CHECK(isLaunched && "the kernel takes dense f32 tensors");
  }
  return true;
}

} // namespace cgc::backend
