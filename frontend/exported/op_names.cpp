// opNameOf: ops of torch.ops and Python's functions on numbers.
#include "frontend/exported/op_names.h"

namespace cgc::exported {
namespace {

struct Row {
  llvm::StringRef target, op;
};
/// What torch.export makes of arithmetic on sizes.
constexpr Row kFunctions[] = {
    {"_operator.add", "aten::add"},
    {"_operator.sub", "aten::sub"},
    {"_operator.mul", "aten::mul"},
    {"_operator.truediv", "aten::div"},
    {"_operator.floordiv", "aten::floordiv"},
    {"_operator.mod", "aten::remainder"},
    {"_operator.pow", "aten::pow"},
    {"_operator.neg", "aten::neg"},
    {"_operator.eq", "aten::eq"},
    {"_operator.ne", "aten::ne"},
    {"_operator.lt", "aten::lt"},
    {"_operator.le", "aten::le"},
    {"_operator.gt", "aten::gt"},
    {"_operator.ge", "aten::ge"},
    {"_operator.and_", "aten::__and__"},
    {"_operator.or_", "aten::__or__"},
    {"math.trunc", "aten::Int"},
    {"torch.sym_float", "aten::Float"},
    {"torch.sym_int", "aten::Int"},
    {"torch.sym_max", "prim::max"},
    {"torch.sym_min", "prim::min"},
    {"torch.sym_not", "aten::__not__"},
    {"torch._sym_sqrt", "aten::sqrt"},
};

} // namespace

OpName opNameOf(llvm::StringRef target) {
  for (const Row &row : kFunctions)
    if (row.target == target)
      return {row.op.str(), ""};
  llvm::StringRef rest = target;
  if (!rest.consume_front("torch.ops."))
    return {target.str(), ""};
  const auto [space, op] = rest.split('.');
  const auto [name, overload] = op.split('.');
  return {(space + "::" + name).str(), overload == "default" ? "" : overload.str()};
}

} // namespace cgc::exported
