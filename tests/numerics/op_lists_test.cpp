// Op lists: the ops that cgc supports (ir/ops.def, frontend/ops/aten.def) and those that it refuses
// (ir/offenders.def), held to LibTorch's schemas.
#include "frontend/convert.h"
#include "frontend/ops/op_import.h"
#include "ir/offenders.h"
#include "ir/op_def.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace cgc::frontend {
namespace {

using Names = std::set<std::string>;

/// The schemas of all ops that LibTorch has.
const std::vector<c10::FunctionSchema> &schemas() {
  static const auto all = [] {
    std::vector<c10::FunctionSchema> found;
    for (const auto &op : torch::jit::getAllOperators())
      found.push_back(op->schema());
    return found;
  }();
  return all;
}

/// The arguments of all overloads of an op; none if LibTorch does not have it.
std::optional<Names> argumentsOf(const std::string &op) {
  static const auto all = [] {
    std::map<std::string, Names> byName;
    for (const c10::FunctionSchema &schema : schemas())
      for (const std::string &name :
           {schema.name(), schema.name() + "." + schema.overload_name()}) {
        Names &arguments = byName[name];
        for (const c10::Argument &argument : schema.arguments())
          arguments.insert(argument.name());
      }
    return byName;
  }();
  const auto found = all.find(op);
  return found == all.end() ? std::nullopt : std::optional(found->second);
}

/// A row of aten.def for an op of cgc's.
struct Row {
  std::string name;
  ir::OpKind op;
  std::string spec;
};
const Row kRows[] = {
#define CGC_ATEN(name, op, spec) {name, ir::OpKind::op, spec},
#define CGC_ATEN_FN(name, function)
#include "frontend/ops/aten.def"
};
const char *const kFunctionRows[] = {
#define CGC_ATEN(name, op, spec)
#define CGC_ATEN_FN(name, function) name,
#include "frontend/ops/aten.def"
};

/// Returns whether the op is a node of TorchScript's own, which has no schema.
bool isNode(llvm::StringRef name) {
  return name.starts_with("prim::") && !argumentsOf(name.str());
}

TEST(OpLists, HaveEveryCoreOpOnce) {
  size_t supported = 0, refused = 0;
  for (const c10::OperatorName &name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op || !op->hasTag(at::Tag::core) || name.overload_name == "out")
      continue;
    const bool isSupported = hasRow(op->schema().name(), op->schema().overload_name());
    const ir::Cause cause = ir::causeOf(name.name);
    EXPECT_NE(isSupported, cause != ir::Cause::NoRule)
        << name << (isSupported ? " is in both lists" : " is in no list");
    ++(isSupported ? supported : refused);
  }
  EXPECT_GT(supported, 150u);
  EXPECT_GT(refused, 10u);
}

/// Returns whether aten.def has a row for this overload or this in-place form alone.
bool hasOwnRow(const c10::FunctionSchema &schema) {
  const std::string overload = schema.name() + "." + schema.overload_name();
  return llvm::any_of(kFunctionRows, [&](llvm::StringRef row) {
    return row == overload || (row == schema.name() && row.ends_with("_"));
  });
}

TEST(OpLists, HaveNoOpTwice) {
  for (const c10::FunctionSchema &schema : schemas())
    if (hasRow(schema.name(), schema.overload_name()) && !hasOwnRow(schema)) {
      EXPECT_EQ(ir::causeOf(schema.name()), ir::Cause::NoRule) << schema;
    }
}

TEST(OpLists, NameOpsAndArgumentsOfLibTorch) {
  // The arguments that rows of aten.def give to each op of cgc's, under its own names.
  std::map<ir::OpKind, Names> given;
  for (const Row &row : kRows) {
    if (isNode(row.name))
      continue;
    const auto arguments = argumentsOf(row.name);
    ASSERT_TRUE(arguments) << row.name;
    std::map<std::string, std::string> renamed;
    for (llvm::StringRef word : llvm::split(row.spec, ' ')) {
      if (word.consume_front("-")) {
        EXPECT_TRUE(arguments->contains(word.str())) << row.name << " has no " << word.str();
        continue;
      }
      const auto [from, to] = word.split('=');
      if (from.empty())
        continue;
      renamed[from.str()] = to.str();
      EXPECT_TRUE(arguments->contains(from.str())) << row.name << " has no " << from.str();
      EXPECT_TRUE(ir::opSchema(row.op).find(to))
          << ir::opName(row.op).str() << " has no " << to.str();
    }
    for (const std::string &argument : *arguments)
      given[row.op].insert(renamed.contains(argument) ? renamed[argument] : argument);
  }
  for (const char *name : kFunctionRows)
    EXPECT_TRUE(isNode(name) || argumentsOf(name)) << name;

  for (unsigned i = 0; i < ir::kNumOps; ++i) {
    const auto op = static_cast<ir::OpKind>(i);
    llvm::StringRef name = ir::opName(op);
    if (!name.consume_front("aten.") || op == ir::OpKind::Fallback)
      continue;
    const auto arguments = argumentsOf("aten::" + name.str());
    ASSERT_TRUE(arguments) << name.str();
    for (const ir::SchemaArg &argument : ir::opSchema(op).args)
      EXPECT_TRUE(arguments->contains(argument.name) || given[op].contains(argument.name))
          << "aten::" << name.str() << " has no " << argument.name;
  }
}

/// Defaults in aten_defaults.def by overload and argument.
using Defaults = std::map<std::string, std::map<std::string, ir::Arg>>;
Defaults tableOfDefaults() {
  return {
#define CGC_ATEN_DEFAULTS(op, ...) {op, {__VA_ARGS__}},
#include "frontend/ops/aten_defaults.def"
  };
}

/// The row by which an overload is imported, which may be that of its form that is not in place, or
/// that of cgc's op with its name. None for an overload that a function imports.
std::optional<Row> rowByName(const c10::FunctionSchema &schema) {
  std::vector<std::string> names = {schema.name() + "." + schema.overload_name(), schema.name()};
  if (llvm::StringRef name = schema.name(); name.consume_back("_") && !name.ends_with("_"))
    names.push_back(name.str());
  for (const std::string &name : names) {
    if (llvm::is_contained(kFunctionRows, name))
      return std::nullopt;
    for (const Row &row : kRows)
      if (row.name == name)
        return row;
    if (llvm::StringRef op = name; op.consume_front("aten::"))
      if (const auto kind = ir::parseOpName("aten." + op.str()))
        return Row{name, *kind, ""};
  }
  return std::nullopt;
}

/// The name that cgc's op gives to an argument of ATen's, by the spec of a row.
std::string renamed(llvm::StringRef spec, const std::string &argument) {
  for (llvm::StringRef word : llvm::split(spec, ' '))
    if (const auto [from, to] = word.split('='); from == argument)
      return to.str();
  return argument;
}

bool isSame(const ir::Arg &a, const ir::Arg &b) {
  if (a.isList() && b.isList())
    return llvm::equal(a.list(), b.list(), isSame);
  return a == b || (a.asNumber() && b.asNumber() && *a.asNumber() == *b.asNumber());
}

/// Arguments that control how LibTorch computes or where its tensors are, not what they hold.
const Names kControl = {"device",        "layout",        "pin_memory",   "memory_format",
                        "non_blocking",  "cudnn_enabled", "cudnn_enable", "benchmark",
                        "deterministic", "requires_grad", "allow_tf32",   "generator"};

TEST(OpLists, DefaultsAreThoseOfLibTorch) {
  Defaults table = tableOfDefaults();
  size_t checked = 0;
  for (const c10::FunctionSchema &schema : schemas()) {
    // Neither frontend reads calls that write into a given tensor or name dimensions.
    const llvm::StringRef kind = schema.overload_name();
    if (kind == "out" || kind.ends_with("_out") || kind.contains("names") ||
        !llvm::StringRef(schema.name()).starts_with("aten::") ||
        !hasRow(schema.name(), schema.overload_name()))
      continue;
    const std::string overload = schema.overload_name().empty()
                                     ? schema.name()
                                     : schema.name() + "." + schema.overload_name();
    std::map<std::string, ir::Arg> row = table[overload];
    table.erase(overload);
    const std::optional<Row> byName = rowByName(schema);
    for (const c10::Argument &argument : schema.arguments()) {
      if (!argument.default_value() || argument.default_value()->isNone() ||
          kControl.contains(argument.name()))
        continue;
      const std::optional<ir::Arg> expected = toConstant(*argument.default_value());
      ASSERT_TRUE(expected) << schema;
      std::optional<ir::Arg> value;
      if (const auto found = row.find(argument.name()); found != row.end()) {
        value = found->second;
        row.erase(found);
      } else if (byName) {
        const ir::Schema &ours = ir::opSchema(byName->op);
        const std::optional<unsigned> index = ours.find(renamed(byName->spec, argument.name()));
        if (!index)
          continue; // The spec drops it, or another value than the default is refused.
        value = ours.args[*index].defaultValue;
      }
      ++checked;
      EXPECT_TRUE(value && isSame(*value, *expected))
          << overload << ": the default of '" << argument.name() << "' is "
          << *argument.default_value();
    }
    EXPECT_TRUE(row.empty()) << overload << " has no default of '" << row.begin()->first << "'";
  }
  for (const auto &[overload, row] : table)
    EXPECT_TRUE(row.empty()) << overload << " is no overload of LibTorch that cgc imports";
  EXPECT_GT(checked, 300u);
}

} // namespace
} // namespace cgc::frontend
