// Binding without a GPU: programmatic edges, refused kernels, and GPUs that cannot run a plan.
#include "runtime/exec/bind.h"
#include "runtime/exec/gpu.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/rowwise/embedding_backward.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

BoundRecord kernel(bool waits) {
  BoundKernel kernel;
  kernel.waits = waits;
  return {std::move(kernel), ""};
}

TEST(ProgrammaticEdges, AreBetweenKernelsWhoseConsumerWaits) {
  std::vector<BoundRecord> records;
  records.push_back(kernel(true)); // No record before it.
  records.push_back(kernel(true));
  records.push_back(kernel(false)); // Does not wait.
  records.push_back(kernel(true));
  records.push_back({BoundMemset{nullptr, 0, 0}, ""});
  records.push_back(kernel(true)); // The preceding record is not a kernel of ours.
  records.push_back({BoundAtenCall{}, ""});
  records.push_back(kernel(true));
  records.push_back({BoundMemcpy{nullptr, nullptr, 0}, ""});
  records.push_back(kernel(true));
  records.push_back(kernel(true));
  makeProgrammaticEdges(records);
  std::vector<int> programmatic;
  for (size_t i = 0; i < records.size(); ++i)
    if (const auto *k = std::get_if<BoundKernel>(&records[i].op); k && k->programmatic)
      programmatic.push_back(i);
  EXPECT_THAT(programmatic, ElementsAre(1, 3, 10));
}

/// Of kernels in branches, only one that follows a kernel of its own branch directly waits for
/// nothing else.
TEST(ProgrammaticEdges, LieInsideABranch) {
  std::vector<BoundRecord> records;
  for (uint32_t branch : {0, 0, 1, 2, 1, 2, 2, 0, 0, 2, 2, 1, 0}) {
    BoundKernel kernel;
    kernel.waits = true;
    records.push_back({std::move(kernel), "", branch});
  }
  const auto programmatic = [&] {
    std::vector<size_t> indices;
    for (size_t i = 0; i < records.size(); ++i)
      if (std::get<BoundKernel>(records[i].op).programmatic)
        indices.push_back(i);
    return indices;
  };
  makeProgrammaticEdges(records);
  EXPECT_THAT(programmatic(), ElementsAre(1, 4, 5, 6, 8, 10));
  // A kernel that waits for a detached record, too, has another edge; the next one does not.
  records[4].waits.detached = records[5].waits.detached = records[6].waits.detached = {0, 1};
  makeProgrammaticEdges(records);
  EXPECT_THAT(programmatic(), ElementsAre(1, 6, 8, 10));
  records[6].waits.detached = {1, 1};
  records[5].branch = kUpdateBranch;
  makeProgrammaticEdges(records);
  EXPECT_THAT(programmatic(), ElementsAre(1, 8, 10));
  removeBranches(records);
  makeProgrammaticEdges(records);
  EXPECT_EQ(programmatic().size(), records.size() - 1);
}

/// A kernel may load a constant read before it waits for the kernel before it, so that a tensor of
/// the arena must not pass as one.
TEST(ConstantReads, AreTheWeights) {
  Bucket bucket;
  for (const BufferKind buffer :
       {BufferKind::Weight, BufferKind::Arena, BufferKind::Input, BufferKind::Output})
    bucket.tensors.push_back(dense(buffer, 0, 0, DType::F32, {2, 4}));
  KernelLaunch launch;
  EXPECT_EQ(constantReads(launch, bucket), 0u);
  launch.reads = {id(0), id(1), kNoTensor, id(0), id(2), id(3)};
  EXPECT_EQ(constantReads(launch, bucket), 0b001001u);
  launch.reads = {id(1), id(0)};
  EXPECT_EQ(constantReads(launch, bucket), 0b10u);
  // Of more than 64 reads, the first 64.
  launch.reads.assign(100, id(1));
  launch.reads[63] = launch.reads[64] = launch.reads[99] = id(0);
  EXPECT_EQ(constantReads(launch, bucket), uint64_t(1) << 63);
}

/// The status of binding a plan whose only record is `launch`, over tensors of f32[2,4].
Status bindStatus(KernelLaunch launch) {
  PlanData plan;
  plan.target = DeviceKind::Cuda;
  Bucket bucket;
  bucket.tensors = {dense(BufferKind::Weight, 0, 0, DType::F32, {2, 4})};
  bucket.records = {{std::move(launch)}};
  std::byte memory[32];
  const std::vector<std::byte *> weights = {memory};
  BucketMemory places;
  places.weights = &weights;
  std::vector<std::string> notes;
  return bindRecords(plan, bucket, places, {}, notes).status();
}

TEST(BindRecords, AKernelOfAnotherAbiOrWithOtherArgumentsIsRefused) {
  const Kernel &kernel = *findKernel("softmax_f32");
  KernelLaunch good;
  good.kernel = kernel.name;
  good.abiHash = kernel.abiHash;
  good.reads.assign(kernel.reads, id(0));
  good.writes.assign(kernel.writes, id(0));
  good.ints.assign(kernel.ints, 0);
  good.floats.assign(kernel.floats, 0);
  // The following check needs a GPU or refuses the launch.
  EXPECT_THAT(bindStatus(good).message(), Not(AnyOf(HasSubstr("abi"), HasSubstr("number of arg"))));

  KernelLaunch launch = good;
  launch.kernel = "softmax_f99";
  EXPECT_EQ(bindStatus(launch).code(), Code::Unsupported);
  EXPECT_THAT(bindStatus(launch).message(), HasSubstr("kernel that this runtime does not have"));
  launch = good;
  launch.abiHash ^= 1;
  EXPECT_EQ(bindStatus(launch).code(), Code::Unsupported);
  EXPECT_THAT(bindStatus(launch).message(),
              AllOf(HasSubstr("with abi " + std::to_string(launch.abiHash)),
                    HasSubstr("this runtime has abi " + std::to_string(good.abiHash))));
  for (const auto &change : std::initializer_list<std::function<void(KernelLaunch &)>>{
           [](KernelLaunch &l) { l.reads.pop_back(); },
           [](KernelLaunch &l) { l.reads.push_back(id(0)); },
           [](KernelLaunch &l) { l.writes.push_back(id(0)); },
           [](KernelLaunch &l) { l.ints.push_back(1); },
           [](KernelLaunch &l) { l.floats.push_back(1); }}) {
    launch = good;
    change(launch);
    EXPECT_EQ(bindStatus(launch).code(), Code::InvalidFile);
    EXPECT_THAT(bindStatus(launch).message(), HasSubstr("the number of arguments is not that"));
  }
}

/// The status of binding embedding_backward of 2 rows of x into a table of 4, after `before`.
/// Tensor 2 is the table, 3 its first half.
Status bindEmbeddingBackward(std::vector<LaunchRecord> before, BufferKind buffer) {
  PlanData plan;
  plan.target = DeviceKind::Cuda;
  plan.states = {{"table", StateRole::Parameter, DType::F32, {4, 4}}};
  Bucket bucket;
  bucket.arenaBytes = 64;
  bucket.tensors = {dense(BufferKind::Weight, 0, 0, DType::F32, {2, 4}),
                    dense(BufferKind::Weight, 1, 0, DType::I64, {2}),
                    dense(buffer, 0, 0, DType::F32, {4, 4}),
                    dense(buffer, 0, 0, DType::F32, {2, 4})};
  KernelLaunch launch;
  launch.kernel = "embedding_backward_f32";
  launch.abiHash = findKernel(launch.kernel)->abiHash;
  launch.grid[0] = 2;
  launch.block[0] = kEmbeddingBackwardThreads;
  launch.reads = {id(0), id(1)};
  launch.writes = {id(2)};
  launch.ints = {-1};
  bucket.records = std::move(before);
  bucket.records.push_back({launch});
  alignas(64) std::byte memory[64];
  const std::vector<std::byte *> addresses = {memory, memory};
  BucketMemory places;
  places.weights = &addresses;
  places.states = &addresses;
  places.arena = {{0, memory}};
  std::vector<std::string> notes;
  return bindRecords(plan, bucket, places, {}, notes).status();
}

/// A kernel that writes only some rows would show later records what another model left in the
/// arena.
TEST(BindRecords, AKernelThatWritesSomeRowsNeedsARecordThatWritesAll) {
  const auto refused = HasSubstr("kernel embedding_backward_f32: it writes some rows of "
                                 "tensor 2 only, and no earlier record writes all of it");
  const Status none = bindEmbeddingBackward({}, BufferKind::Arena);
  EXPECT_EQ(none.code(), Code::InvalidFile);
  EXPECT_THAT(none.message(), refused);
  EXPECT_THAT(bindEmbeddingBackward({{Memset{id(3), 0}}}, BufferKind::Arena).message(), refused);
  EXPECT_THAT(bindEmbeddingBackward({{Memset{id(2), 0}}}, BufferKind::Arena).message(),
              Not(refused));
  // A state has a value from the beginning.
  EXPECT_THAT(bindEmbeddingBackward({}, BufferKind::State).message(), Not(refused));
}

TEST(CheckGpu, NamesTheCardAndTheNextStep) {
  const Gpu v100{0, "Tesla V100", 7, 0, 80}, a100{1, "NVIDIA A100", 8, 0, 108},
      h200{0, "NVIDIA H200", 9, 0, 132}, b200{0, "NVIDIA B200", 10, 0, 148};
  for (const Gpu &gpu : {a100, h200, b200})
    EXPECT_TRUE(checkGpu(gpu, kProgrammaticLaunch).isOk()) << gpu.name;
  EXPECT_TRUE(checkGpu(h200, kProgrammaticLaunch | kHopper).isOk());
  const Status old = checkGpu(v100, 0);
  EXPECT_EQ(old.code(), Code::Device);
  EXPECT_THAT(old.message(), AllOf(HasSubstr("GPU 0 (Tesla V100, sm_70) is older than sm_80"),
                                   HasSubstr("--target cpu")));
  for (const Gpu &gpu : {a100, b200}) {
    const Status status = checkGpu(gpu, kHopper);
    EXPECT_EQ(status.code(), Code::Device);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(gpu.name), HasSubstr("--arch sm_80")));
  }
}

} // namespace
} // namespace cgc::test
