// OpClass: classes by traits and by names, and their colors.
#include "ir/text/op_class.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

namespace cgc::ir {
namespace {

/// Classifies by the name of a kernel or a library function.
OpClass classOfName(llvm::StringRef name) {
  name = name.substr(name.find_last_of(".: ") + 1);
  auto has = [&](std::initializer_list<llvm::StringRef> parts) {
    return llvm::any_of(parts, [&](llvm::StringRef part) { return name.contains(part); });
  };
  if (has({"attention", "multi_head"}))
    return OpClass::Attention;
  if (name.ends_with("mm") || has({"linear", "matmul", "conv", "gemm"}))
    return OpClass::Gemm;
  if (has({"norm", "softmax", "pool", "mean", "argmax"}))
    return OpClass::Reduction;
  if (has({"copy", "cat", "embedding", "tokens", "rows", "patches", "resize", "gather", "fill",
           "memcpy", "memset"}))
    return OpClass::Move;
  return OpClass::Pointwise;
}

} // namespace

OpClass classOf(OpKind op) {
  if (op == OpKind::Fallback)
    return OpClass::Unknown;
  const std::pair<Trait, OpClass> classes[] = {
      {kHost, OpClass::Host},           {kGemm, OpClass::Gemm}, {kAttention, OpClass::Attention},
      {kReduction, OpClass::Reduction}, {kMove, OpClass::Move}, {kView, OpClass::View}};
  for (auto [trait, opClass] : classes)
    if (hasTrait(op, trait))
      return opClass;
  return OpClass::Pointwise;
}

OpClass classOfRecord(llvm::StringRef name) {
  if (name.consume_front("aten::"))
    if (auto op = parseOpName(("aten." + name.split('.').first).str()))
      return classOf(*op);
  return classOfName(name);
}

DotStyle styleOf(OpClass opClass) {
  const auto rank = static_cast<unsigned>(opClass);
  switch (opClass) {
  case OpClass::Io:
    return {rank, "input, output", "#ffffff", "oval"};
  case OpClass::Weight:
    return {rank, "weight", "#f2f2f2", "note"};
  case OpClass::Module:
    return {rank, "call", "#e6d9f2", "component"};
  case OpClass::Gemm:
    return {rank, "GEMM", "#f7c6a3"};
  case OpClass::Attention:
    return {rank, "attention", "#f2e08c"};
  case OpClass::Reduction:
    return {rank, "norm, reduction", "#c9c3ec"};
  case OpClass::Pointwise:
    return {rank, "elementwise", "#cfe2f3"};
  case OpClass::Move:
    return {rank, "copy, lookup", "#b9e0dc"};
  case OpClass::View:
    return {rank, "view", "#dcefdc"};
  case OpClass::Host:
    return {rank, "host", "#fff9d9"};
  case OpClass::Unknown:
    return {rank, "no rule", "#f4a6a6"};
  }
  llvm_unreachable("covered switch");
}

} // namespace cgc::ir
