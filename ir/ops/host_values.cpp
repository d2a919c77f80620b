// Host ops of scripted code: comparisons, lists, dicts, strings and flags, evaluated by specialize.
// host.cpp has those of traced code.
#include "ir/graph.h"
#include "ir/op_def.h"
#include "ir/ops/rules.h"
#include "ir/text/text.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::ir {
namespace {

Status notKnown() {
  return rules::refuse("expected a value that is known at compile time");
}

Result<const Arg::List *> listFrom(const Arg &arg) {
  if (!arg.isList())
    return rules::refuse("expected a list that is known at compile time");
  return &arg.list();
}

/// Returns ATen's c10::ScalarType code for a dtype, which scripted code compares with.
int64_t atenNumber(DType dtype) {
  switch (dtype) {
  case DType::U8:
    return 0;
  case DType::I8:
    return 1;
  case DType::I16:
    return 2;
  case DType::I32:
    return 3;
  case DType::I64:
    return 4;
  case DType::F16:
    return 5;
  case DType::F32:
    return 6;
  case DType::F64:
    return 7;
  case DType::Bool:
    return 11;
  case DType::BF16:
    return 15;
  }
  return -1;
}

Arg plain(const Arg &arg) {
  return arg.is<DType>() ? Arg(atenNumber(arg.as<DType>())) : arg;
}

/// Returns true if `value` can only be a tensor. An op that also takes numbers gives a tensor if
/// one of its operands is one.
bool isSurelyTensor(const Value *value, unsigned depth = 0) {
  constexpr unsigned kMaxDepth = 8;
  const Node &node = *value->node();
  if (value->isTensor() || node.kind() == NodeKind::GetAttr)
    return true;
  if (node.kind() != NodeKind::CallFunction || node.is(OpKind::Fallback) ||
      hasTrait(node.op(), kHost) || opSchema(node.op()).listResult)
    return false;
  bool anyTensor = !opDef(node.op()).evaluate;
  if (depth < kMaxDepth)
    node.forEachInput(
        [&](const Value *input) { anyTensor = anyTensor || isSurelyTensor(input, depth + 1); });
  return anyTensor;
}

/// Two values that alias one tensor through a no-op, such as `x.to(x.dtype)`, count as different.
Result<Arg> is(llvm::ArrayRef<Arg> args) {
  const Arg &a = args[0], &b = args[1];
  if (a.isValue() && b.isValue() && a.value() == b.value())
    return Arg(true);
  for (const Arg &arg : args)
    if (arg.isValue() && !isSurelyTensor(arg.value()))
      return notKnown();
  return Arg(!a.isValue() && !b.isValue() && a == b);
}

Result<bool> equal(const Arg &a, const Arg &b) {
  if (a.isValue() || b.isValue())
    return notKnown();
  if (a.isList() && b.isList()) {
    bool same = a.list().size() == b.list().size();
    for (size_t i = 0; same && i < a.list().size(); ++i) {
      CGC_ASSIGN_OR_RETURN(same, equal(a.list()[i], b.list()[i]));
    }
    return same;
  }
  const Arg x = plain(a), y = plain(b);
  if (x.asNumber() && y.asNumber() && !(x.is<int64_t>() && y.is<int64_t>()))
    return *x.asNumber() == *y.asNumber();
  return x == y;
}

Result<Arg> equalArgs(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(bool same, equal(args[0], args[1]));
  return Arg(same);
}

/// A dict is a list of [key, value] lists.
Result<Arg> contains(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(const Arg::List *elements, listFrom(args[0]));
  bool found = false;
  for (size_t i = 0; !found && i < elements->size(); ++i) {
    const Arg &element = (*elements)[i];
    const bool isEntry = element.isList() && !args[1].isList();
    CGC_ASSIGN_OR_RETURN(found, equal(isEntry ? element.list().front() : element, args[1]));
  }
  return Arg(found);
}

Result<Arg> concat(llvm::ArrayRef<Arg> args) {
  if (args[0].is<std::string>() && args[1].is<std::string>())
    return Arg(args[0].as<std::string>() + args[1].as<std::string>());
  CGC_ASSIGN_OR_RETURN(const Arg::List *first, listFrom(args[0]));
  CGC_ASSIGN_OR_RETURN(const Arg::List *second, listFrom(args[1]));
  Arg::List list = *first;
  list.insert(list.end(), second->begin(), second->end());
  return Arg(std::move(list));
}

Result<Arg> listSlice(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(const Arg::List *elements, listFrom(args[0]));
  const int64_t size = static_cast<int64_t>(elements->size());
  const int64_t *step = args[3].getIf<int64_t>();
  if (!step || *step < 1)
    return rules::refuse("expected 'step' to be a positive int");
  auto bound = [&](const Arg &arg, int64_t missing) -> Result<int64_t> {
    if (arg.isNone())
      return missing;
    const int64_t *i = arg.getIf<int64_t>();
    if (!i)
      return notKnown();
    return std::clamp<int64_t>(*i < 0 ? *i + size : *i, 0, size);
  };
  CGC_ASSIGN_OR_RETURN(int64_t begin, bound(args[1], 0));
  CGC_ASSIGN_OR_RETURN(int64_t end, bound(args[2], size));
  Arg::List list;
  for (int64_t i = begin; i < end; i += std::min(*step, end - i))
    list.push_back((*elements)[static_cast<size_t>(i)]);
  return Arg(std::move(list));
}

Result<Arg> append(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(const Arg::List *elements, listFrom(args[0]));
  Arg::List list = *elements;
  list.push_back(args[1]);
  return Arg(std::move(list));
}

Result<Arg> setItem(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(const Arg::List *elements, listFrom(args[0]));
  Arg::List list = *elements;
  if (args[1].is<std::string>()) {
    for (Arg &entry : list)
      if (entry.isList() && entry.list().size() == 2 && entry.list()[0] == args[1]) {
        entry.list()[1] = args[2];
        return Arg(std::move(list));
      }
    list.emplace_back(Arg::List{args[1], args[2]});
    return Arg(std::move(list));
  }
  const int64_t *index = args[1].getIf<int64_t>();
  if (!index)
    return rules::refuse("expected 'key' to be an int, or a string for a dict");
  const int64_t size = static_cast<int64_t>(list.size());
  if (*index < -size || *index >= size)
    return rules::refuse("expected 'key' to be inside a list of " + llvm::Twine(size) + ", got " +
                         llvm::Twine(*index));
  list[static_cast<size_t>(*index < 0 ? *index + size : *index)] = args[2];
  return Arg(std::move(list));
}

/// Returns the number of true elements; nullopt if one is not known.
Result<size_t> countTrue(const Arg &arg) {
  CGC_ASSIGN_OR_RETURN(const Arg::List *elements, listFrom(arg));
  size_t count = 0;
  for (const Arg &element : *elements) {
    if (!element.asNumber())
      return notKnown();
    count += *element.asNumber() != 0;
  }
  return count;
}

Result<Arg> all(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(size_t count, countTrue(args[0]));
  return Arg(count == args[0].list().size());
}

Result<Arg> any(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(size_t count, countTrue(args[0]));
  return Arg(count > 0);
}

/// The text appears only in messages, so a tensor is printed as its value name.
Result<Arg> format(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(const Arg::List *parts, listFrom(args[0]));
  if (parts->empty() || !parts->front().is<std::string>())
    return rules::refuse("expected a string with {} for each argument");
  llvm::StringRef rest = parts->front().as<std::string>();
  std::string text;
  for (const Arg &part : llvm::drop_begin(*parts)) {
    bool known = true;
    part.forEachValue([&](const Value *value) { known &= value->isTensor(); });
    if (!known)
      return notKnown();
    auto [before, after] = rest.split("{}");
    text += before;
    text += part.is<std::string>() ? part.as<std::string>() : argText(part);
    rest = after;
  }
  return Arg(text + rest.str());
}

Result<Arg> deviceType(llvm::ArrayRef<Arg> args) {
  if (!args[0].is<DeviceKind>())
    return notKnown();
  return Arg(std::string(deviceName(args[0].as<DeviceKind>())));
}

Result<Arg> isFloatingTensor(llvm::ArrayRef<Arg> args) {
  if (!args[0].isValue() || !args[0].value()->isTensor())
    return rules::refuse("expected a tensor whose type is known at compile time");
  return Arg(isFloating(args[0].value()->tensor().dtype));
}

Result<Arg> item(llvm::ArrayRef<Arg> args) {
  if (!args[0].asNumber())
    return notKnown();
  return args[0];
}

constexpr OpDef valueOp(const char *schema, EvaluateFn evaluate, const char *doc) {
  return {.schema = schema, .traits = kPure | kHost, .evaluate = evaluate, .doc = doc};
}

} // namespace

const OpDef defs::PrimDeviceType =
    valueOp("(any device) -> any", deviceType, "The name of a device: \"cpu\" or \"cuda\".");
const OpDef defs::PrimIsFloating =
    valueOp("(Tensor self) -> any", isFloatingTensor, "Whether a tensor is of a floating dtype.");
const OpDef defs::PrimItem =
    valueOp("(any self) -> any", item,
            "The number itself. The element of a tensor is refused, since the host would read it.");
const OpDef defs::PrimIs = valueOp(
    "(any a, any b) -> any", is, "Whether both are the same tensor, or the same constant (none).");
const OpDef defs::PrimEqual =
    valueOp("(any a, any b) -> any", equalArgs,
            "Whether two host values are equal; lists by element; a dtype equals ATen's number of "
            "it.");
const OpDef defs::PrimContains = valueOp("(any container, any item) -> any", contains,
                                         "Whether a list has an equal element, or a dict the key.");
const OpDef defs::PrimConcat =
    valueOp("(any a, any b) -> any", concat, "Two lists or two strings, concatenated.");
const OpDef defs::PrimListSlice =
    valueOp("(any list, any start, any end, any step) -> any", listSlice,
            "The elements list[start:end:step]; step is positive.");
const OpDef defs::PrimAppend =
    valueOp("(any list, any item) -> any", append, "A new list with one more element.");
const OpDef defs::PrimSetItem = valueOp(
    "(any container, any key, any value) -> any", setItem,
    "A new list or dict with the element at an index or a key replaced; a new key comes last.");
const OpDef defs::PrimAll = valueOp("(any list) -> any", all, "Whether all elements are true.");
const OpDef defs::PrimAny = valueOp("(any list) -> any", any, "Whether an element is true.");
const OpDef defs::PrimFormat =
    valueOp("(any[] parts) -> any", format,
            "The first string, each {} in it replaced by one of the other parts.");

} // namespace cgc::ir
