// Kernels of the fake GPU run as their references, on memory that their device may access.
#include "tests/unit/fake_device/fake_cuda_test.h"

namespace cgc::test {
namespace {

using testing::Each;
using testing::ElementsAre;

/// A launch of the kernel "copy" on int32 operands.
class CopyLaunch final {
public:
  CopyLaunch(void *to, void *from, std::vector<int64_t> sizes, std::vector<int64_t> strides = {})
      : sizes_(std::move(sizes)), strides_(std::move(strides)) {
    const OperandView read{DType::I32, sizes_, strides_, 4}, write{DType::I32, sizes_, {}, 4};
    void *const reads[] = {from}, *const writes[] = {to};
    constexpr uint32_t kOne[] = {1, 1, 1};
    parameters_ = *kernel().bind({kOne, kOne, 0, {&read, 1}, {&write, 1}, {}, {}}, {reads, writes});
  }
  static const DeviceKernel &kernel() { return deviceKernel(*findKernel("copy")); }
  static const void *function() { return kernel().function(); }

  cudaError_t on(cudaStream_t stream, bool isProgrammatic = false) {
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = config.blockDim = 1;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = isProgrammatic;
    return cudaLaunchKernelExC(&config, function(), &parameter());
  }
  void *&parameter() { return parameter_ = parameters_.data(); }

private:
  std::vector<int64_t> sizes_, strides_;
  KernelParameters parameters_;
  void *parameter_ = nullptr;
};

class FakeKernels : public FakeCuda {
protected:
  /// The error with which a copy of one element runs.
  cudaError_t copied(void *to, void *from) {
    const cudaStream_t s = stream();
    EXPECT_EQ(CopyLaunch(to, from, {1}).on(s), cudaSuccess);
    return cudaStreamSynchronize(s);
  }
};

TEST_F(FakeKernels, AKernelComputesItsReferenceOnceItsStreamRuns) {
  const DeviceInts from(4), to(4, -1);
  const cudaStream_t s = stream();
  const std::vector<int> values = {1, 2, 3, 4};
  ASSERT_EQ(cudaMemcpyAsync(from.data(), values.data(), 16, cudaMemcpyHostToDevice, s),
            cudaSuccess);
  ASSERT_EQ(CopyLaunch(to.data(), from.data(), {2, 2}, {1, 2}).on(s), cudaSuccess);
  EXPECT_THAT(to.now(), Each(-1));
  ASSERT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_THAT(to.now(), ElementsAre(1, 3, 2, 4)); // Read by columns.
}

/// "All kernel parameters are copied at the launch", so the caller's may change at once.
TEST_F(FakeKernels, ALaunchCopiesItsParameter) {
  const DeviceInts from(1, 7), to;
  const cudaStream_t s = stream();
  {
    CopyLaunch launch(to.data(), from.data(), {1});
    ASSERT_EQ(launch.on(s), cudaSuccess);
    std::memset(launch.parameter(), 0xff, 64);
  }
  ASSERT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_THAT(to.now(), ElementsAre(7));
}

/// A kernel of groups of tensors has more operands than others, each of which has to be accessible.
TEST_F(FakeKernels, AKernelMayHaveManyOperands) {
  constexpr int64_t kGroups = 40;
  const DeviceKernel &kernel = deviceKernel(*findKernel("square_sums_f32"));
  const DeviceFloats x(kGroups, 3), sums(kGroups);
  const int64_t one = 1, groups = kGroups;
  const std::vector<OperandView> reads(kGroups, {DType::F32, {&one, 1}, {}, 4});
  const OperandView write{DType::F32, {&groups, 1}, {}, 4};
  std::vector<void *> addresses;
  for (int64_t i = 0; i < kGroups; ++i)
    addresses.push_back(x.data() + i);
  const auto run = [&] {
    constexpr uint32_t kOne[] = {1, 1, 1};
    void *const results[] = {sums.data()};
    KernelParameters parameters =
        *kernel.bind({kOne, kOne, 0, reads, {&write, 1}, {}, {}}, {addresses, results});
    void *parameter = parameters.data();
    const cudaStream_t s = stream();
    EXPECT_EQ(cudaLaunchKernel(kernel.function(), 1, 1, &parameter, 0, s), cudaSuccess);
    return cudaStreamSynchronize(s);
  };
  EXPECT_EQ(run(), cudaSuccess);
  EXPECT_THAT(sums.now(), Each(9.0f));
  float host = 0;
  addresses.back() = &host;
  EXPECT_EQ(run(), cudaErrorIllegalAddress);
}

/// cudaErrorIllegalAddress: "The device encountered a load or store instruction on an invalid
/// memory address. [...] any further CUDA work will return the same error."
TEST_F(FakeKernels, OperandsInPageableMemoryFault) {
  const DeviceInts device(1, 7);
  int host = 0;
  EXPECT_EQ(copied(&host, device.data()), cudaErrorIllegalAddress);
  EXPECT_EQ(host, 0);
  void *memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorIllegalAddress);
  fake_cuda::reset();
  EXPECT_EQ(copied(device.data(), &host), cudaErrorIllegalAddress);
}

TEST_F(FakeKernels, OperandsPastAnAllocationFault) {
  const DeviceInts from(2), to(1);
  const cudaStream_t s = stream();
  ASSERT_EQ(CopyLaunch(to.data(), from.data(), {2}).on(s), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(s), cudaErrorIllegalAddress);
}

/// Pinned host memory "is directly accessible from all devices" (Unified Addressing).
TEST_F(FakeKernels, OperandsMayBePinned) {
  const DeviceInts device(1, 7);
  void *pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 4), cudaSuccess);
  EXPECT_EQ(copied(pinned, device.data()), cudaSuccess);
  EXPECT_EQ(*static_cast<int *>(pinned), 7);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

/// A kernel accesses memory of another device only after cudaDeviceEnablePeerAccess.
TEST_F(FakeKernels, OperandsOfAnotherDeviceNeedPeerAccess) {
  fake_cuda::reset({.devices = 2});
  const DeviceInts other(1, 7);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const DeviceInts own;
  ASSERT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_EQ(copied(own.data(), other.data()), cudaSuccess);
  EXPECT_THAT(own.now(), ElementsAre(7));
  ASSERT_EQ(cudaDeviceDisablePeerAccess(0), cudaSuccess);
  EXPECT_EQ(copied(own.data(), other.data()), cudaErrorIllegalAddress);
}

/// A kernel computes the elements of the CTAs that it has.
TEST_F(FakeKernels, ALaunchWithAnotherShapeThanItsParameterFails) {
  const DeviceInts from(1, 7), to;
  for (const auto &[grid, block] : {std::pair(2, 1), std::pair(1, 2), std::pair(1, 1)}) {
    CopyLaunch launch(to.data(), from.data(), {1});
    const cudaStream_t s = stream();
    ASSERT_EQ(cudaLaunchKernel(CopyLaunch::function(), grid, block, &launch.parameter(), 0, s),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(s),
              grid == 1 && block == 1 ? cudaSuccess : cudaErrorLaunchFailure);
    fake_cuda::reset();
  }
}

/// "ptxVersion: The PTX virtual architecture version for which the function was compiled". Code of
/// sm_90a runs on 9.0 only, and binaries on no later major version.
TEST_F(FakeKernels, LaterGpusRunThePtxOfCompute80) {
  for (const auto &[major, ptx] : {std::pair(8, 80), std::pair(9, 90), std::pair(12, 80)}) {
    fake_cuda::reset({.major = major});
    cudaFuncAttributes attributes;
    ASSERT_EQ(cudaFuncGetAttributes(&attributes, CopyLaunch::function()), cudaSuccess);
    EXPECT_EQ(attributes.ptxVersion, ptx);
    EXPECT_EQ(attributes.binaryVersion, 10 * major);
  }
}

TEST_F(FakeKernels, WrongLaunchesAreRefused) {
  const auto launch = [&](const void *function, unsigned grid, unsigned block, size_t shared) {
    const DeviceInts memory;
    CopyLaunch arguments(memory.data(), memory.data(), {1});
    const cudaError_t error =
        cudaLaunchKernel(function, grid, block, &arguments.parameter(), shared, nullptr);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return error;
  };
  const void *const function = CopyLaunch::function();
  EXPECT_EQ(launch(this, 1, 1, 0), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(launch(function, 0, 1, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(function, 1, 1025, 0), cudaErrorInvalidConfiguration);
  // Over 48 KiB of shared memory need an attribute of the function.
  EXPECT_EQ(launch(function, 1, 1, 49 << 10), cudaErrorInvalidValue);
  ASSERT_EQ(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, 49 << 10),
            cudaSuccess);
  EXPECT_EQ(launch(function, 1, 1, 49 << 10), cudaSuccess);
}

/// cudaGraphKernelNodeGetParams returns arrays that the node owns; cudaGraphExecKernelNodeSetParams
/// changes future launches of the instance.
TEST_F(FakeKernels, AKernelNodeGetsNewAddresses) {
  const DeviceInts from(1, 7), first, second;
  const cudaStream_t s = stream();
  ASSERT_EQ(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(CopyLaunch(first.data(), from.data(), {1}).on(s), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(s, &graph), cudaSuccess);
  keep(graph);
  cudaGraphNode_t node = nullptr;
  size_t count = 1;
  ASSERT_EQ(cudaGraphGetNodes(graph, &node, &count), cudaSuccess);
  cudaKernelNodeParams parameters = {};
  ASSERT_EQ(cudaGraphKernelNodeGetParams(node, &parameters), cudaSuccess);
  EXPECT_EQ(parameters.func, CopyLaunch::function());

  const cudaGraphExec_t exec = instantiate(graph);
  CopyLaunch other(second.data(), from.data(), {1});
  parameters.kernelParams = &other.parameter();
  ASSERT_EQ(cudaGraphExecKernelNodeSetParams(exec, node, &parameters), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, s), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_THAT(first.now(), ElementsAre(0)); // The graph still has this address.
  EXPECT_THAT(second.now(), ElementsAre(7));
  ASSERT_EQ(cudaGraphLaunch(instantiate(graph), s), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_THAT(first.now(), ElementsAre(7));
}

/// A launch with programmatic stream serialization gets a programmatic edge from the kernel before
/// it; a query without edge data is cudaErrorLossyQuery.
TEST_F(FakeKernels, CapturedEdgesAreProgrammaticIfTheLaunchIs) {
  const DeviceInts memory;
  const cudaStream_t s = stream();
  ASSERT_EQ(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(memory.data(), 0, 4, s), cudaSuccess);
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(CopyLaunch(memory.data(), memory.data(), {1}).on(s, /*isProgrammatic=*/true),
              cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(s, &graph), cudaSuccess);
  keep(graph);
  std::vector<cudaGraphNode_t> from(2), to(2);
  std::vector<cudaGraphEdgeData> data(2);
  size_t count = 2;
  EXPECT_EQ(cudaGraphGetEdges(graph, from.data(), to.data(), nullptr, &count), cudaErrorLossyQuery);
  ASSERT_EQ(cudaGraphGetEdges(graph, from.data(), to.data(), data.data(), &count), cudaSuccess);
  EXPECT_EQ(data[0].type, cudaGraphDependencyTypeDefault); // From the memset.
  EXPECT_EQ(data[1].type, cudaGraphDependencyTypeProgrammatic);
}

} // namespace
} // namespace cgc::test
