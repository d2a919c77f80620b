// The fake GPU's graph nodes: each kind's functions that add it and read its parameters.
#include "tests/fake_cuda/graph_functions.h"

#include <algorithm>

namespace cgc::test::fake_cuda {

cudaError_t operationOf(State &state, const cudaKernelNodeParams &p, Operation &operation) {
  KernelLaunch launch;
  const cudaError_t error =
      state.makeLaunch(p.func, p.gridDim, p.blockDim, p.sharedMemBytes, p.kernelParams, launch);
  operation = std::move(launch);
  return error;
}

cudaError_t operationOf(State &state, const cudaMemsetParams &p, Operation &operation) {
  const Fill fill{
      static_cast<std::byte *>(p.dst), p.pitch, p.value, p.elementSize, p.width, p.height};
  operation = fill;
  return fill.width == 0 || fill.height == 0 ? cudaErrorInvalidValue : state.check(fill);
}

cudaError_t operationOf(State &state, void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                        Operation &operation) {
  Copy copy{static_cast<std::byte *>(to),
            bytes,
            static_cast<const std::byte *>(from),
            bytes,
            bytes,
            1,
            kind,
            -1,
            -1,
            nullptr};
  const cudaError_t error = bytes == 0 ? cudaErrorInvalidValue : state.check(copy);
  operation = std::move(copy);
  return error;
}

namespace {

/// A copy of rows. CUDA's arrays, offsets and third dimensions are not supported.
cudaError_t operationOf(State &state, const cudaMemcpy3DParms &p, Operation &operation) {
  if (p.srcArray || p.dstArray || p.extent.depth != 1 || p.srcPos.x || p.srcPos.y || p.srcPos.z ||
      p.dstPos.x || p.dstPos.y || p.dstPos.z)
    return cudaErrorNotSupported;
  if (p.extent.width == 0 || p.extent.height == 0)
    return cudaErrorInvalidValue;
  Copy copy{static_cast<std::byte *>(p.dstPtr.ptr),
            p.dstPtr.pitch,
            static_cast<const std::byte *>(p.srcPtr.ptr),
            p.srcPtr.pitch,
            p.extent.width,
            p.extent.height,
            p.kind,
            -1,
            -1,
            nullptr};
  const cudaError_t error = state.check(copy);
  operation = std::move(copy);
  return error;
}

/// Adds a node unless the graph or a dependency is invalid.
cudaError_t addNode(State &state, cudaGraphNode_t *result, cudaGraph_t graph,
                    const cudaGraphNode_t *from, size_t count, Operation operation) {
  Graph *const to = state.find(graph);
  if (!to)
    return cudaErrorInvalidValue;
  std::vector<Dependency> dependencies;
  for (size_t i = 0; i < count; ++i) {
    Node *const node = state.find(from[i]);
    const bool isDuplicate =
        std::ranges::find(dependencies, node, &Dependency::node) != dependencies.end();
    if (!node || node->graph != to || isDuplicate)
      return cudaErrorInvalidValue;
    dependencies.push_back({node});
  }
  *result = handleOf<cudaGraphNode_t>(
      to->add(std::make_shared<const Operation>(std::move(operation)), std::move(dependencies)));
  return cudaSuccess;
}

/// Adds the node of `parameters`, as operationOf() takes them.
template <class... Parameters>
cudaError_t addNodeOf(State &state, cudaGraphNode_t *result, cudaGraph_t graph,
                      const cudaGraphNode_t *from, size_t count, const Parameters &...parameters) {
  Operation operation;
  const cudaError_t error = operationOf(state, parameters..., operation);
  return error == cudaSuccess ? addNode(state, result, graph, from, count, std::move(operation))
                              : error;
}

/// Calls `read` with the node's operation, which has to be a T.
template <class T, class Read>
cudaError_t readNode(State &state, cudaGraphNode_t handle, const Read &read) {
  Node *const node = state.find(handle);
  const auto *const operation = node ? std::get_if<T>(node->operation.get()) : nullptr;
  return operation ? read(*node, *operation) : cudaErrorInvalidValue;
}

/// Replaces the operation of a node of a graph that is not instantiated.
template <class T, class... Parameters>
cudaError_t setNode(State &state, cudaGraphNode_t handle, const Parameters &...parameters) {
  return readNode<T>(state, handle, [&](Node &node, const T &) {
    Operation operation;
    const cudaError_t error = operationOf(state, parameters..., operation);
    if (error == cudaSuccess)
      node.operation = std::make_shared<const Operation>(std::move(operation));
    return error;
  });
}

} // namespace
} // namespace cgc::test::fake_cuda

using namespace cgc::test::fake_cuda;

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *result, cudaGraph_t graph,
                                   const cudaGraphNode_t *from, size_t count,
                                   const cudaKernelNodeParams *parameters) {
  return api(__func__, [&](State &state) {
    return addNodeOf(state, result, graph, from, count, *parameters);
  });
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams *parameters) {
  return api(__func__, [&](State &state) {
    return readNode<KernelLaunch>(state, node, [&](Node &node, const KernelLaunch &launch) {
      if (!launch.arguments)
        return cudaErrorInvalidDeviceFunction;
      node.parameters = {launch.arguments.get()};
      *parameters = {const_cast<void *>(launch.function),
                     launch.grid,
                     launch.block,
                     launch.sharedBytes,
                     node.parameters.data(),
                     nullptr};
      return cudaSuccess;
    });
  });
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                         const cudaKernelNodeParams *parameters) {
  return api(__func__,
             [&](State &state) { return setNode<KernelLaunch>(state, node, *parameters); });
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *result, cudaGraph_t graph,
                                   const cudaGraphNode_t *from, size_t count,
                                   const cudaMemcpy3DParms *parameters) {
  return api(__func__, [&](State &state) {
    return addNodeOf(state, result, graph, from, count, *parameters);
  });
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *result, cudaGraph_t graph,
                                     const cudaGraphNode_t *from, size_t count, void *to,
                                     const void *source, size_t bytes, cudaMemcpyKind kind) {
  return api(__func__, [&](State &state) {
    return addNodeOf(state, result, graph, from, count, to, source, bytes, kind);
  });
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from,
                                           size_t bytes, cudaMemcpyKind kind) {
  return api(__func__,
             [&](State &state) { return setNode<Copy>(state, node, to, from, bytes, kind); });
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms *parameters) {
  return api(__func__, [&](State &state) {
    return readNode<Copy>(state, node, [&](Node &, const Copy &copy) {
      *parameters = {};
      parameters->srcPtr = {const_cast<std::byte *>(copy.from), copy.fromPitch, copy.width,
                            copy.height};
      parameters->dstPtr = {copy.to, copy.toPitch, copy.width, copy.height};
      parameters->extent = {copy.width, copy.height, 1};
      parameters->kind = copy.kind;
      return cudaSuccess;
    });
  });
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *result, cudaGraph_t graph,
                                   const cudaGraphNode_t *from, size_t count,
                                   const cudaMemsetParams *parameters) {
  return api(__func__, [&](State &state) {
    return addNodeOf(state, result, graph, from, count, *parameters);
  });
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams *parameters) {
  return api(__func__, [&](State &state) { return setNode<Fill>(state, node, *parameters); });
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams *parameters) {
  return api(__func__, [&](State &state) {
    return readNode<Fill>(state, node, [&](Node &, const Fill &fill) {
      *parameters = {fill.to, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height};
      return cudaSuccess;
    });
  });
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *result, cudaGraph_t graph,
                                 const cudaGraphNode_t *from, size_t count,
                                 const cudaHostNodeParams *parameters) {
  return api(__func__, [&](State &state) {
    return parameters->fn ? addNode(state, result, graph, from, count,
                                    HostCall{parameters->fn, parameters->userData})
                          : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *result, cudaGraph_t graph,
                                  const cudaGraphNode_t *from, size_t count) {
  return api(__func__,
             [&](State &state) { return addNode(state, result, graph, from, count, Empty{}); });
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *result, cudaGraph_t graph,
                                       const cudaGraphNode_t *from, size_t count,
                                       cudaGraph_t child) {
  return api(__func__, [&](State &state) {
    const Graph *const original = state.find(child);
    return original ? addNode(state, result, graph, from, count, ChildGraph{original->clone()})
                    : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph) {
  return api(__func__, [&](State &state) {
    return readNode<ChildGraph>(state, node, [&](Node &, const ChildGraph &child) {
      *graph = handleOf<cudaGraph_t>(child.graph.get());
      return cudaSuccess;
    });
  });
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *result, cudaGraph_t graph,
                                        const cudaGraphNode_t *from, size_t count,
                                        cudaEvent_t handle) {
  return api(__func__, [&](State &state) {
    const std::shared_ptr<Event> event = state.find(handle);
    return event ? addNode(state, result, graph, from, count, EventRecord{event})
                 : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *result, cudaGraph_t graph,
                                      const cudaGraphNode_t *from, size_t count,
                                      cudaEvent_t handle) {
  return api(__func__, [&](State &state) {
    const std::shared_ptr<Event> event = state.find(handle);
    return event ? addNode(state, result, graph, from, count, EventWait{event})
                 : cudaErrorInvalidValue;
  });
}
