// Updates of executable graphs of the fake GPU, of one node or of all.
#include "tests/unit/fake_device/graphs_fixture.h"

namespace cgc::test {
namespace {

using testing::ElementsAre;

class FakeGraphUpdates : public FakeGraphs {};

/// cudaGraphExecMemcpyNodeSetParams1D: "The modifications only affect future launches", not
/// "already enqueued" ones; memory has to be "allocated from the same contexts".
TEST_F(FakeGraphUpdates, ACopyOfAnInstanceGetsNewAddresses) {
  const DeviceInts from(1, 7), first, second;
  const cudaGraph_t g = graph();
  const cudaGraphNode_t copy = addCopy(g, first, from);
  const cudaGraphExec_t exec = instantiate(g);
  const cudaStream_t s = stream();
  ASSERT_EQ(cudaGraphLaunch(exec, s), cudaSuccess);
  ASSERT_EQ(cudaGraphExecMemcpyNodeSetParams1D(exec, copy, second.data(), from.data(), 4,
                                               cudaMemcpyDeviceToDevice),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_THAT(first.now(), ElementsAre(7));
  EXPECT_THAT(second.now(), ElementsAre(0));
  ASSERT_EQ(cudaGraphLaunch(exec, s), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(s), cudaSuccess);
  EXPECT_THAT(second.now(), ElementsAre(7));
  int host = 0;
  EXPECT_EQ(
      cudaGraphExecMemcpyNodeSetParams1D(exec, copy, &host, from.data(), 4, cudaMemcpyDeviceToHost),
      cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphExecMemcpyNodeSetParams1D(exec, add(g, 1), second.data(), from.data(), 4,
                                               cudaMemcpyDeviceToDevice),
            cudaErrorInvalidValue);
}

/// cudaGraphExecUpdate takes parameters from "a topologically identical graph"; else it changes
/// nothing and returns cudaErrorGraphExecUpdateFailure.
TEST_F(FakeGraphUpdates, AnUpdateNeedsTheSameTopology) {
  const DeviceInts from(1, 7), first, second;
  const cudaGraph_t g = graph(), same = graph(), larger = graph(), otherType = graph();
  addCopy(g, first, from);
  addCopy(same, second, from);
  addCopy(larger, second, from);
  add(larger, 1);
  add(otherType, 1);
  const cudaGraphExec_t exec = instantiate(g);
  cudaGraphExecUpdateResultInfo info = {};
  EXPECT_EQ(cudaGraphExecUpdate(exec, larger, &info), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
  EXPECT_EQ(cudaGraphExecUpdate(exec, otherType, &info), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(info.result, cudaGraphExecUpdateErrorNodeTypeChanged);
  EXPECT_NE(info.errorNode, nullptr);
  replay(exec);
  EXPECT_THAT(first.now(), ElementsAre(7));
  EXPECT_EQ(cudaGraphExecUpdate(exec, same, &info), cudaSuccess);
  EXPECT_EQ(info.result, cudaGraphExecUpdateSuccess);
  replay(exec);
  EXPECT_THAT(second.now(), ElementsAre(7));
}

TEST_F(FakeGraphUpdates, AChildGraphOfAnInstanceIsUpdated) {
  const DeviceInts from(1, 7), first, second;
  const cudaGraph_t child = graph(), other = graph(), larger = graph(), g = graph();
  addCopy(child, first, from);
  addCopy(other, second, from);
  addCopy(larger, second, from);
  add(larger, 1);
  const cudaGraphNode_t node = addChild(g, child);
  const cudaGraphExec_t exec = instantiate(g);
  EXPECT_EQ(cudaGraphExecChildGraphNodeSetParams(exec, node, larger), cudaErrorInvalidValue);
  ASSERT_EQ(cudaGraphExecChildGraphNodeSetParams(exec, node, other), cudaSuccess);
  replay(exec);
  EXPECT_THAT(first.now(), ElementsAre(0));
  EXPECT_THAT(second.now(), ElementsAre(7));
}

} // namespace
} // namespace cgc::test
