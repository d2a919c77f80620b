// Helpers of the functions on graphs.
#pragma once

#include "tests/fake_cuda/state.h"

namespace cgc::test::fake_cuda {

/// Gives the user a graph and returns its handle.
inline cudaGraph_t own(State &state, const std::shared_ptr<Graph> &graph) {
  state.graphs.emplace(graph.get(), graph);
  return handleOf<cudaGraph_t>(graph.get());
}

/// Makes the operation of a node from CUDA's parameters, or returns CUDA's error.
cudaError_t operationOf(State &state, const cudaKernelNodeParams &parameters, Operation &operation);
cudaError_t operationOf(State &state, const cudaMemsetParams &parameters, Operation &operation);
cudaError_t operationOf(State &state, void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                        Operation &operation);

} // namespace cgc::test::fake_cuda
