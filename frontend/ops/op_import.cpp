// OpImporter: finds the row of an op and matches its arguments by name.
#include "frontend/ops/op_import.h"

#include "ir/op_def.h"
#include "runtime/base/check.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

namespace cgc::frontend {
namespace {

struct Row {
  llvm::StringRef name;
  std::optional<ir::OpKind> op;
  llvm::StringRef spec;
  OpFunction function;
};

constexpr Row kRows[] = {
#define CGC_ATEN(name, op, spec) {name, ir::OpKind::op, spec, nullptr},
#define CGC_ATEN_FN(name, function) {name, std::nullopt, "", function},
#include "frontend/ops/aten.def"
};

/// Returns the row of `name`, or for `aten::x` without one that of cgc's op `aten.x`. Of cgc's own
/// ops, models call `cgc::resize`.
std::optional<Row> findRow(llvm::StringRef name) {
  if (name == "cgc::resize")
    return Row{name, ir::OpKind::CgcResize, "", nullptr};
  for (const Row &row : kRows)
    if (row.name == name)
      return row;
  if (llvm::StringRef plain = name; plain.consume_front("aten::"))
    if (std::optional<ir::OpKind> op = ir::parseOpName("aten." + plain.str()))
      return Row{name, op, "", nullptr};
  return std::nullopt;
}

/// Returns the row of an op, and whether the op is the in-place form of the row's.
std::pair<std::optional<Row>, bool> findRow(const std::string &name, const std::string &overload) {
  std::optional<Row> row = findRow(name + "." + overload);
  if (!row)
    row = findRow(llvm::StringRef(name));
  llvm::StringRef plain = name;
  if (row || plain.ends_with("__") || !plain.consume_back("_"))
    return {row, false};
  row = findRow(plain);
  // An in-place view changes the tensor's metadata, not its elements.
  const bool inPlace = row && row->op && !ir::hasTrait(*row->op, ir::kView);
  return {inPlace ? row : std::nullopt, inPlace};
}

struct Default {
  llvm::StringRef argument;
  ir::Arg value;
};
/// The defaults of ATen's schema that a call may leave out, where rows of aten_defaults.def have
/// them.
llvm::ArrayRef<Default> defaultsOf(const AtenCall &call) {
  static const llvm::StringMap<std::vector<Default>> all = {
  // Never iterated.
#define CGC_ATEN_DEFAULTS(op, ...) {op, {__VA_ARGS__}},
#include "frontend/ops/aten_defaults.def"
  };
  const auto found =
      all.find(call.overload().empty() ? call.name() : call.name() + "." + call.overload());
  return found == all.end() ? llvm::ArrayRef<Default>() : llvm::ArrayRef(found->second);
}

/// Returns true for arguments that control how LibTorch computes, not the result. They are dropped
/// from ops whose schema lacks them.
bool isIgnorable(llvm::StringRef name) {
  return llvm::StringSwitch<bool>(name)
      .Cases("device", "layout", "pin_memory", "memory_format", "non_blocking", true)
      .Cases("requires_grad", "cudnn_enable", "cudnn_enabled", "benchmark", "deterministic", true)
      .Case("allow_tf32", true)
      .Default(false);
}

/// How a row's text maps an argument.
struct Renamed {
  std::string name;
  bool dropped = false;
};
Renamed applySpec(llvm::StringRef spec, llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef, 4> words;
  spec.split(words, ' ', -1, false);
  for (llvm::StringRef word : words) {
    if (word.consume_front("-")) {
      if (word == name)
        return {"", true};
    } else if (auto [from, to] = word.split('='); from == name) {
      return {to.str(), false};
    }
  }
  return {name.str(), false};
}

} // namespace

bool hasRow(const std::string &name, const std::string &overload) {
  return findRow(name, overload).first.has_value();
}

std::optional<size_t> OpImporter::indexOf(llvm::StringRef name) const {
  for (size_t i = 0; i < call_.numArgs(); ++i)
    if (call_.argName(i) == name)
      return i;
  return std::nullopt;
}

ir::Arg OpImporter::argAt(size_t i, bool mayBeNumber) {
  readArgs_.set(static_cast<unsigned>(i));
  Result<ir::Arg> arg = call_.arg(i, mayBeNumber);
  return arg.isOk() ? *std::move(arg) : refuse(arg.status().message());
}

ir::Arg OpImporter::arg(llvm::StringRef name) {
  if (const std::optional<size_t> index = indexOf(name))
    return argAt(*index, false);
  const llvm::ArrayRef<Default> defaults = defaultsOf(call_);
  const auto found =
      llvm::find_if(defaults, [&](const Default &each) { return each.argument == name; });
  return found == defaults.end() ? ir::Arg() : found->value;
}

ir::Arg OpImporter::argOr(llvm::StringRef name, ir::Arg otherwise) {
  ir::Arg value = arg(name);
  if (value.isNone())
    return otherwise;
  if (!value.isValue() || !call_.mayBeNone(*indexOf(name)))
    return value;
  return choose(emit(ir::OpKind::PrimIs, {{"a", value}, {"b", ir::Arg()}}), otherwise, value);
}

ir::Arg OpImporter::constant(llvm::StringRef name) {
  ir::Arg value = arg(name);
  if (value.isConstant())
    return value;
  return refuse("cgc takes a constant '" + name.str() + "' of " + call_.name() +
                " only; write the value into the call, or make it an attribute of the module");
}

ir::Arg::List OpImporter::tensors(llvm::StringRef name) {
  const ir::Arg list = arg(name);
  if (list.isList() && !list.list().empty())
    return list.list();
  refuse("cgc takes a list of tensors that the model writes out as '" + name.str() + "' of " +
         call_.name() + "; name its tensors in the call");
  return {};
}

ir::Arg OpImporter::hasRank(const ir::Arg &tensor, int64_t rank) {
  return emit(ir::OpKind::PrimEqual,
              {{"a", emit(ir::OpKind::Dim, {{"self", tensor}})}, {"b", rank}});
}

ir::Arg OpImporter::choose(const ir::Arg &condition, const ir::Arg &then,
                           const ir::Arg &otherwise) {
  return chooseBranch(condition, [&] { return then; }, [&] { return otherwise; });
}

ir::Arg OpImporter::chooseBranch(const ir::Arg &condition, llvm::function_ref<ir::Arg()> then,
                                 llvm::function_ref<ir::Arg()> otherwise) {
  if (const bool *taken = condition.getIf<bool>())
    return *taken ? then() : otherwise();
  const ir::Loc loc = call_.loc();
  ir::Graph &graph = call_.graph();
  graph.call(ir::OpKind::PrimIf, {condition}, 0, loc);
  ir::Arg::List thens = {then()};
  graph.call(ir::OpKind::PrimElse, {}, 0, loc);
  ir::Arg::List others = {otherwise()};
  return graph
      .call(ir::OpKind::PrimEndIf, {ir::Arg(std::move(thens)), ir::Arg(std::move(others))}, 1, loc)
      ->result();
}

void OpImporter::refuseIf(const ir::Arg &condition, std::string message) {
  const ir::Loc loc = call_.loc();
  ir::Graph &graph = call_.graph();
  graph.call(ir::OpKind::PrimIf, {condition}, 0, loc);
  graph.call(ir::OpKind::PrimRaise, {ir::Arg(std::move(message))}, 0, loc);
  graph.call(ir::OpKind::PrimElse, {}, 0, loc);
  graph.call(ir::OpKind::PrimEndIf, {ir::Arg(ir::Arg::List()), ir::Arg(ir::Arg::List())}, 0, loc);
}

ir::Arg OpImporter::refuse(std::string reason, ir::Cause cause) {
  if (!refused_) // The first reason stays.
    refused_ = call_.refuse(std::move(reason), cause);
  return *refused_;
}

ir::Arg OpImporter::onlyResult(ir::Arg first) {
  for (size_t i = 1; i < call_.numResults(); ++i)
    if (call_.isUsed(i))
      return refuse("cgc computes the first result of this op only");
  return first;
}

OpImporter::Results OpImporter::import() {
  const auto [row, inPlace] = findRow(call_.name(), call_.overload());
  if (!row) {
    Results results;
    ir::Node *node = call_.emitFallback();
    for (ir::Value &value : node->results())
      results.push_back(&value);
    return results;
  }
  if (!row->function)
    return importByName(*row->op, row->spec, inPlace);
  ir::Arg value = row->function(*this);
  Results results = {value};
  if (value.isList() && call_.numResults() > 1)
    results.assign(value.list().begin(), value.list().end());
  if (std::optional<ir::Arg> refused = refuseUnreadArgs())
    return {*refused};
  return results;
}

std::optional<ir::Arg> OpImporter::refuseUnreadArgs() {
  if (refused_)
    return std::nullopt;
  for (size_t i = 0; i < call_.numArgs(); ++i) {
    if (readArgs_.test(static_cast<unsigned>(i)) || isIgnorable(call_.argName(i)))
      continue;
    if (const ir::Arg value = argAt(i, true); !value.isNone() && !call_.isDefault(i, value))
      return refuse("cgc does not support the argument '" + call_.argName(i).str() + "' of " +
                    call_.name());
  }
  return std::nullopt;
}

OpImporter::Results OpImporter::importByName(ir::OpKind op, llvm::StringRef spec, bool inPlace) {
  const ir::Schema &schema = ir::opSchema(op);
  std::vector<std::optional<ir::Arg>> given(schema.args.size());
  for (size_t i = 0; i < call_.numArgs(); ++i) {
    Renamed renamed = applySpec(spec, call_.argName(i));
    if (renamed.dropped) {
      readArgs_.set(static_cast<unsigned>(i));
      continue;
    }
    std::optional<unsigned> index = schema.find(renamed.name);
    // Python's and TorchScript's own scalar ops name their operands a and b.
    if (!index && (renamed.name == "a" || renamed.name == "b"))
      index = renamed.name == "a" ? 0 : 1;
    if (index && *index < given.size()) {
      const ir::SchemaArg &expected = schema.args[*index];
      ir::Arg arg = argAt(i, expected.kind != ir::ArgKind::Tensor);
      if (expected.isList && !arg.isNone() && !arg.isList() && !call_.isList(i))
        arg = ir::Arg::List{std::move(arg)};
      given[*index] = std::move(arg);
    }
  }
  if (std::optional<ir::Arg> refused = refuseUnreadArgs())
    return {*refused};
  for (const Default &each : defaultsOf(call_))
    if (const std::optional<unsigned> index = schema.find(applySpec(spec, each.argument).name);
        index && !given[*index])
      given[*index] = each.value;
  std::vector<ir::Arg> args;
  for (size_t i = 0; i < given.size(); ++i) {
    const ir::SchemaArg &expected = schema.args[i];
    bool missing = !given[i] || (given[i]->isNone() && !expected.isOptional);
    args.push_back(!missing                ? std::move(*given[i])
                   : expected.defaultValue ? *expected.defaultValue
                                           : ir::Arg());
  }
  return emitArgs(op, std::move(args), inPlace);
}

ir::Arg OpImporter::emit(ir::OpKind op, llvm::ArrayRef<std::pair<llvm::StringRef, ir::Arg>> named,
                         bool inPlace) {
  const ir::Schema &schema = ir::opSchema(op);
  std::vector<ir::Arg> args;
  for (const ir::SchemaArg &arg : schema.args)
    args.push_back(arg.defaultValue.value_or(ir::Arg()));
  for (const auto &[name, value] : named) {
    std::optional<unsigned> index = schema.find(name);
    CGC_CHECK(index && "the op has no such argument");
    args[*index] = value;
  }
  return emitArgs(op, std::move(args), inPlace).front();
}

OpImporter::Results OpImporter::emitArgs(ir::OpKind op, std::vector<ir::Arg> args, bool inPlace) {
  const ir::Schema &schema = ir::opSchema(op);
  if (Status status = ir::checkArgs(schema, args); !status.isOk())
    return {refuse(call_.name() + ": " + status.message())};
  // Evaluates conditions of branches and trip counts of loops to constants.
  if (isOnHost() || ir::hasTrait(op, ir::kHost))
    if (std::optional<ir::Arg> value = ir::evaluateEarly(op, args))
      return {*value};

  unsigned numResults = schema.numResults;
  std::optional<unsigned> count;
  if (schema.listResult) {
    // If the number of results is unknown here, one result stands for the list.
    count = call_.listLength();
    // The size of the split dimension is unknown, so the number of results of `split` by a number
    // is too.
    if (!count && op == ir::OpKind::Split && args[1].isList())
      count = static_cast<unsigned>(args[1].list().size());
    numResults = count.value_or(1);
  }
  ir::Node *node = call_.graph().call(op, std::move(args), numResults, call_.loc());
  node->setInPlace(inPlace);
  if (count == 1u) // A single result stands for the list.
    node = call_.graph().call(ir::OpKind::PrimUnpack, {node->result()}, 1, call_.loc());
  Results results;
  for (ir::Value &value : node->results())
    results.push_back(&value);
  if (count)
    return {ir::Arg(ir::Arg::List(results.begin(), results.end()))};
  return results;
}

} // namespace cgc::frontend
