// GridCall: reads the choices of a grid, and makes the call with LibTorch.
#include "tests/numerics/grid_call.h"

#include "ir/text/text.h"
#include "tests/numerics/libtorch_call.h"
#include "tests/numerics/lowered_graph.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <set>

namespace cgc::test {
namespace {

using ir::Arg;
using ir::TensorType;

/// Calls of a grid that are tried at most.
constexpr size_t kTriedCalls = 4000;

/// Adds the numbers at which rules have cases to the choices of an argument that has numbers.
void addEdges(std::vector<std::string> &choices) {
  for (const std::string &choice : std::vector(choices)) {
    double number = 0;
    if (llvm::StringRef(choice).getAsDouble(number))
      continue;
    const bool isReal = choice.find('.') != std::string::npos;
    for (const char *edge : {"0", "1", "-1"})
      if (const std::string text = edge + std::string(isReal ? ".0" : "");
          !llvm::is_contained(choices, text))
        choices.push_back(text);
  }
}

} // namespace

GridCall::GridCall(const Grid &grid, const std::vector<std::string> &texts) : grid_(grid) {
  for (const std::string &text : texts)
    args_.push_back(parse(text));
}

std::optional<at::Tensor> GridCall::self() const {
  return args_[0].isValue() ? std::optional(tensors_.at(args_[0].value())) : std::nullopt;
}

bool GridCall::allContiguous() const {
  for (const auto &[value, tensor] : tensors_)
    if (!tensor.is_contiguous())
      return false;
  return true;
}

std::string GridCall::text(llvm::ArrayRef<ir::Inferred> results) const {
  ir::Graph graph("g");
  std::vector<Arg> args = args_;
  for (Arg &arg : args)
    arg.mapValues([&](ir::Value *value) {
      return Arg(graph.placeholder("t", value->tensor(), ir::Loc::unknown())->result());
    });
  ir::Node *node = graph.call(grid_.op, std::move(args), results.size(), ir::Loc::unknown());
  std::vector<Arg> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    node->result(i)->setType(results[i].type);
    outputs.emplace_back(node->result(i));
  }
  graph.createOutput(std::move(outputs), ir::Loc::unknown());
  return ir::toString(graph);
}

std::optional<std::vector<at::Tensor>> GridCall::runLibTorch(std::string &error) const {
  const size_t dot = grid_.overload.find('.');
  auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
      grid_.overload.substr(0, dot).c_str(),
      dot == std::string::npos ? "" : grid_.overload.substr(dot + 1).c_str());
  auto stack =
      stackOf(op, grid_.op, args_, [this](const ir::Value *value) { return tensors_.at(value); });
  if (!stack) {
    ADD_FAILURE() << grid_.where << ": " << grid_.overload << " does not take the arguments";
    return std::nullopt;
  }
  try {
    return callBoxed(op, *std::move(stack));
  } catch (const c10::Error &e) {
    error = e.what_without_backtrace(); // Resolving the symbols of a backtrace would take most of
                                        // the time.
  } catch (const std::exception &e) {
    error = e.what();
  }
  return std::nullopt;
}

Arg GridCall::parse(llvm::StringRef text) {
  text = text.trim();
  for (const auto &[open, close, separator] : {std::tuple("{", "}", ';'), {"[", "]", ','}}) {
    if (!text.consume_front(open))
      continue;
    text.consume_back(close);
    llvm::SmallVector<llvm::StringRef, 4> parts;
    text.split(parts, separator, -1, /*KeepEmpty=*/false);
    Arg::List list;
    for (llvm::StringRef part : parts)
      list.push_back(parse(part));
    return Arg(std::move(list));
  }
  if (auto type = ir::parseTensorType(text))
    return tensor(*type);
  if (auto dtype = parseDType(text))
    return Arg(*dtype);
  if (text == "none")
    return {};
  if (text == "true" || text == "false")
    return Arg(text == "true");
  if (text == "inf")
    return Arg(std::numeric_limits<double>::infinity());
  if (text.consume_front("\""))
    return Arg(text.drop_back().str());
  int64_t integer;
  if (!text.getAsInteger(10, integer))
    return Arg(integer);
  double real = 0;
  EXPECT_FALSE(text.getAsDouble(real)) << "unreadable choice " << text.str();
  return Arg(real);
}

Arg GridCall::tensor(const TensorType &type) {
  ir::Value *value = graph_.placeholder("t", type, ir::Loc::unknown())->result();
  int64_t extent = 1;
  for (int64_t i = 0; i < type.rank(); ++i)
    extent += std::max<int64_t>(type.sizes[i] - 1, 0) * type.strides[i];
  at::Tensor storage = at::empty({extent}, torchType(type.dtype)).fill_(grid_.fill);
  tensors_[value] = storage.as_strided(at::IntArrayRef(type.sizes.data(), type.sizes.size()),
                                       at::IntArrayRef(type.strides.data(), type.strides.size()));
  return Arg(value);
}

size_t numCalls(const Grid &grid) {
  size_t total = 1;
  for (const auto &choices : grid.args)
    total *= choices.size();
  return total;
}

std::vector<std::string> choose(const Grid &grid, size_t number) {
  std::vector<std::string> texts;
  for (const auto &choices : grid.args) {
    texts.push_back(choices[number % choices.size()]);
    number /= choices.size();
  }
  return texts;
}

std::vector<Grid> gridsOfValues() {
  std::vector<Grid> grids = opTests().grids;
  for (Grid &grid : grids)
    llvm::for_each(grid.args, addEdges);
  std::erase_if(grids, [](const Grid &grid) {
    return llvm::is_contained({ir::OpKind::Rand, ir::OpKind::RandLike, ir::OpKind::Randn,
                               ir::OpKind::RandnLike, ir::OpKind::Bernoulli},
                              grid.op);
  });
  return grids;
}

std::optional<std::string> acceptedCall(const Grid &grid, const std::vector<std::string> &texts) {
  const GridCall call(grid, texts);
  const auto inferred = ir::inferResults(grid.op, call.args(), DeviceKind::Cpu);
  std::string error;
  if (!call.allContiguous() || !inferred.isOk() || inferred->empty() || !call.runLibTorch(error))
    return std::nullopt;
  return call.text(*inferred);
}

void forEachChoice(const Grid &grid,
                   llvm::function_ref<bool(const std::vector<std::string> &texts)> compare) {
  std::vector<size_t> order(numCalls(grid));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, std::mt19937(1)); // NOLINT: the same calls in each run.
  order.resize(std::min(order.size(), kTriedCalls));
  std::set<std::pair<size_t, std::string>> compared; // Choices of arguments.
  for (const size_t number : order) {
    const std::vector<std::string> texts = choose(grid, number);
    bool isNew = false;
    for (size_t i = 0; i < texts.size(); ++i)
      isNew |= !compared.contains({i, texts[i]});
    if (isNew && compare(texts))
      for (size_t i = 0; i < texts.size(); ++i)
        compared.insert({i, texts[i]});
  }
}

} // namespace cgc::test
