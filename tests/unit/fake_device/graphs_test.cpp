// Graphs of the fake GPU: nodes, edges, child graphs and launches, as "Graph Management" of the
// CUDA Runtime API has them.
#include "tests/unit/fake_device/graphs_fixture.h"

namespace cgc::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(FakeGraphs, NodesRunInEveryOrderThatTheEdgesAllow) {
  const cudaGraph_t g = graph();
  const cudaGraphNode_t one = add(g, 1), two = add(g, 2);
  add(g, 3, {one, two});
  EXPECT_EQ(ordersOf(instantiate(g)), (std::set<std::vector<int>>{{1, 2, 3}, {2, 1, 3}}));
  ASSERT_EQ(cudaGraphAddDependencies(g, &two, &one, nullptr, 1), cudaSuccess);
  EXPECT_EQ(ordersOf(instantiate(g)), (std::set<std::vector<int>>{{2, 1, 3}}));
}

TEST_F(FakeGraphs, TheSeedDecidesTheOrder) {
  const cudaGraph_t g = graph();
  for (int i = 0; i < 10; ++i)
    add(g, i);
  const auto orders = [&](unsigned seed) {
    fake_cuda::reset({.seed = seed});
    const cudaGraphExec_t exec = instantiate(g);
    return std::pair(replay(exec), replay(exec));
  };
  EXPECT_EQ(orders(1), orders(1));
  EXPECT_NE(orders(1), orders(2));
}

/// cudaGraphGetEdges: "the node in to[i] has a dependency on the node in from[i]"; entries past the
/// actual number of edges are NULL.
TEST_F(FakeGraphs, NodesAndEdgesCanBeRead) {
  const cudaGraph_t g = graph();
  const cudaGraphNode_t one = add(g, 1), two = add(g, 2, {one});
  std::vector<cudaGraphNode_t> nodes(3), from(3), to(3);
  size_t count = 3;
  ASSERT_EQ(cudaGraphGetNodes(g, nodes.data(), &count), cudaSuccess);
  EXPECT_EQ(count, 2u);
  EXPECT_THAT(nodes, ElementsAre(one, two, nullptr));
  count = 3;
  ASSERT_EQ(cudaGraphGetEdges(g, from.data(), to.data(), nullptr, &count), cudaSuccess);
  EXPECT_EQ(count, 1u);
  EXPECT_THAT(from, ElementsAre(one, nullptr, nullptr));
  EXPECT_THAT(to, ElementsAre(two, nullptr, nullptr));
  ASSERT_EQ(cudaGraphGetRootNodes(g, nullptr, &count), cudaSuccess);
  EXPECT_EQ(count, 1u);
  cudaGraphNodeType type = {};
  EXPECT_EQ(cudaGraphNodeGetType(one, &type), cudaSuccess);
  EXPECT_EQ(type, cudaGraphNodeTypeHost);
}

/// Dependencies have to be nodes of the graph, each once; a graph with a cycle has no instance.
TEST_F(FakeGraphs, WrongEdgesAreRefused) {
  const cudaGraph_t g = graph(), other = graph();
  const cudaGraphNode_t one = add(g, 1), two = add(g, 2, {one}), foreign = add(other, 3);
  cudaGraphNode_t node = nullptr;
  for (const std::vector<cudaGraphNode_t> &wrong : {std::vector{foreign}, {one, one}, {nullptr}})
    EXPECT_EQ(cudaGraphAddEmptyNode(&node, g, wrong.data(), wrong.size()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphAddDependencies(g, &one, &two, nullptr, 1), cudaErrorInvalidValue);
  ASSERT_EQ(cudaGraphAddDependencies(g, &two, &one, nullptr, 1), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&exec, g, 0), cudaErrorInvalidValue);
}

/// A child graph node runs a copy of the graph, whole, between its dependencies and dependents; its
/// nodes run between those of parallel branches.
TEST_F(FakeGraphs, AChildGraphRunsInItsPlace) {
  const cudaGraph_t child = graph(), g = graph();
  const cudaGraphNode_t two = add(child, 2);
  add(child, 3, {two});
  const cudaGraphNode_t one = add(g, 1), middle = addChild(g, child, {one});
  add(g, 4, {middle});
  add(child, 99); // The copy does not have it.
  EXPECT_EQ(ordersOf(instantiate(g)), (std::set<std::vector<int>>{{1, 2, 3, 4}}));
  add(g, 5, {one});
  EXPECT_TRUE(ordersOf(instantiate(g)).contains({1, 2, 5, 3, 4}));
  cudaGraph_t embedded = nullptr;
  ASSERT_EQ(cudaGraphChildGraphNodeGetGraph(middle, &embedded), cudaSuccess);
  EXPECT_NE(embedded, child);
  EXPECT_EQ(cudaGraphDestroy(embedded), cudaErrorInvalidValue);
}

/// "Each launch is ordered behind both any previous work in stream and any previous launches of
/// graphExec."
TEST_F(FakeGraphs, LaunchesOfOneInstanceAreOrdered) {
  const cudaGraph_t g = graph();
  add(g, 1);
  const cudaGraphExec_t exec = instantiate(g);
  const cudaStream_t a = stream(), b = stream();
  log(a, 0);
  ASSERT_EQ(cudaGraphLaunch(exec, a), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, b), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(b), cudaSuccess);
  EXPECT_THAT(ran, ElementsAre(0, 1, 1));
}

/// Neither the instance nor a launch needs the graph or the instance later.
TEST_F(FakeGraphs, GraphAndInstanceMayBeDestroyedAtOnce) {
  cudaGraph_t g = nullptr;
  cudaGraphExec_t exec = nullptr;
  const cudaStream_t s = stream();
  ASSERT_EQ(cudaGraphCreate(&g, 0), cudaSuccess);
  add(g, 1);
  ASSERT_EQ(cudaGraphInstantiate(&exec, g, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(g), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, s), cudaSuccess);
  ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, s), cudaErrorInvalidValue);
  ASSERT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_THAT(ran, ElementsAre(1));
}

/// Copies and memsets of two dimensions; parameters read from a node make an equal one.
TEST_F(FakeGraphs, ParametersOfCopiesAndMemsetsCanBeRead) {
  const DeviceInts memory(4), from(4, 1);
  const cudaGraph_t g = graph();
  cudaGraphNode_t node = nullptr;
  const cudaMemsetParams set{memory.data(), 8, 0x01020304, 4, 1, 2};
  ASSERT_EQ(cudaGraphAddMemsetNode(&node, g, nullptr, 0, &set), cudaSuccess);
  cudaMemsetParams read = {};
  ASSERT_EQ(cudaGraphMemsetNodeGetParams(node, &read), cudaSuccess);
  EXPECT_EQ(read.dst, set.dst);
  EXPECT_EQ(read.value, set.value);
  const cudaGraphExec_t exec = instantiate(g);
  replay(exec);
  EXPECT_THAT(memory.now(), ElementsAre(0x01020304, 0, 0x01020304, 0));
  read.value = 5;
  ASSERT_EQ(cudaGraphExecMemsetNodeSetParams(exec, node, &read), cudaSuccess);
  replay(exec);
  EXPECT_THAT(memory.now(), ElementsAre(5, 0, 5, 0));

  const cudaGraph_t copies = graph();
  cudaMemcpy3DParms copy = {};
  cudaGraphNode_t source = addCopy(graph(), memory, from);
  ASSERT_EQ(cudaGraphMemcpyNodeGetParams(source, &copy), cudaSuccess);
  EXPECT_EQ(copy.srcPtr.ptr, from.data());
  copy.srcPtr.pitch = copy.dstPtr.pitch = 8;
  copy.extent = {4, 2, 1};
  ASSERT_EQ(cudaGraphAddMemcpyNode(&node, copies, nullptr, 0, &copy), cudaSuccess);
  replay(instantiate(copies));
  EXPECT_THAT(memory.now(), ElementsAre(1, 0, 1, 0));
}

/// "Each launch of the graph will record event to capture execution of the node's dependencies."
TEST_F(FakeGraphs, EventNodesOrderALaunchAndItsSurroundings) {
  const cudaGraph_t g = graph();
  const cudaEvent_t before = event(), after = event();
  cudaGraphNode_t wait = nullptr, record = nullptr;
  ASSERT_EQ(cudaGraphAddEventWaitNode(&wait, g, nullptr, 0, before), cudaSuccess);
  const cudaGraphNode_t two = add(g, 2, {wait});
  ASSERT_EQ(cudaGraphAddEventRecordNode(&record, g, &two, 1, after), cudaSuccess);
  const cudaGraphExec_t exec = instantiate(g);
  const cudaStream_t a = stream(), b = stream(), c = stream();
  log(a, 1);
  ASSERT_EQ(cudaEventRecord(before, a), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, b), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(c, after, 0), cudaSuccess);
  log(c, 3);
  ASSERT_EQ(cudaStreamSynchronize(c), cudaSuccess);
  EXPECT_THAT(ran, ElementsAre(1, 2, 3));
}

/// cudaGraphClone: "All parameters are copied into the cloned graph. The original graph may be
/// modified after this call without affecting the clone."
TEST_F(FakeGraphs, ACloneIsIndependent) {
  const DeviceInts from(1, 7), first, second;
  const cudaGraph_t g = graph();
  const cudaGraphNode_t copy = addCopy(g, first, from);
  cudaGraph_t clone = nullptr;
  ASSERT_EQ(cudaGraphClone(&clone, g), cudaSuccess);
  keep(clone);
  add(g, 2, {copy});
  cudaGraphNode_t cloned = nullptr;
  ASSERT_EQ(cudaGraphNodeFindInClone(&cloned, copy, clone), cudaSuccess);
  EXPECT_EQ(cudaGraphNodeFindInClone(&cloned, copy, g), cudaErrorInvalidValue);
  ASSERT_EQ(cudaGraphMemcpyNodeSetParams1D(cloned, second.data(), from.data(), 4,
                                           cudaMemcpyDeviceToDevice),
            cudaSuccess);
  EXPECT_THAT(replay(instantiate(clone)), IsEmpty());
  EXPECT_THAT(first.now(), ElementsAre(0));
  EXPECT_THAT(second.now(), ElementsAre(7));
  EXPECT_THAT(replay(instantiate(g)), ElementsAre(2));
  EXPECT_THAT(first.now(), ElementsAre(7));
}

TEST_F(FakeGraphs, AMemsetNodeGetsAnotherDestination) {
  const DeviceInts first, second;
  const cudaGraph_t g = graph();
  cudaMemsetParams parameters = {};
  parameters.dst = first.data();
  parameters.value = parameters.elementSize = parameters.height = 1;
  parameters.width = parameters.pitch = first.bytes();
  cudaGraphNode_t node = nullptr;
  ASSERT_EQ(cudaGraphAddMemsetNode(&node, g, nullptr, 0, &parameters), cudaSuccess);
  parameters.dst = second.data();
  ASSERT_EQ(cudaGraphMemsetNodeSetParams(node, &parameters), cudaSuccess);
  replay(instantiate(g));
  EXPECT_THAT(first.now(), ElementsAre(0));
  EXPECT_THAT(second.now(), ElementsAre(0x01010101));
}

TEST_F(FakeGraphs, HandlesThatAreGoneAreRefused) {
  const size_t before = fake_cuda::liveHandles();
  cudaGraph_t g = nullptr;
  ASSERT_EQ(cudaGraphCreate(&g, 0), cudaSuccess);
  const cudaGraphNode_t node = add(g, 1);
  EXPECT_EQ(fake_cuda::liveHandles(), before + 1);
  ASSERT_EQ(cudaGraphDestroy(g), cudaSuccess);
  EXPECT_EQ(fake_cuda::liveHandles(), before);
  cudaGraphNodeType type = {};
  EXPECT_EQ(cudaGraphNodeGetType(node, &type), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphDestroy(g), cudaErrorInvalidValue);
}

} // namespace
} // namespace cgc::test
