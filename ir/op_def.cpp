// OpDef: the table of ops, access to arguments, and type inference.
#include "ir/op_def.h"

#include "ir/graph.h"
#include "runtime/base/check.h"

#include "llvm/ADT/STLExtras.h"

#include <array>

namespace cgc::ir {
namespace {
constexpr std::array<const OpDef *, kNumOps> kDefs = {
#define CGC_OP(Enum, text) &defs::Enum,
#include "ir/ops.def"
};
} // namespace

const OpDef &opDef(OpKind op) {
  return *kDefs[static_cast<unsigned>(op)];
}

const Schema &opSchema(OpKind op) {
  static const std::vector<Schema> schemas = [] {
    std::vector<Schema> parsed;
    for (const OpDef *def : kDefs)
      parsed.push_back(parseSchema(def->schema));
    return parsed;
  }();
  return schemas[static_cast<unsigned>(op)];
}

const Arg &InferArgs::operator[](llvm::StringRef name) const {
  auto index = schema_.find(name);
  CGC_CHECK(index && "the op's schema has no such argument");
  return args_[*index];
}

const TensorType &InferArgs::tensor(llvm::StringRef name) const {
  return (*this)[name].value()->tensor();
}

llvm::SmallVector<const TensorType *, 4> InferArgs::tensors(llvm::StringRef name) const {
  llvm::SmallVector<const TensorType *, 4> types;
  for (const Arg &element : (*this)[name].list())
    if (element.isValue())
      types.push_back(&element.value()->tensor());
  return types;
}

int64_t InferArgs::integer(llvm::StringRef name) const {
  const Arg &arg = (*this)[name];
  return arg.is<bool>() ? arg.as<bool>() : arg.as<int64_t>();
}

double InferArgs::number(llvm::StringRef name) const {
  return *(*this)[name].asNumber();
}
bool InferArgs::boolean(llvm::StringRef name) const {
  return *(*this)[name].asNumber() != 0;
}
llvm::StringRef InferArgs::str(llvm::StringRef name) const {
  return (*this)[name].as<std::string>();
}
DType InferArgs::dtype(llvm::StringRef name) const {
  return (*this)[name].as<DType>();
}

Dims InferArgs::ints(llvm::StringRef name) const {
  auto ints = (*this)[name].asInts();
  CGC_CHECK(ints && "not a list of ints");
  return *ints;
}

bool readsStrides(const Node &node, llvm::StringRef name, const TensorType &type) {
  if (hasTrait(node.op(), kPointwise) || hasTrait(node.op(), kAnyStrides))
    return true;
  const OpDef &def = opDef(node.op());
  return def.readsStrides &&
         def.readsStrides(InferArgs(opSchema(node.op()), node.args()), name, type);
}

RowArgs rowArgs(const Node &node) {
  const OpDef &def = opDef(node.op());
  return def.rowArgs ? def.rowArgs(InferArgs(opSchema(node.op()), node.args())) : RowArgs();
}

const Arg &aliasedArg(const Node &node) {
  return node.args().front();
}

namespace {
bool hasDevice(const Arg &arg) {
  return arg.is<DeviceKind>() || (arg.isList() && llvm::any_of(arg.list(), hasDevice));
}
} // namespace

std::optional<Arg> evaluateEarly(OpKind op, llvm::ArrayRef<Arg> args) {
  const OpDef &def = opDef(op);
  if (!def.evaluate || op == OpKind::PrimRefused || op == OpKind::PrimDevice)
    return std::nullopt;
  // specialize later replaces devices with the target, so an op that reads one cannot be evaluated
  // yet.
  const bool reads = op == OpKind::PrimDeviceType || op == OpKind::PrimEqual ||
                     op == OpKind::PrimContains || op == OpKind::PrimFormat;
  if (reads && llvm::any_of(args, hasDevice))
    return std::nullopt;
  if (!hasTrait(op, kHost) && !llvm::all_of(args, [](const Arg &arg) { return arg.isConstant(); }))
    return std::nullopt;
  Result<Arg> value = def.evaluate(args);
  return value ? std::optional(*std::move(value)) : std::nullopt;
}

Result<llvm::SmallVector<Inferred, 1>> inferResults(OpKind op, llvm::ArrayRef<Arg> args,
                                                    DeviceKind device) {
  const OpDef &def = opDef(op);
  if (!def.infer)
    return Status(Code::Unsupported, "cgc has no rule for the result type of this op");
  const Schema &schema = opSchema(op);
  CGC_TRY(checkArgs(schema, args));
  // The rule reads every argument: none may still be dynamic, and only tensor arguments may be
  // values.
  for (unsigned i = 0; i < args.size(); ++i) {
    bool takesTensor =
        schema.args[i].kind == ArgKind::Tensor || schema.args[i].kind == ArgKind::TensorOrNumber;
    Status status;
    args[i].forEachValue([&](Value *value) {
      bool standsForList = schema.args[i].isList && args[i].isValue();
      if (!value->isTensor() || !takesTensor || standsForList)
        status = Status(Code::Unsupported, "argument '" + schema.args[i].name +
                                               "' is not known at compile time (%" + value->name() +
                                               ")");
    });
    CGC_TRY(status);
  }
  llvm::SmallVector<Inferred, 1> results;
  CGC_TRY(def.infer(InferArgs(schema, args), results));
  for (Inferred &result : results)
    result.type.device = device;
  return results;
}

} // namespace cgc::ir
