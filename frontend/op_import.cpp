// OpImporter: finds the row of an op and matches its arguments by name.
#include "frontend/op_import.h"

#include "ir/op_def.h"
#include "runtime/base/check.h"
#include "runtime/script/retarget.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

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
#include "frontend/aten.def"
};

/// Returns the row of `name`, or for `aten::x` without one that of cgc's op `aten.x`.
std::optional<Row> findRow(llvm::StringRef name) {
  for (const Row &row : kRows)
    if (row.name == name)
      return row;
  if (llvm::StringRef plain = name; plain.consume_front("aten::"))
    if (std::optional<ir::OpKind> op = ir::parseOpName("aten." + plain.str()))
      return Row{name, op, "", nullptr};
  return std::nullopt;
}

/// Returns the row of an op, and whether the op is the in-place form of the row's.
std::pair<std::optional<Row>, bool> findRow(const c10::FunctionSchema &schema) {
  const std::string &name = schema.name();
  std::optional<Row> row = findRow(name + "." + schema.overload_name());
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

bool isListType(const c10::TypePtr &type) {
  if (auto optional = type->cast<c10::OptionalType>())
    return isListType(optional->getElementType());
  return type->kind() == c10::TypeKind::ListType || type->kind() == c10::TypeKind::TupleType;
}

/// Returns true if `value` is the default of ATen's schema.
bool isDefault(const ir::Arg &value, const c10::Argument &argument) {
  if (value.isNone())
    return true;
  const auto &defaultValue = argument.default_value();
  if (!defaultValue)
    return false;
  std::optional<ir::Arg> constant = toConstant(*defaultValue);
  return constant && *constant == value;
}

} // namespace

bool hasRow(const c10::FunctionSchema &schema) {
  return findRow(schema).first.has_value();
}

ir::Arg OpImporter::argAt(size_t i, bool mayBeNumber) {
  if (i < readArgs_.size())
    readArgs_.set(i);
  const torch::jit::Value *value = node_.inputs()[i];
  ir::Arg arg = mayBeNumber ? importer_.argOrNumber(value) : importer_.arg(value);
  // The arguments of aten::format after the first are not in the schema.
  if (!arg.is<int64_t>() || i >= readArgs_.size() ||
      !script::isDTypeArgument(schema_.arguments()[i]))
    return arg;
  auto type = static_cast<c10::ScalarType>(arg.as<int64_t>());
  if (std::optional<DType> dtype = toDType(type))
    return *dtype;
  bool known = arg.as<int64_t>() >= 0 && type < c10::ScalarType::NumOptions;
  return refuse(std::string("cgc has no dtype ") +
                (known ? c10::toString(type) : "of this number") +
                "; convert this part of the model to a floating or integer dtype");
}

ir::Arg OpImporter::arg(llvm::StringRef name) {
  std::optional<int> index =
      schema_.argumentIndexWithName(std::string_view(name.data(), name.size()));
  return index ? argAt(static_cast<size_t>(*index), false) : ir::Arg();
}

ir::Arg OpImporter::argOr(llvm::StringRef name, ir::Arg otherwise) {
  ir::Arg value = arg(name);
  if (value.isNone())
    return otherwise;
  const int index = *schema_.argumentIndexWithName(std::string_view(name.data(), name.size()));
  if (!value.isValue() ||
      node_.inputs()[static_cast<size_t>(index)]->type()->kind() != c10::TypeKind::OptionalType)
    return value;
  return choose(emit(ir::OpKind::PrimIs, {{"a", value}, {"b", ir::Arg()}}), otherwise, value);
}

ir::Arg OpImporter::constant(llvm::StringRef name) {
  ir::Arg value = arg(name);
  if (value.isConstant())
    return value;
  return refuse("cgc takes a constant '" + name.str() + "' of " + schema_.name() +
                " only; write the value into the call, or make it an attribute of the module");
}

ir::Arg::List OpImporter::tensors(llvm::StringRef name) {
  const ir::Arg list = arg(name);
  if (list.isList() && !list.list().empty())
    return list.list();
  refuse("cgc takes a list of tensors that the model writes out as '" + name.str() + "' of " +
         schema_.name() + "; name its tensors in the call");
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
  const ir::Loc loc = importer_.locOf(node_);
  ir::Graph &graph = importer_.graph();
  graph.call(ir::OpKind::PrimIf, {condition}, 0, loc);
  ir::Arg::List thens = {then()};
  graph.call(ir::OpKind::PrimElse, {}, 0, loc);
  ir::Arg::List others = {otherwise()};
  return graph
      .call(ir::OpKind::PrimEndIf, {ir::Arg(std::move(thens)), ir::Arg(std::move(others))}, 1, loc)
      ->result();
}

void OpImporter::refuseIf(const ir::Arg &condition, std::string message) {
  const ir::Loc loc = importer_.locOf(node_);
  ir::Graph &graph = importer_.graph();
  graph.call(ir::OpKind::PrimIf, {condition}, 0, loc);
  graph.call(ir::OpKind::PrimRaise, {ir::Arg(std::move(message))}, 0, loc);
  graph.call(ir::OpKind::PrimElse, {}, 0, loc);
  graph.call(ir::OpKind::PrimEndIf, {ir::Arg(ir::Arg::List()), ir::Arg(ir::Arg::List())}, 0, loc);
}

ir::Arg OpImporter::refuse(std::string reason, ir::Cause cause) {
  if (std::exchange(refused_, true)) // The first reason stays.
    return node_.outputs().empty() ? ir::Arg() : importer_.arg(node_.outputs()[0]);
  return importer_.refuse(node_, std::move(reason), cause);
}

ir::Arg OpImporter::onlyResult(ir::Arg first) {
  for (const torch::jit::Value *other : node_.outputs().slice(1))
    if (other->hasUses())
      return refuse("cgc computes the first result of this op only");
  return first;
}

bool OpImporter::isOnHost() const {
  return node_.outputs()[0]->type()->kind() != c10::TypeKind::TensorType;
}

OpImporter::Results OpImporter::import() {
  const auto [row, inPlace] = findRow(schema_);
  if (!row) {
    Results results;
    ir::Node *node = importer_.emitFallback(node_);
    for (ir::Value &value : node->results())
      results.push_back(&value);
    return results;
  }
  if (!row->function)
    return importByName(*row->op, row->spec, inPlace);
  ir::Arg value = row->function(*this);
  Results results = {value};
  if (value.isList() && node_.outputs().size() > 1)
    results.assign(value.list().begin(), value.list().end());
  if (std::optional<ir::Arg> refused = refuseUnreadArgs())
    return {*refused};
  return results;
}

std::optional<ir::Arg> OpImporter::refuseUnreadArgs() {
  if (refused_)
    return std::nullopt;
  for (size_t i = 0; i < schema_.arguments().size(); ++i) {
    const c10::Argument &argument = schema_.arguments()[i];
    if (!readArgs_.test(i) && !isIgnorable(argument.name()) && !isDefault(argAt(i, true), argument))
      return refuse("cgc does not support the argument '" + argument.name() + "' of " +
                    schema_.name());
  }
  return std::nullopt;
}

OpImporter::Results OpImporter::importByName(ir::OpKind op, llvm::StringRef spec, bool inPlace) {
  const ir::Schema &schema = ir::opSchema(op);
  std::vector<std::optional<ir::Arg>> given(schema.args.size());
  for (size_t i = 0; i < schema_.arguments().size(); ++i) {
    Renamed renamed = applySpec(spec, schema_.arguments()[i].name());
    if (renamed.dropped) {
      readArgs_.set(i);
      continue;
    }
    std::optional<unsigned> index = schema.find(renamed.name);
    // TorchScript's own scalar ops name their operands a and b.
    if (!index && (renamed.name == "a" || renamed.name == "b"))
      index = renamed.name == "a" ? 0 : 1;
    if (index && *index < given.size()) {
      const ir::SchemaArg &expected = schema.args[*index];
      ir::Arg arg = argAt(i, expected.kind != ir::ArgKind::Tensor);
      if (expected.isList && !arg.isNone() && !arg.isList() &&
          !isListType(node_.inputs()[i]->type()))
        arg = ir::Arg::List{std::move(arg)};
      given[*index] = std::move(arg);
    }
  }
  if (std::optional<ir::Arg> refused = refuseUnreadArgs())
    return {*refused};
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
    return {refuse(schema_.name() + ": " + status.message())};
  // Evaluates conditions of branches and trip counts of loops to constants.
  if (isOnHost() || ir::hasTrait(op, ir::kHost))
    if (std::optional<ir::Arg> value = ir::evaluateEarly(op, args))
      return {*value};

  unsigned numResults = schema.numResults;
  std::optional<unsigned> count;
  if (schema.listResult) {
    // If the number of results is unknown here, one result stands for the list.
    count = numListResults(op, args);
    numResults = count.value_or(1);
  }
  ir::Node *node = importer_.graph().call(op, std::move(args), numResults, importer_.locOf(node_));
  node->setInPlace(inPlace);
  Results results;
  for (ir::Value &value : node->results())
    results.push_back(&value);
  if (count)
    return {ir::Arg(ir::Arg::List(results.begin(), results.end()))};
  return results;
}

std::optional<unsigned> OpImporter::numListResults(ir::OpKind op,
                                                   llvm::ArrayRef<ir::Arg> args) const {
  for (const torch::jit::Use &use : node_.outputs()[0]->uses())
    if (use.user->kind() == c10::prim::ListUnpack)
      return static_cast<unsigned>(use.user->outputs().size());
  // The size of the split dimension is unknown, so the number of results of `split` by a number is
  // too.
  if (op == ir::OpKind::Split && args[1].isList())
    return static_cast<unsigned>(args[1].list().size());
  return std::nullopt;
}

} // namespace cgc::frontend
