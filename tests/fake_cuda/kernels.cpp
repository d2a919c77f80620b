// The device half of the kernel table for the fake GPU: a kernel's function is an entry of a table
// of references, and bind copies the operands and numbers of a launch.
#include "runtime/base/check.h"
#include "runtime/kernels/device/device_kernels.h"
#include "runtime/kernels/gemm/gemm.h"
#include "runtime/kernels/reference.h"
#include "tests/fake_cuda/kernel_arguments.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <mutex>
#include <vector>

namespace cgc {

namespace reference {
#define CGC_KERNEL(NAME, TRAITS, READS, WRITES, INTS, FLOATS, PARAMETERS)                          \
  void NAME##Reference(const ReferenceArguments &arguments);
#include "runtime/kernels/kernels.def"
void cublasLtMatmulReference(const ReferenceArguments &arguments);
} // namespace reference

namespace {

using test::fake_cuda::KernelArguments;

/// What stands for the code of a kernel. Its address is the kernel's function.
struct KernelCode {
  ReferenceFunction reference;
};
constexpr KernelCode kCodes[] = {
#define CGC_KERNEL(NAME, TRAITS, READS, WRITES, INTS, FLOATS, PARAMETERS)                          \
  {reference::NAME##Reference},
#include "runtime/kernels/kernels.def"
    {reference::cublasLtMatmulReference},
};
/// What stands for the tail launches of the kernels.
constexpr KernelCode kTails[] = {
#define CGC_KERNEL(NAME, TRAITS, READS, WRITES, INTS, FLOATS, PARAMETERS)                          \
  {reference::NAME##Reference},
#include "runtime/kernels/kernels.def"
};

bool isTail(const void *function) {
  const auto *const code = static_cast<const KernelCode *>(function);
  return std::ranges::any_of(kTails, [&](const KernelCode &known) { return &known == code; });
}

enum Row : size_t {
#define CGC_KERNEL(NAME, TRAITS, READS, WRITES, INTS, FLOATS, PARAMETERS) k_##NAME,
#include "runtime/kernels/kernels.def"
};

void copyOperands(std::span<const OperandView> views, std::span<void *const> addresses,
                  std::span<KernelArguments::Operand> to) {
  for (size_t i = 0; i < views.size(); ++i) {
    const OperandView &view = views[i];
    to[i] = {addresses[i], view.dtype, !view.strides.empty(), uint32_t(view.sizes.size()), {}, {}};
    std::ranges::copy(view.sizes, to[i].sizes);
    std::ranges::copy(view.strides, to[i].strides);
  }
}

/// Copies the operands to `few`. If they are more, returns a copy that lives until the program
/// ends.
const KernelArguments::Operand *keepOperands(std::span<const OperandView> views,
                                             std::span<void *const> addresses,
                                             std::span<KernelArguments::Operand> few) {
  if (views.size() <= few.size()) {
    copyOperands(views, addresses, few);
    return nullptr;
  }
  static std::mutex mutex;
  static std::deque<std::vector<KernelArguments::Operand>> kept;
  const std::scoped_lock lock(mutex);
  std::vector<KernelArguments::Operand> &many = kept.emplace_back(views.size());
  copyOperands(views, addresses, many);
  return many.data();
}

/// Divides a GEMM with wide clusters as for a GPU that has room for one of them, so that small
/// grids have a tail launch too.
KernelParameters withTail(size_t row, const LaunchView &launch, KernelArguments arguments) {
  const std::optional<GemmKernel> gemm = gemmKernelOf(kernels()[row]);
  if (!gemm || !gemm->tile->hasWideClusters())
    return KernelParameters(arguments);
  const GemmNumbers numbers = GemmNumbers::of(launch.ints);
  const GemmTile::TileSchedule schedule =
      gemm->tile->schedule(numbers.m, numbers.n, launch.grid[0], /*clustersAtOnce=*/1);
  const int64_t mainRows = std::min(schedule.clusterRows * 2 * gemm->tile->tileM, numbers.m);
  KernelParameters::TailLaunch tail{.function = nullptr, .blocks = 2 * schedule.pairs};
  arguments.grid[0] -= tail.blocks;
  arguments.tailBlocks = tail.blocks;
  if (mainRows < numbers.m) {
    arguments.mainRows = mainRows;
    tail.function = &kTails[row];
  }
  KernelParameters parameters(arguments);
  parameters.tail = tail;
  return parameters;
}

template <size_t kRow>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  KernelArguments arguments = {};
  arguments.readCount = launch.reads.size();
  arguments.writeCount = launch.writes.size();
  arguments.intCount = launch.ints.size();
  arguments.floatCount = launch.floats.size();
  arguments.manyReads = keepOperands(launch.reads, at.reads, arguments.fewReads);
  arguments.manyWrites = keepOperands(launch.writes, at.writes, arguments.fewWrites);
  CGC_CHECK(launch.ints.size() <= std::size(arguments.ints) &&
            launch.floats.size() <= std::size(arguments.floats) &&
            "the fake kernels have room for every row's numbers");
  std::ranges::copy(launch.grid, arguments.grid);
  std::ranges::copy(launch.block, arguments.block);
  std::ranges::copy(launch.ints, arguments.ints);
  std::ranges::copy(launch.floats, arguments.floats);
  return withTail(kRow, launch, arguments);
}

constexpr DeviceKernel kDeviceKernels[] = {
#define CGC_KERNEL(NAME, TRAITS, READS, WRITES, INTS, FLOATS, PARAMETERS)                          \
  {[]() -> const void * { return &kCodes[k_##NAME]; }, bind<k_##NAME>},
#include "runtime/kernels/kernels.def"
};

} // namespace

const DeviceKernel &deviceKernel(const Kernel &kernel) {
  return kDeviceKernels[&kernel - kernels().data()];
}

namespace test::fake_cuda {
namespace {

std::vector<TensorView> views(std::span<const KernelArguments::Operand> operands) {
  std::vector<TensorView> views;
  for (const KernelArguments::Operand &o : operands) {
    TensorView view{o.data, o.dtype, DeviceKind::Cpu, {o.sizes, o.rank}, {}};
    if (o.isStrided)
      view.strides = {o.strides, o.rank};
    views.push_back(view);
  }
  return views;
}

/// The bytes from the operand's address to its last element's end; 0 if it has no elements.
uint64_t extent(const KernelArguments::Operand &o) {
  uint64_t last = 0, dense = 1;
  for (size_t d = o.rank; d-- > 0;) {
    if (o.sizes[d] == 0)
      return 0;
    last += (o.sizes[d] - 1) * (o.isStrided ? o.strides[d] : dense);
    dense *= o.sizes[d];
  }
  return (last + 1) * dtypeSize(o.dtype);
}

void runWhole(const void *function, const KernelArguments &arguments) {
  const std::vector<TensorView> reads = views(arguments.reads()),
                                writes = views(arguments.writes());
  static_cast<const KernelCode *>(function)->reference({reads,
                                                        writes,
                                                        {arguments.ints, arguments.intCount},
                                                        {arguments.floats, arguments.floatCount}});
}

} // namespace

bool isKernel(const void *function) {
  const auto *const code = static_cast<const KernelCode *>(function);
  return isTail(function) ||
         std::ranges::any_of(kCodes, [&](const KernelCode &known) { return &known == code; });
}

const KernelArguments::Operand *
inaccessibleOperand(const KernelArguments &arguments,
                    const std::function<bool(const std::byte *, uint64_t bytes)> &isAccessible) {
  for (const std::span operands : {arguments.reads(), arguments.writes()})
    for (const KernelArguments::Operand &o : operands)
      if (const uint64_t bytes = extent(o);
          o.data && bytes > 0 && !isAccessible(static_cast<const std::byte *>(o.data), bytes))
        return &o;
  return nullptr;
}

bool hasBoundShape(const void *function, const KernelArguments &arguments, dim3 grid, dim3 block) {
  const auto is = [](dim3 shape, uint32_t x, uint32_t y, uint32_t z) {
    return shape.x == x && shape.y == y && shape.z == z;
  };
  const auto &[x, y, z] = arguments.grid;
  return is(block, arguments.block[0], arguments.block[1], arguments.block[2]) &&
         (isTail(function) ? is(grid, arguments.tailBlocks, 1, 1) : is(grid, x, y, z));
}

void runReference(const void *function, const KernelArguments &arguments) {
  if (arguments.mainRows < 0)
    return runWhole(function, arguments);
  // Computes all rows in memory of its own, and copies those of the launch.
  KernelArguments whole = arguments;
  std::vector<std::vector<std::byte>> results(arguments.writeCount);
  for (uint32_t i = 0; i < arguments.writeCount; ++i)
    if (KernelArguments::Operand &o = whole.fewWrites[i]; o.data) {
      const auto *const data = static_cast<const std::byte *>(o.data);
      results[i].assign(data, data + extent(o));
      o.data = results[i].data();
    }
  runWhole(function, whole);
  for (uint32_t i = 0; i < arguments.writeCount; ++i) {
    const KernelArguments::Operand &o = arguments.fewWrites[i];
    if (!o.data)
      continue;
    const uint64_t all = results[i].size();
    uint64_t pitch = dtypeSize(o.dtype);
    for (size_t d = 1; d < o.rank; ++d)
      pitch *= o.sizes[d];
    if (o.isStrided)
      pitch = o.strides[0] * dtypeSize(o.dtype);
    const uint64_t middle = std::min(all, arguments.mainRows * pitch);
    const auto [begin, end] =
        isTail(function) ? std::pair(middle, all) : std::pair(uint64_t(0), middle);
    std::memcpy(static_cast<std::byte *>(o.data) + begin, results[i].data() + begin, end - begin);
  }
}

} // namespace test::fake_cuda
} // namespace cgc

extern "C" __attribute__((visibility("default"))) cudaError_t
cgcFakeCudaLaunchGemm(const cgc::test::fake_cuda::KernelArguments &arguments, cudaStream_t stream) {
  void *parameter = const_cast<cgc::test::fake_cuda::KernelArguments *>(&arguments);
  return cudaLaunchKernel(&std::end(cgc::kCodes)[-1], 1, 1, &parameter, 0, stream);
}
