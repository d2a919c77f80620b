// The fake GPU's executable graphs: instantiation and launch.
#include "tests/fake_cuda/state.h"

namespace cgc::test::fake_cuda {
namespace {

/// Appends the nodes of `graph`. Its roots depend on node `entry`, if there is one.
void append(const Graph &graph, std::optional<size_t> entry, std::vector<LaunchNode> &to) {
  static const auto kEmpty = std::make_shared<const Operation>(Empty{});
  // A child graph begins and ends with an empty node; any other node begins and ends with itself.
  std::unordered_map<const Node *, size_t> beginOf, endOf;
  for (const std::unique_ptr<Node> &node : graph.nodes()) {
    const size_t begin = beginOf[node.get()] = to.size();
    const auto *const child = std::get_if<ChildGraph>(node->operation.get());
    to.push_back({child ? kEmpty : node->operation, {}, nullptr});
    if (std::holds_alternative<EventRecord>(*node->operation))
      to.back().record = std::make_shared<Record>();
    if (child) {
      append(*child->graph, begin, to);
      LaunchNode end{kEmpty, {}, nullptr};
      for (size_t i = begin; i < to.size(); ++i)
        end.dependencies.push_back(i);
      to.push_back(std::move(end));
    }
    endOf[node.get()] = to.size() - 1;
  }
  for (const std::unique_ptr<Node> &node : graph.nodes()) {
    std::vector<size_t> &dependencies = to[beginOf[node.get()]].dependencies;
    for (const Dependency &d : node->dependencies)
      dependencies.push_back(endOf[d.node]);
    if (node->dependencies.empty() && entry)
      dependencies.push_back(*entry);
  }
}

} // namespace

std::shared_ptr<GraphExec> State::find(cudaGraphExec_t handle) const {
  const auto at = execs.find(reinterpret_cast<GraphExec *>(handle));
  return at == execs.end() ? nullptr : at->second;
}

std::vector<LaunchNode> launchNodes(const Graph &graph) {
  std::vector<LaunchNode> nodes;
  append(graph, std::nullopt, nodes);
  return nodes;
}

std::vector<size_t> randomOrder(const std::vector<LaunchNode> &nodes, std::mt19937 &random) {
  std::vector<size_t> missing(nodes.size()), ready, order;
  std::vector<std::vector<size_t>> dependents(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    missing[i] = nodes[i].dependencies.size();
    for (const size_t d : nodes[i].dependencies)
      dependents[d].push_back(i);
    if (missing[i] == 0)
      ready.push_back(i);
  }
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    const size_t next = ready.back();
    ready.pop_back();
    order.push_back(next);
    for (const size_t d : dependents[next])
      if (--missing[d] == 0)
        ready.push_back(d);
  }
  return order;
}

namespace {

cudaError_t instantiate(State &state, cudaGraphExec_t *result, cudaGraph_t handle) {
  const Graph *const graph = state.find(handle);
  if (!graph)
    return cudaErrorInvalidValue;
  const std::vector<LaunchNode> nodes = launchNodes(*graph);
  if (randomOrder(nodes, state.random).size() != nodes.size())
    return cudaErrorInvalidValue; // A cycle.
  if (const cudaError_t error = state.refuseUnsafe(); error != cudaSuccess)
    return error;
  if (!state.hasRoom(thisThread.device, state.execBytes))
    return cudaErrorMemoryAllocation;
  const auto exec = std::make_shared<GraphExec>();
  exec->device = thisThread.device;
  exec->bytes = state.execBytes;
  exec->graph = graph->clone();
  for (size_t i = 0; i < graph->nodes().size(); ++i)
    exec->nodeOf[graph->nodes()[i].get()] = exec->graph->nodes()[i].get();
  state.currentCall().allocates = true;
  state.execs.emplace(exec.get(), exec);
  *result = handleOf<cudaGraphExec_t>(exec.get());
  return cudaSuccess;
}

void runNodes(State &state, const std::vector<LaunchNode> &nodes) {
  for (const size_t i : randomOrder(nodes, state.random)) {
    if (state.sticky != cudaSuccess)
      return;
    if (nodes[i].record)
      nodes[i].record->tick = ++state.ticks;
    else
      state.execute(*nodes[i].operation);
  }
}

cudaError_t launch(State &state, cudaGraphExec_t handle, cudaStream_t streamHandle) {
  const std::shared_ptr<GraphExec> exec = state.find(handle);
  const std::shared_ptr<Stream> stream = state.find(streamHandle);
  if (!exec)
    return cudaErrorInvalidValue;
  if (!stream)
    return cudaErrorInvalidResourceHandle;
  if (stream->capture)
    return state.submit(streamHandle, ChildGraph{exec->graph->clone()});
  if (const cudaError_t error = state.refuseImplicit(*stream); error != cudaSuccess)
    return error;
  const std::vector<LaunchNode> nodes = launchNodes(*exec->graph);
  // References to user objects "are held until the launches have finished executing".
  state.push(stream, [&state, nodes, held = exec->graph] { runNodes(state, nodes); },
             {exec->lastLaunch});
  exec->lastLaunch = State::endOf(stream);
  for (const LaunchNode &node : nodes)
    if (node.record) {
      node.record->point = exec->lastLaunch;
      const std::shared_ptr<Event> &event = std::get<EventRecord>(*node.operation).event;
      event->record = node.record;
      event->capture = nullptr;
    }
  return cudaSuccess;
}

} // namespace
} // namespace cgc::test::fake_cuda

using namespace cgc::test::fake_cuda;

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *result, cudaGraph_t graph, unsigned long long) {
  return api(__func__, [&](State &state) { return instantiate(state, result, graph); });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *result, cudaGraph_t graph,
                                          unsigned long long) {
  return api(__func__, [&](State &state) { return instantiate(state, result, graph); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return freeingApi(__func__, [&](State &state) {
    state.currentCall().allocates = true;
    return state.execs.erase(reinterpret_cast<GraphExec *>(exec)) == 1 ? cudaSuccess
                                                                       : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return api(__func__, stream, [&](State &state) {
    return !state.find(exec)     ? cudaErrorInvalidValue
           : !state.find(stream) ? cudaErrorInvalidResourceHandle
                                 : cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return api(__func__, stream, [&](State &state) { return launch(state, exec, stream); });
}
