// The fake GPU's graphs: their nodes and edges, and the functions that build and read them.
#include "tests/fake_cuda/graph_functions.h"

#include <algorithm>

namespace cgc::test::fake_cuda {

Graph::Graph() {
  State::get().allGraphs.insert(this);
}

Graph::~Graph() {
  State &state = State::get();
  state.allGraphs.erase(this);
  for (const std::unique_ptr<Node> &node : nodes_)
    state.allNodes.erase(node.get());
}

Node *Graph::add(std::shared_ptr<const Operation> operation, std::vector<Dependency> dependencies) {
  nodes_.push_back(std::make_unique<Node>());
  Node *const node = nodes_.back().get();
  node->graph = this;
  node->operation = std::move(operation);
  node->dependencies = std::move(dependencies);
  State::get().allNodes.insert(node);
  return node;
}

std::shared_ptr<Graph> Graph::clone() const {
  const auto clone = std::make_shared<Graph>();
  clone->userObjects = userObjects;
  std::unordered_map<const Node *, Node *> cloneOf;
  for (const std::unique_ptr<Node> &node : nodes_) {
    std::shared_ptr<const Operation> operation = node->operation;
    if (const auto *child = std::get_if<ChildGraph>(operation.get()))
      operation = std::make_shared<const Operation>(ChildGraph{child->graph->clone()});
    cloneOf[node.get()] = clone->add(std::move(operation), {});
    cloneOf[node.get()]->original = node.get();
  }
  for (const std::unique_ptr<Node> &node : nodes_)
    for (const Dependency &d : node->dependencies)
      cloneOf[node.get()]->dependencies.push_back({cloneOf[d.node], d.data});
  return clone;
}

bool reaches(const std::vector<Dependency> &from, const Node *node) {
  std::vector<const Node *> waiting;
  std::unordered_set<const Node *> seen;
  const auto visit = [&](const std::vector<Dependency> &dependencies) {
    for (const Dependency &d : dependencies)
      if (seen.insert(d.node).second)
        waiting.push_back(d.node);
  };
  visit(from);
  while (!waiting.empty()) {
    const Node *const next = waiting.back();
    waiting.pop_back();
    visit(next->dependencies);
  }
  return seen.contains(node);
}

Graph *State::find(cudaGraph_t handle) const {
  auto *const graph = reinterpret_cast<Graph *>(handle);
  return allGraphs.contains(graph) ? graph : nullptr;
}

Node *State::find(cudaGraphNode_t handle) const {
  auto *const node = reinterpret_cast<Node *>(handle);
  return allNodes.contains(node) ? node : nullptr;
}

} // namespace cgc::test::fake_cuda

using namespace cgc::test::fake_cuda;

namespace {

/// Gives out a list as CUDA does: only its size if there is no room (`isWanted`). `set` is called
/// for each entry of the room, with false for those behind the list.
template <class Set> cudaError_t give(size_t size, bool isWanted, size_t *count, const Set &set) {
  if (!isWanted) {
    *count = size;
    return cudaSuccess;
  }
  for (size_t i = 0; i < *count; ++i)
    set(i, i < size);
  *count = std::min(*count, size);
  return cudaSuccess;
}

/// The nodes of a graph that `isMeant` accepts.
template <class IsMeant>
cudaError_t giveNodesOf(State &state, cudaGraph_t handle, cudaGraphNode_t *to, size_t *count,
                        const IsMeant &isMeant) {
  const Graph *const graph = state.find(handle);
  if (!graph)
    return cudaErrorInvalidValue;
  std::vector<Node *> nodes;
  for (const std::unique_ptr<Node> &node : graph->nodes())
    if (isMeant(*node))
      nodes.push_back(node.get());
  return give(nodes.size(), to, count, [&](size_t i, bool exists) {
    to[i] = handleOf<cudaGraphNode_t>(exists ? nodes[i] : nullptr);
  });
}

struct Edge {
  Node *from, *to;
  cudaGraphEdgeData data;
};

cudaError_t giveEdges(const std::vector<Edge> &edges, cudaGraphNode_t *from, cudaGraphNode_t *to,
                      cudaGraphEdgeData *data, size_t *count) {
  const bool areDefault = std::ranges::all_of(
      edges, [](const Edge &e) { return e.data.type == cudaGraphDependencyTypeDefault; });
  if (from && !data && !areDefault)
    return cudaErrorLossyQuery;
  return give(edges.size(), from, count, [&](size_t i, bool exists) {
    const Edge edge = exists ? edges[i] : Edge{};
    from[i] = handleOf<cudaGraphNode_t>(edge.from);
    if (to)
      to[i] = handleOf<cudaGraphNode_t>(edge.to);
    if (data)
      data[i] = edge.data;
  });
}

} // namespace

cudaError_t cudaGraphCreate(cudaGraph_t *result, unsigned) {
  return api(__func__, [&](State &state) {
    state.currentCall().allocates = true;
    *result = own(state, std::make_shared<Graph>());
    return cudaSuccess;
  });
}

cudaError_t cudaGraphClone(cudaGraph_t *result, cudaGraph_t original) {
  return api(__func__, [&](State &state) {
    const Graph *const graph = state.find(original);
    if (!graph)
      return cudaErrorInvalidValue;
    state.currentCall().allocates = true;
    *result = own(state, graph->clone());
    return cudaSuccess;
  });
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *result, cudaGraphNode_t original,
                                     cudaGraph_t clone) {
  return api(__func__, [&](State &state) {
    const Graph *const graph = state.find(clone);
    const Node *const node = state.find(original);
    if (!graph || !node)
      return cudaErrorInvalidValue;
    for (const std::unique_ptr<Node> &candidate : graph->nodes())
      if (candidate->original == node) {
        *result = handleOf<cudaGraphNode_t>(candidate.get());
        return cudaSuccess;
      }
    return cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
  return freeingApi(__func__, [&](State &state) {
    state.currentCall().allocates = true;
    // Neither a child graph nor one that is being captured is the user's.
    return state.graphs.erase(reinterpret_cast<Graph *>(handle)) == 1 ? cudaSuccess
                                                                      : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  return api(__func__, [&](State &state) {
    return giveNodesOf(state, graph, nodes, count, [](const Node &) { return true; });
  });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  return api(__func__, [&](State &state) {
    return giveNodesOf(state, graph, nodes, count,
                       [](const Node &node) { return node.dependencies.empty(); });
  });
}

cudaError_t cudaGraphGetEdges(cudaGraph_t handle, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              cudaGraphEdgeData *data, size_t *count) {
  return api(__func__, [&](State &state) {
    const Graph *const graph = state.find(handle);
    if (!graph || !from != !to)
      return cudaErrorInvalidValue;
    std::vector<Edge> edges;
    for (const std::unique_ptr<Node> &node : graph->nodes())
      for (const Dependency &d : node->dependencies)
        edges.push_back({d.node, node.get(), d.data});
    return giveEdges(edges, from, to, data, count);
  });
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t handle, cudaGraphNode_t *from,
                                         cudaGraphEdgeData *data, size_t *count) {
  return api(__func__, [&](State &state) {
    Node *const node = state.find(handle);
    if (!node)
      return cudaErrorInvalidValue;
    std::vector<Edge> edges;
    for (const Dependency &d : node->dependencies)
      edges.push_back({d.node, node, d.data});
    return giveEdges(edges, from, nullptr, data, count);
  });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t handle, cudaGraphNodeType *type) {
  return api(__func__, [&](State &state) {
    const Node *const node = state.find(handle);
    if (!node)
      return cudaErrorInvalidValue;
    *type = typeOf(*node->operation);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, const cudaGraphEdgeData *data,
                                     size_t count) {
  return api(__func__, [&](State &state) {
    for (size_t i = 0; i < count; ++i) {
      Node *const first = state.find(from[i]), *const second = state.find(to[i]);
      if (!first || !second || first->graph != state.find(graph) || second->graph != first->graph ||
          std::ranges::find(second->dependencies, first, &Dependency::node) !=
              second->dependencies.end())
        return cudaErrorInvalidValue;
      second->dependencies.push_back({first, data ? data[i] : cudaGraphEdgeData{}});
    }
    return cudaSuccess;
  });
}
