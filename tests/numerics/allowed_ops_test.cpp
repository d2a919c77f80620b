// Allowed ops: LibTorch's schemas of the ops that a plan may call show that they only compute.
#include "runtime/plan/aten_ops.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace cgc::test {
namespace {

/// Overloads whose arguments decide whether they only compute: checkAtenValues looks at the dropout
/// of attention, refuses `where` without values, and the provider holds the size of a masked
/// selection against the plan's.
bool dependsOnArguments(const c10::OperatorName &name) {
  return (name.name == "aten::where" && name.overload_name.empty()) ||
         name.name == "aten::scaled_dot_product_attention" ||
         name.name == "aten::_scaled_dot_product_attention_math" || name.name == "aten::index";
}

/// Returns what an overload does beside computing its results; empty for nothing.
std::string effectOf(const c10::OperatorHandle &op) {
  for (const c10::Argument &argument : op.schema().arguments()) {
    const c10::TypeKind kind = argument.type()->kind();
    if (argument.type()->str().find("Generator") != std::string::npos)
      return "draws random numbers";
    if (kind == c10::TypeKind::StorageType || kind == c10::TypeKind::StreamObjType)
      return "takes a storage or a stream";
  }
  if (op.hasTag(at::Tag::nondeterministic_seeded))
    return "draws random numbers";
  if (op.hasTag(at::Tag::inplace_view))
    return "changes a tensor's sizes";
  if (op.hasTag(at::Tag::dynamic_output_shape))
    return "has a result whose size depends on data";
  if (op.hasTag(at::Tag::data_dependent_output))
    return "reads data on the host";
  return "";
}

TEST(AllowedOps, OnlyCompute) {
  std::map<std::string, int> overloads;
  for (const c10::OperatorName &name : c10::Dispatcher::singleton().getAllOpNames()) {
    auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!isAllowedAtenOp(name.name) || !op) // Without a schema, no plan can call it.
      continue;
    ++overloads[name.name];
    if (!dependsOnArguments(name)) {
      EXPECT_EQ(effectOf(*op), "") << op->schema();
    }
  }
  for (std::string_view op : kAllowedAtenOps)
    EXPECT_GT(overloads[std::string(op)], 0) << "LibTorch has no " << op;
  EXPECT_TRUE(std::ranges::is_sorted(kAllowedAtenOps));
}

} // namespace
} // namespace cgc::test
