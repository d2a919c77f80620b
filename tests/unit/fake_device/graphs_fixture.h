// The fixture of the tests of the fake GPU's graphs.
#pragma once

#include "tests/unit/fake_device/fake_cuda_test.h"

#include <set>

namespace cgc::test {

class FakeGraphs : public FakeCuda {
protected:
  cudaGraph_t graph() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    return keep(graph);
  }
  /// A node that appends `number` to `ran`.
  cudaGraphNode_t add(cudaGraph_t to, int number, std::vector<cudaGraphNode_t> after = {}) {
    entries_.push_back(std::make_unique<Entry>(Entry{this, number}));
    const cudaHostNodeParams parameters{[](void *data) {
                                          const auto *const entry = static_cast<Entry *>(data);
                                          entry->test->ran.push_back(entry->number);
                                        },
                                        entries_.back().get()};
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaGraphAddHostNode(&node, to, after.data(), after.size(), &parameters),
              cudaSuccess);
    return node;
  }
  cudaGraphNode_t addChild(cudaGraph_t to, cudaGraph_t child,
                           std::vector<cudaGraphNode_t> after = {}) {
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaGraphAddChildGraphNode(&node, to, after.data(), after.size(), child),
              cudaSuccess);
    return node;
  }
  cudaGraphNode_t addCopy(cudaGraph_t to, const DeviceInts &into, const DeviceInts &from) {
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaGraphAddMemcpyNode1D(&node, to, nullptr, 0, into.data(), from.data(),
                                       from.bytes(), cudaMemcpyDeviceToDevice),
              cudaSuccess);
    return node;
  }
  std::vector<int> replay(cudaGraphExec_t exec) {
    const cudaStream_t on = stream();
    ran.clear();
    EXPECT_EQ(cudaGraphLaunch(exec, on), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(on), cudaSuccess);
    return ran;
  }
  std::set<std::vector<int>> ordersOf(cudaGraphExec_t exec, int replays = 100) {
    std::set<std::vector<int>> orders;
    for (int i = 0; i < replays; ++i)
      orders.insert(replay(exec));
    return orders;
  }

private:
  struct Entry {
    FakeGraphs *test;
    int number;
  };
  std::vector<std::unique_ptr<Entry>> entries_;
};

} // namespace cgc::test
