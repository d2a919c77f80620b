// Module summary: counts ops and parameters, and formats text and JSON.
#include "tools/cgc/report/module_summary.h"

#include "tools/cgc/cli/console.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace cgc::tool {

namespace {

using Json = nlohmann::ordered_json;

struct Summary {
  size_t modules = 0, parameters = 0;
  uint64_t bytes = 0;
  std::map<std::string, size_t> ops;            ///< Counts over every method of every module.
  std::map<std::string, uint64_t> bytesByDtype; ///< Sizes of parameters and buffers.
};

void summarize(const ir::Module &module, Summary &summary) {
  ++summary.modules;
  for (const ir::Parameter &parameter : module.parameters()) {
    ++summary.parameters;
    summary.bytes += parameter.type.numBytes();
    summary.bytesByDtype[std::string(dtypeName(parameter.type.dtype))] += parameter.type.numBytes();
  }
  for (const auto &graph : module.graphs())
    for (const ir::Node &node : *graph)
      if (node.kind() == ir::NodeKind::CallFunction)
        ++summary.ops[ir::opName(node.op()).str()];
  for (const auto &child : module.submodules())
    summarize(*child, summary);
}

std::vector<std::string> describeInputs(const ir::Graph &graph) {
  std::vector<std::string> inputs;
  for (const ir::Value *input : graph.inputs())
    inputs.push_back(input->type().isDynamic()
                         ? input->name()
                         : fmt::format("{}: {}", input->name(), ir::toString(input->type())));
  return inputs;
}

/// The number of outputs. A list counts as one.
size_t numOutputs(const ir::Graph &graph) {
  return graph.output() ? graph.output()->args().size() : 0;
}

std::string describeOutputs(const ir::Graph &graph) {
  return graph.outputNames().empty() ? std::to_string(numOutputs(graph))
                                     : joinNames(graph.outputNames());
}

} // namespace

Json moduleJson(const ir::Module &root, const std::string &path) {
  Summary summary;
  summarize(root, summary);
  Json methods = Json::array();
  for (const auto &graph : root.graphs()) {
    Json inputs = Json::array();
    for (const ir::Value *input : graph->inputs())
      inputs.push_back({{"name", input->name()}, {"type", ir::toString(input->type())}});
    methods.push_back({{"name", graph->name()},
                       {"inputs", std::move(inputs)},
                       {"outputs", numOutputs(*graph)},
                       {"output_names", graph->outputNames()},
                       {"nodes", graph->size()}});
  }
  return {{"path", path},
          {"class", root.className()},
          {"modules", summary.modules},
          {"parameters", summary.parameters},
          {"parameter_bytes", summary.bytes},
          {"parameter_bytes_by_dtype", summary.bytesByDtype},
          {"methods", std::move(methods)},
          {"ops", summary.ops}};
}

std::string moduleText(const ir::Module &root, const std::string &path) {
  Summary summary;
  summarize(root, summary);
  std::string dtypes;
  for (const auto &[dtype, bytes] : summary.bytesByDtype)
    dtypes += fmt::format("{}{} {}", dtypes.empty() ? "" : ", ", dtype, formatBytes(bytes));
  std::string text = fmt::format("{}: {}\n  {} modules, {} parameters and buffers, {}{}\n\n", path,
                                 root.className().empty() ? root.name() : root.className(),
                                 summary.modules, summary.parameters, formatBytes(summary.bytes),
                                 dtypes.empty() ? "" : " (" + dtypes + ")");
  std::vector<std::vector<std::string>> methods = {{"method", "nodes", "inputs", "outputs"}};
  for (const auto &graph : root.graphs())
    methods.push_back({graph->name(), std::to_string(graph->size()),
                       joinNames(describeInputs(*graph)), describeOutputs(*graph)});
  text += formatTable(methods) + "\n";
  std::vector<std::pair<std::string, size_t>> ops(summary.ops.begin(), summary.ops.end());
  std::ranges::stable_sort(ops, std::greater(), &std::pair<std::string, size_t>::second);
  std::vector<std::vector<std::string>> histogram = {{"op", "count"}};
  for (const auto &[op, count] : ops)
    histogram.push_back({op, std::to_string(count)});
  return text + formatTable(histogram);
}

} // namespace cgc::tool
