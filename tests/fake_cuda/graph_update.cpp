// Updates of the fake GPU's executable graphs: of one node, or of all from another graph.
#include "tests/fake_cuda/graph_functions.h"

#include <algorithm>

namespace cgc::test::fake_cuda {
namespace {

/// The node of `exec` that stands for `node`, if its operation is a T; else null.
template <class T> Node *nodeToUpdate(State &state, cudaGraphExec_t exec, cudaGraphNode_t node) {
  const std::shared_ptr<GraphExec> found = state.find(exec);
  const Node *const original = state.find(node);
  if (!found || !original || !found->nodeOf.contains(original))
    return nullptr;
  Node *const own = found->nodeOf.at(original);
  return std::holds_alternative<T>(*own->operation) ? own : nullptr;
}

/// Whether an update may replace a copy: both are of one row, in memory of the same devices.
bool isSameMapping(const Copy &a, const Copy &b) {
  return a.height == 1 && b.height == 1 && a.toDevice == b.toDevice && a.fromDevice == b.fromDevice;
}

cudaGraphExecUpdateResult updateNodes(Graph &to, const Graph &from, cudaGraphNode_t &errorNode);

/// Replaces a node's operation by one of the same type, or says why not.
cudaGraphExecUpdateResult updateNode(Node &to, const Node &from, cudaGraphNode_t &errorNode) {
  if (const auto *copy = std::get_if<Copy>(from.operation.get());
      copy && !isSameMapping(*copy, std::get<Copy>(*to.operation)))
    return cudaGraphExecUpdateErrorParametersChanged;
  if (const auto *launch = std::get_if<KernelLaunch>(from.operation.get());
      launch && launch->device != std::get<KernelLaunch>(*to.operation).device)
    return cudaGraphExecUpdateErrorUnsupportedFunctionChange;
  if (const auto *child = std::get_if<ChildGraph>(from.operation.get()))
    return updateNodes(*std::get<ChildGraph>(*to.operation).graph, *child->graph, errorNode);
  to.operation = from.operation;
  return cudaGraphExecUpdateSuccess;
}

/// The nodes of two graphs correspond in their order.
cudaGraphExecUpdateResult updateNodes(Graph &to, const Graph &from, cudaGraphNode_t &errorNode) {
  if (to.nodes().size() != from.nodes().size())
    return cudaGraphExecUpdateErrorTopologyChanged;
  std::unordered_map<const Node *, const Node *> ownOf;
  for (size_t i = 0; i < from.nodes().size(); ++i)
    ownOf[from.nodes()[i].get()] = to.nodes()[i].get();
  for (size_t i = 0; i < from.nodes().size(); ++i) {
    const Node &theirs = *from.nodes()[i], &own = *to.nodes()[i];
    errorNode = handleOf<cudaGraphNode_t>(const_cast<Node *>(&theirs));
    if (theirs.operation->index() != own.operation->index())
      return cudaGraphExecUpdateErrorNodeTypeChanged;
    if (!std::ranges::equal(theirs.dependencies, own.dependencies,
                            [&](const Dependency &a, const Dependency &b) {
                              return ownOf[a.node] == b.node && a.data.type == b.data.type;
                            }))
      return cudaGraphExecUpdateErrorTopologyChanged;
  }
  for (size_t i = 0; i < from.nodes().size(); ++i) {
    cudaGraphNode_t inner = handleOf<cudaGraphNode_t>(from.nodes()[i].get());
    if (const auto result = updateNode(*to.nodes()[i], *from.nodes()[i], inner);
        result != cudaGraphExecUpdateSuccess) {
      errorNode = inner;
      return result;
    }
  }
  errorNode = nullptr;
  return cudaGraphExecUpdateSuccess;
}

} // namespace
} // namespace cgc::test::fake_cuda

using namespace cgc::test::fake_cuda;

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t handle, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *info) {
  return api(__func__, [&](State &state) {
    const std::shared_ptr<GraphExec> exec = state.find(handle);
    const Graph *const from = state.find(graph);
    if (!exec || !from)
      return cudaErrorInvalidValue;
    *info = {};
    // An update that fails changes nothing.
    const std::shared_ptr<Graph> updated = exec->graph->clone();
    info->result = updateNodes(*updated, *from, info->errorNode);
    if (info->result != cudaGraphExecUpdateSuccess)
      return cudaErrorGraphExecUpdateFailure;
    return static_cast<cudaError_t>(updateNodes(*exec->graph, *from, info->errorNode) ==
                                            cudaGraphExecUpdateSuccess
                                        ? cudaSuccess
                                        : cudaErrorUnknown);
  });
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams *parameters) {
  return api(__func__, [&](State &state) {
    Node *const own = nodeToUpdate<KernelLaunch>(state, exec, node);
    Operation operation;
    if (!own)
      return cudaErrorInvalidValue;
    if (const cudaError_t error = operationOf(state, *parameters, operation); error != cudaSuccess)
      return error;
    if (std::get<KernelLaunch>(operation).device != std::get<KernelLaunch>(*own->operation).device)
      return cudaErrorInvalidValue;
    own->operation = std::make_shared<const Operation>(std::move(operation));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to,
                                               const void *from, size_t bytes,
                                               cudaMemcpyKind kind) {
  return api(__func__, [&](State &state) {
    Node *const own = nodeToUpdate<Copy>(state, exec, node);
    Operation operation;
    if (!own)
      return cudaErrorInvalidValue;
    if (const cudaError_t error = operationOf(state, to, from, bytes, kind, operation);
        error != cudaSuccess)
      return error;
    if (!isSameMapping(std::get<Copy>(operation), std::get<Copy>(*own->operation)))
      return cudaErrorInvalidValue;
    own->operation = std::make_shared<const Operation>(std::move(operation));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams *parameters) {
  return api(__func__, [&](State &state) {
    Node *const own = nodeToUpdate<Fill>(state, exec, node);
    Operation operation;
    if (!own)
      return cudaErrorInvalidValue;
    if (const cudaError_t error = operationOf(state, *parameters, operation); error != cudaSuccess)
      return error;
    own->operation = std::make_shared<const Operation>(std::move(operation));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaGraph_t child) {
  return api(__func__, [&](State &state) {
    Node *const own = nodeToUpdate<ChildGraph>(state, exec, node);
    const Graph *const from = state.find(child);
    if (!own || !from)
      return cudaErrorInvalidValue;
    const std::shared_ptr<Graph> updated = std::get<ChildGraph>(*own->operation).graph->clone();
    cudaGraphNode_t errorNode = nullptr;
    if (updateNodes(*updated, *from, errorNode) != cudaGraphExecUpdateSuccess)
      return cudaErrorInvalidValue;
    own->operation = std::make_shared<const Operation>(ChildGraph{updated});
    return cudaSuccess;
  });
}
