// Graph: nodes with edges, and GraphExec: an instantiated graph.
#pragma once

#include "tests/fake_cuda/operation.h"
#include "tests/fake_cuda/streams.h"

#include <random>
#include <unordered_map>

namespace cgc::test::fake_cuda {

struct Node {
  Graph *graph;
  const Node *original = nullptr; ///< If the graph is a clone, the node that this one is of.
  std::shared_ptr<const Operation> operation; ///< Replaced as a whole by an update.
  std::vector<Dependency> dependencies;
  /// The array that cudaGraphKernelNodeGetParams returns.
  std::vector<void *> parameters;
};

/// Calls a destructor when the last reference to it is gone, as a user object of CUDA does.
class UserObject {
public:
  UserObject(void *data, cudaHostFn_t destroy) : data_(data), destroy_(destroy) {}
  UserObject(const UserObject &) = delete;
  UserObject &operator=(const UserObject &) = delete;
  ~UserObject();

private:
  void *data_;
  cudaHostFn_t destroy_;
};
using UserObjects = std::vector<std::shared_ptr<UserObject>>;

/// A graph. Its handle and those of its nodes are valid while it lives.
class Graph {
public:
  Graph();
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
  ~Graph();

  Node *add(std::shared_ptr<const Operation> operation, std::vector<Dependency> dependencies);
  /// A copy with copies of its child graphs. The nodes keep their order.
  std::shared_ptr<Graph> clone() const;
  const std::vector<std::unique_ptr<Node>> &nodes() const { return nodes_; }
  UserObjects userObjects; ///< One for each reference. A clone has them, too.

private:
  std::vector<std::unique_ptr<Node>> nodes_;
};

/// Whether `node` is in `from`, or one of `from` depends on it.
bool reaches(const std::vector<Dependency> &from, const Node *node);

struct GraphExec {
  std::shared_ptr<Graph> graph;
  /// The nodes of `graph` by the nodes of the graph that was instantiated.
  std::unordered_map<const Node *, Node *> nodeOf;
  Point lastLaunch; ///< The next launch waits for it.
  int device;
  uint64_t bytes; ///< Memory of the device.
};

/// A node of a launch. Those of child graphs lie in the same list.
struct LaunchNode {
  std::shared_ptr<const Operation> operation;
  std::vector<size_t> dependencies;
  std::shared_ptr<Record> record; ///< For an event record.
};
std::vector<LaunchNode> launchNodes(const Graph &graph);
/// A random order that respects the edges. Shorter than `nodes` if there is a cycle.
std::vector<size_t> randomOrder(const std::vector<LaunchNode> &nodes, std::mt19937 &random);

} // namespace cgc::test::fake_cuda
