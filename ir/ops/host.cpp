// Host ops of traced code: lists, dicts, sizes and conversions of numbers. specialize evaluates
// them; they are never lowered.
#include "ir/graph.h"
#include "ir/op_def.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"
#include "ir/text/text.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::ir {
namespace {

/// Returns the type of a tensor argument.
Result<const TensorType *> tensorOf(const Arg &arg) {
  if (!arg.isValue() || !arg.value()->isTensor())
    return rules::refuse("expected a tensor whose type is known at compile time");
  return &arg.value()->tensor();
}

Result<const Arg::List *> listOf(const Arg &arg) {
  if (!arg.isList())
    return rules::refuse("expected a list that is known at compile time");
  return &arg.list();
}

Result<Arg> refused(llvm::ArrayRef<Arg> args) {
  return rules::refuse(args[0].as<std::string>());
}

Result<Arg> identity(llvm::ArrayRef<Arg> args) {
  return args[0];
}

Result<Arg> list(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(const Arg::List *elements, listOf(args[0]));
  return Arg(*elements);
}

/// Represents a dict as a list of [key, value] lists.
Result<Arg> dict(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(const Arg::List *keys, listOf(args[0]));
  CGC_ASSIGN_OR_RETURN(const Arg::List *values, listOf(args[1]));
  if (keys->size() != values->size())
    return rules::refuse("expected as many 'keys' as 'values', got " + llvm::Twine(keys->size()) +
                         " and " + llvm::Twine(values->size()));
  Arg::List entries;
  for (size_t i = 0; i < keys->size(); ++i)
    entries.emplace_back(Arg::List{(*keys)[i], (*values)[i]});
  return Arg(std::move(entries));
}

/// Returns the element at `index`, counted from the end if negative.
Result<Arg> element(const Arg::List &elements, int64_t index) {
  int64_t size = static_cast<int64_t>(elements.size());
  if (index < -size || index >= size)
    return rules::refuse("expected 'index' to be inside a list of " + llvm::Twine(size) + ", got " +
                         llvm::Twine(index));
  return elements[index < 0 ? index + size : index];
}

Result<Arg> getItem(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(const Arg::List *elements, listOf(args[0]));
  if (const int64_t *index = args[1].getIf<int64_t>())
    return element(*elements, *index);
  const std::string *key = args[1].getIf<std::string>();
  if (!key)
    return rules::refuse("expected 'index' to be an int, or a string for a dict");
  for (const Arg &entry : *elements)
    if (entry.isList() && entry.list().size() == 2 && entry.list()[0] == args[1])
      return entry.list()[1];
  return rules::refuse("the dict has no key \"" + *key + "\"");
}

/// Returns the length of a list, dict or string, or the first size of a tensor.
Result<Arg> len(llvm::ArrayRef<Arg> args) {
  if (args[0].is<std::string>())
    return Arg(static_cast<int64_t>(args[0].as<std::string>().size()));
  if (args[0].isList())
    return Arg(static_cast<int64_t>(args[0].list().size()));
  CGC_ASSIGN_OR_RETURN(const TensorType *type, tensorOf(args[0]));
  if (type->rank() == 0)
    return rules::mismatch("list", "a list or of rank 1 or more", *type);
  return Arg(type->sizes[0]);
}

Result<Arg> logicalNot(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Arg value, host::toBool(args));
  return Arg(!value.as<bool>());
}

Result<Arg> dtype(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(const TensorType *type, tensorOf(args[0]));
  return Arg(type->dtype);
}

Result<Arg> device(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(const TensorType *type, tensorOf(args[0]));
  return Arg(type->device);
}

Result<Arg> size(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(const TensorType *type, tensorOf(args[0]));
  if (args[1].isNone())
    return Arg::ints(type->sizes);
  const int64_t *dim = args[1].getIf<int64_t>();
  if (!dim)
    return rules::refuse("expected 'dim' to be an int that is known at compile time");
  if (type->rank() == 0)
    return rules::mismatch("self", "of rank 1 or more", *type);
  CGC_ASSIGN_OR_RETURN(int64_t wrapped, rules::wrapDim("dim", *dim, type->rank()));
  return Arg(type->sizes[wrapped]);
}

Result<Arg> rank(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(const TensorType *type, tensorOf(args[0]));
  return Arg(type->rank());
}

Result<Arg> numel(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(const TensorType *type, tensorOf(args[0]));
  return Arg(type->numElements());
}

/// Returns "f32[2,3]" for a tensor, "[f32[2,3], none]" for a list, otherwise the constant's text.
std::string typeText(const Arg &arg) {
  if (arg.isValue())
    return toString(arg.value()->type());
  if (!arg.isList())
    return argText(arg);
  std::string text;
  for (const Arg &element : arg.list())
    text += (text.empty() ? "" : ", ") + typeText(element);
  return "[" + text + "]";
}

/// Returns true if `a` can replace `b`: tensors of one dtype and equal sizes, equal constants, or
/// lists of these.
bool isInterchangeable(const Arg &a, const Arg &b) {
  if (a.isValue() && b.isValue()) {
    const Type &x = a.value()->type(), &y = b.value()->type();
    return x.isTensor() && y.isTensor() && x.tensor().dtype == y.tensor().dtype &&
           x.tensor().sizes == y.tensor().sizes;
  }
  if (a.isList() && b.isList())
    return llvm::equal(a.list(), b.list(), isInterchangeable);
  return a == b;
}

Result<Arg> substituted(llvm::ArrayRef<Arg> args) {
  if (isInterchangeable(args[0], args[1]))
    return args[0];
  return rules::refuse("substitution '" + args[2].as<std::string>() + "' gives " +
                       typeText(args[0]) + ", and what it replaces gives " + typeText(args[1]) +
                       "; make it give the same");
}

constexpr OpDef hostOp(const char *schema, EvaluateFn evaluate, const char *doc) {
  return {.schema = schema, .traits = kPure | kHost, .evaluate = evaluate, .doc = doc};
}

} // namespace

const OpDef defs::PrimRefused = {
    .schema = "(str reason, str cause=\"\") -> Tensor[]",
    .traits = kHost, // Not pure: reported even if its results have no users.
    .evaluate = refused,
    .doc = "Stands for a construct that the frontend cannot express, with any number of results: "
           "compiling it fails with the reason. `cause` is a row of ir/offenders.def, or empty.",
};
const OpDef defs::PrimList = hostOp("(any[] items) -> any", list, "A list or tuple of the items.");
const OpDef defs::PrimDict = hostOp("(any[] keys, any[] values) -> any", dict,
                                    "A dict, as a list of [key, value] lists in order.");
const OpDef defs::PrimUnpack =
    hostOp("(any list) -> Tensor[]", list, "One result for each element of a list or tuple.");
const OpDef defs::PrimGetItem =
    hostOp("(any list, any index) -> any", getItem,
           "The element of a list at an int, from the end if negative, or of a dict at a string.");
const OpDef defs::PrimLen = hostOp("(any list) -> any", len,
                                   "The number of elements of a list, dict or string, or the first "
                                   "size of a tensor.");
const OpDef defs::PrimNumToTensor = hostOp(
    "(any a) -> any", identity,
    "The number itself: a number that TorchScript wraps in a 0-d tensor stays a number in cgc.");
const OpDef defs::PrimInt =
    hostOp("(any a) -> any", host::toInt, "A number as an int, rounded towards zero.");
const OpDef defs::PrimFloat = hostOp("(any a) -> any", host::toFloat, "A number as a float.");
const OpDef defs::PrimBool =
    hostOp("(any a) -> any", host::toBool, "Whether a number differs from zero.");
const OpDef defs::PrimFloor =
    hostOp("(any a) -> any", host::floorToInt, "The greatest int that is not above a number.");
const OpDef defs::PrimCeil =
    hostOp("(any a) -> any", host::ceilToInt, "The least int that is not below a number.");
const OpDef defs::PrimNot = hostOp("(any a) -> any", logicalNot, "Whether a number is zero.");
const OpDef defs::PrimDType = hostOp("(Tensor self) -> any", dtype, "The dtype of a tensor.");
const OpDef defs::PrimDevice = hostOp("(Tensor self) -> any", device, "The device of a tensor.");
const OpDef defs::PrimSubstituted = hostOp(
    "(any replacement, any original, str name) -> any", substituted,
    "The replacement, once specialize has checked that its type is that of the original, which the "
    "substitution called name replaced. Nodes that only the original needs are then removed.");
const OpDef defs::Size = hostOp("(Tensor self, int? dim=none) -> any", size,
                                "The size of a dimension, or the list of all sizes without dim.");
const OpDef defs::Dim = hostOp("(Tensor self) -> any", rank, "The number of dimensions.");
const OpDef defs::Numel = hostOp("(Tensor self) -> any", numel, "The number of elements.");

} // namespace cgc::ir
