// A pass plug-in. Replaces QuickGELU by one op of the op library ops.cu, and the body of every
// self-attention nn.MultiheadAttention, with or without an additive mask, by another body.
#include "passes/plugin.h"

#include "ir/text/text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <cstdio>

using namespace cgc;

namespace {

// (a) An op substitution: a pattern and its replacement, both IR text.
constexpr const char *kQuickGelu = R"(
graph @quick_gelu(%x: dynamic) {
  %0 = aten.mul(%x, 1.702) : dynamic
  %1 = aten.sigmoid(%0) : dynamic
  %2 = aten.mul(%x, %1) : dynamic
  output %2
})";
constexpr const char *kFusedQuickGelu = R"(
graph @quick_gelu(%x: dynamic) {
  %0 = cgc.library_op([%x]) {op="example.quick_gelu"} : dynamic
  output %0
})";

// (b) A module substitution: the new body. Placeholders: {0} the inputs, {1} the number of heads,
// {2} the head dimension, {3} the scale, {4} the addition of the mask, if there is one, {5} the
// operand of the softmax.
constexpr const char *kAttention = R"(
graph @attention({0}) -> dynamic {{
  %w = get_attr @in_proj_weight : dynamic
  %b = get_attr @in_proj_bias : dynamic
  %qkv = aten.linear(%x, %w, %b) : dynamic
  %heads = aten.unflatten(%qkv) {{dim=-1, sizes=[3, {1}, {2}]} : dynamic
  %q0 = aten.select(%heads) {{dim=2, index=0} : dynamic
  %k0 = aten.select(%heads) {{dim=2, index=1} : dynamic
  %v0 = aten.select(%heads) {{dim=2, index=2} : dynamic
  %q = aten.transpose(%q0) {{dim0=1, dim1=2} : dynamic
  %k = aten.permute(%k0) {{dims=[0, 2, 3, 1]} : dynamic
  %v = aten.transpose(%v0) {{dim0=1, dim1=2} : dynamic
  %scaled = aten.mul(%q, {3}) : dynamic
  %scores = aten.matmul(%scaled, %k) : dynamic
{4}
  %weights = aten.softmax({5}) {{dim=-1} : dynamic
  %values = aten.matmul(%weights, %v) : dynamic
  %tokens = aten.transpose(%values) {{dim0=1, dim1=2} : dynamic
  %flat = aten.flatten(%tokens) {{start_dim=2, end_dim=3} : dynamic
  %ow = get_attr @out_proj.weight : dynamic
  %ob = get_attr @out_proj.bias : dynamic
  %y = aten.linear(%flat, %ow, %ob) : dynamic
  output %y
})";

/// The number of heads, found in the traced body because a traced module has no num_heads.
Result<int64_t> headsOf(const ir::Graph &body) {
  for (const ir::Node &node : body) {
    if (node.kind() != ir::NodeKind::CallFunction)
      continue;
    if (node.is(ir::OpKind::NativeMultiHeadAttention))
      return node.arg("num_head").as<int64_t>();
    // head_dim = embed_dim // num_heads
    if (node.is(ir::OpKind::Div) && !node.arg("rounding_mode").isNone() &&
        node.arg("other").is<int64_t>())
      return node.arg("other").as<int64_t>();
  }
  return Status(Code::Unsupported, "cannot tell how many heads graph @" + body.name() + " has");
}

/// Unsupported, with the reason, unless the new body computes the same as the method.
Status checkForm(const ir::Graph &original) {
  const auto refuse = [](const char *why) { return Status(Code::Unsupported, why); };
  const auto isMask = [](const ir::Value *input) {
    return llvm::StringRef(input->name()).contains("mask");
  };
  const auto inputs = original.inputs();
  const auto masks = llvm::count_if(inputs, isMask);
  if (inputs.size() - masks != 1)
    return refuse("query, key and value are not one tensor");
  if (masks > 1 || llvm::any_of(inputs, [](const ir::Value *input) {
        return llvm::StringRef(input->name()).contains("padding");
      }))
    return refuse("it has a key_padding_mask");
  if (original.output()->args().size() != 1)
    return refuse("it returns its weights too");
  for (const ir::Node &node : original)
    if (node.kind() == ir::NodeKind::CallFunction && masks > 0 &&
        (node.is(ir::OpKind::MaskedFill) || node.is(ir::OpKind::NativeMultiHeadAttention)))
      return refuse("its mask may be boolean: this one is added");
  return Status::ok();
}

/// The new body of one method, as text. Unsupported if kAttention does not compute that method.
Result<std::string> bodyOf(const ir::Module &module, const ir::Graph &original) {
  const ir::Parameter *weight = module.findParameter("in_proj_weight");
  if (!weight)
    return Status(Code::Unsupported, "it has no packed in_proj_weight");
  if (!module.findParameter("in_proj_bias") || !module.findParameter("out_proj.bias"))
    return Status(Code::Unsupported, "it has no biases");
  CGC_TRY(checkForm(original));
  CGC_ASSIGN_OR_RETURN(const int64_t heads, headsOf(original));
  std::string inputs, addMask, scores = "%scores";
  for (const ir::Value *input : original.inputs()) {
    const bool isMask = llvm::StringRef(input->name()).contains("mask");
    inputs += std::string(inputs.empty() ? "" : ", ") + (isMask ? "%mask" : "%x") + ": dynamic";
    if (isMask) {
      addMask = "  %masked = aten.add(%scores, %mask) : dynamic";
      scores = "%masked";
    }
  }
  const int64_t width = weight->type.sizes[1] / heads;
  const std::string scale = ir::argText(1 / std::sqrt(static_cast<double>(width)));
  return llvm::formatv(kAttention, inputs, heads, width, scale, addMask, scores).str();
}

Status replaceAttention(ir::Module &module) {
  std::vector<std::unique_ptr<ir::Graph>> bodies;
  for (const auto &graph : module.graphs()) {
    const Result<std::string> text = bodyOf(module, *graph);
    if (text.status().code() == Code::Unsupported) { // This module stays as traced.
      std::fprintf(stderr, "plain-attention: module '%s' stays: %s\n", module.path().c_str(),
                   text.status().message().c_str());
      return Status::ok();
    }
    CGC_TRY(text.status());
    ir::Diagnostics diagnostics;
    const auto parsed = ir::parseModule(*text, "attention", diagnostics);
    if (!parsed)
      return diagnostics.toStatus(Code::Failed);
    bodies.push_back(parsed->graphs()[0]->clone(graph->name()));
  }
  for (auto &body : bodies) {
    module.removeGraph(body->name());
    module.addGraph(std::move(body));
  }
  return Status::ok();
}

void registerIn(passes::PipelineBuilder &builder) {
  builder
      .registerOpSubstitution({.name = "quick-gelu",
                               .pattern = kQuickGelu,
                               .replacement = kFusedQuickGelu,
                               .replace = nullptr})
      .registerModuleSubstitution({.name = "plain-attention",
                                   .className = "MultiheadAttention",
                                   .pathGlob = "",
                                   .attributes = {},
                                   .replaceBody = replaceAttention,
                                   .replaceCall = nullptr});
}

} // namespace

extern "C" const passes::PassPlugin *cgcPassPlugin() {
  static constexpr passes::PassPlugin plugin = {passes::kPassPluginAbi, "example", registerIn};
  return &plugin;
}
