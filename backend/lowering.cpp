// Lowering: derives how each op becomes records from lowerings.def and the ops' definitions.
#include "backend/lowering.h"

#include "backend/kernels.h"
#include "ir/op_def.h"
#include "runtime/base/check.h"

#include "llvm/ADT/StringExtras.h"

namespace cgc::backend {
namespace {

/// The row of lowerings.def; nothing if the op has none.
std::optional<Lowering> rowOf(ir::OpKind op) {
  switch (op) {
#define CGC_LOWERING(Enum, function)                                                               \
  case ir::OpKind::Enum:                                                                           \
    return Lowering{.kind = Lowering::Kind::Special, .special = function};
#define CGC_LAUNCH(Enum, function)                                                                 \
  case ir::OpKind::Enum:                                                                           \
    return Lowering{.kind = Lowering::Kind::Defined, .launch = function};
#include "backend/lowerings.def"
  default:
    return std::nullopt;
  }
}

/// The argument that a word of OpDef::aten names.
CallArg callArg(const ir::Schema &schema, llvm::StringRef word) {
  if (std::optional<unsigned> index = schema.find(word))
    return *index;
  if (word == "true" || word == "false")
    return AtenArg(word == "true");
  if (word == "none")
    return AtenArg(NoneArg{});
  int64_t number = 0;
  const bool failed = word.getAsInteger(10, number);
  CGC_CHECK(!failed && "OpDef::aten names an argument that the op does not have");
  return AtenArg(number);
}

/// Parses OpDef::aten: `[copy ]aten::op[.overload][(argument, ...)]`.
Lowering callOf(ir::OpKind op, llvm::StringRef text) {
  const bool copies = text.consume_front("copy ");
  auto [target, list] = text.split('(');
  auto [name, overload] = target.split('.');
  Lowering row{copies ? Lowering::Kind::Copied : Lowering::Kind::Into, name.str(), overload.str()};
  const ir::Schema &schema = ir::opSchema(op);
  if (!list.consume_back(")"))
    list = "...";
  llvm::SmallVector<llvm::StringRef> words;
  list.split(words, ',');
  for (llvm::StringRef word : words)
    if (word.trim() == "...")
      for (unsigned i = 0; i < schema.args.size(); ++i)
        row.args.emplace_back(i);
    else
      row.args.push_back(callArg(schema, word.trim()));
  return row;
}

Lowering derive(ir::OpKind op) {
  if (std::optional<Lowering> row = rowOf(op))
    return *row;
  if (ir::hasTrait(op, ir::kHost))
    return {.kind = Lowering::Kind::Host};
  if (ir::hasTrait(op, ir::kView))
    return {.kind = Lowering::Kind::View};
  if (const char *call = ir::opDef(op).aten)
    return callOf(op, call);
  if (ir::opDef(op).decompose)
    return {.kind = Lowering::Kind::Defined};
  return callOf(op, "aten::" + ir::opName(op).split('.').second.str() + ".out");
}

} // namespace

const Lowering &lowering(ir::OpKind op) {
  static const std::vector<Lowering> rows = [] {
    std::vector<Lowering> derived;
    for (unsigned i = 0; i < ir::kNumOps; ++i)
      derived.push_back(derive(static_cast<ir::OpKind>(i)));
    return derived;
  }();
  return rows[static_cast<unsigned>(op)];
}

Result<std::optional<std::vector<Place>>> viewPlaces(const ir::Node &node, const Place &base,
                                                     DeviceKind target) {
  CGC_ASSIGN_OR_RETURN(auto inferred, ir::inferResults(node.op(), node.args(), target));
  CGC_CHECK(inferred.size() == node.numResults());
  std::vector<Place> places;
  for (const ir::Inferred &result : inferred) {
    if (!result.viewOffset)
      return std::optional<std::vector<Place>>();
    // An empty view may begin past the end of its memory.
    const bool isEmpty = result.type.numElements() == 0;
    const uint64_t offset =
        isEmpty ? 0 : static_cast<uint64_t>(*result.viewOffset) * dtypeSize(base.dtype);
    places.push_back({base.storage, base.offset + offset, result.type.dtype, result.type.sizes,
                      result.type.strides});
  }
  return std::optional(std::move(places));
}

Place expectedPlace(const ir::Value &value, const BucketBuilder &builder) {
  if (builder.isPlaced(&value))
    return builder.place(&value);
  const ir::Node &node = *value.node();
  if (node.kind() == ir::NodeKind::CallFunction && ir::hasTrait(node.op(), ir::kView)) {
    const Place base = expectedPlace(*ir::aliasedArg(node).value(), builder);
    if (const auto places = viewPlaces(node, base, builder.target()); places && *places)
      return (**places)[value.index()];
  }
  const ir::TensorType &type = value.tensor();
  return {.dtype = type.dtype, .sizes = type.sizes, .strides = type.strides};
}

std::vector<AtenArg> callArgs(const ir::Node &node, BucketBuilder &builder) {
  std::vector<AtenArg> args;
  for (const ir::Arg &arg : node.args())
    args.push_back(builder.arg(arg));
  return args;
}

Place densePlace(const Place &place, BucketBuilder &builder) {
  if (place.type().isContiguous())
    return place;
  Place copy = builder.temporary(place.dtype, place.sizes);
  builder.copy(place, copy);
  return copy;
}

Place flatPlace(const Place &place, BucketBuilder &builder) {
  Place flat = densePlace(place, builder);
  flat.sizes = {flat.type().numElements()};
  flat.strides = {1};
  return flat;
}

void addInto(const Place &x, const Place &z, const Place &result, BucketBuilder &builder) {
  if (x.dtype != z.dtype || !launchElementwise(ElementwiseOp::Add, x, z, 0, result, builder))
    builder.callInto("aten::add", "out", {builder.tensor(x), builder.tensor(z), int64_t{1}},
                     result);
}

void multiplyInto(const Place &x, const Place &z, const Place &result, BucketBuilder &builder) {
  if (x.dtype != z.dtype || !launchElementwise(ElementwiseOp::Mul, x, z, 0, result, builder))
    builder.callInto("aten::mul", "out", {builder.tensor(x), builder.tensor(z)}, result);
}

Place scalarTensor(const ir::Arg &number, DType dtype, BucketBuilder &builder) {
  Place place = builder.temporary(dtype, {});
  builder.fill(place, number);
  return place;
}

} // namespace cgc::backend
