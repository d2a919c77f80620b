// Op functions: views, copies, casts and padding.
#include "frontend/op_import.h"

namespace cgc::frontend {

using ir::Arg;
using ir::OpKind;

Arg importReshapeAs(OpImporter &op) {
  return op.emit(OpKind::Reshape, {{"self", op.arg("self")},
                                   {"shape", op.emit(OpKind::Size, {{"self", op.arg("other")}})}});
}

Arg importExpandAs(OpImporter &op) {
  return op.emit(OpKind::Expand, {{"self", op.arg("self")},
                                  {"size", op.emit(OpKind::Size, {{"self", op.arg("other")}})}});
}

Arg importT(OpImporter &op) {
  return op.emit(OpKind::Transpose, {{"self", op.arg("self")}, {"dim0", 0}, {"dim1", 1}});
}

Arg importNumpyT(OpImporter &op) {
  // Reverses all dimensions: exchanges the first with the last of up to three.
  const Arg self = op.arg("self");
  const Arg isHigh =
      op.emit(OpKind::Gt, {{"self", op.emit(OpKind::Dim, {{"self", self}})}, {"other", 3}});
  op.refuseIf(isHigh, "x.T of a tensor with more than three dimensions; write x.permute");
  return op.emit(OpKind::Transpose, {{"self", self}, {"dim0", 0}, {"dim1", -1}});
}

Arg importMT(OpImporter &op) {
  return op.emit(OpKind::Transpose, {{"self", op.arg("self")}, {"dim0", -2}, {"dim1", -1}});
}

Arg importNarrow(OpImporter &op) {
  Arg start = op.arg("start");
  return op.emit(OpKind::Slice,
                 {{"self", op.arg("self")},
                  {"dim", op.arg("dim")},
                  {"start", start},
                  {"end", op.emit(OpKind::Add, {{"self", start}, {"other", op.arg("length")}})}});
}

Arg importRavel(OpImporter &op) {
  return op.emit(OpKind::Reshape, {{"self", op.arg("self")}, {"shape", Arg::List{-1}}});
}

Arg importMovedim(OpImporter &op) {
  return op.emit(OpKind::Movedim, {{"self", op.arg("self")},
                                   {"source", Arg::List{op.arg("source")}},
                                   {"destination", Arg::List{op.arg("destination")}}});
}

Arg importBroadcastTensors(OpImporter &op) {
  const Arg tensors = op.arg("tensors");
  if (!tensors.isList() || tensors.list().empty())
    return op.refuse("cgc broadcasts a list of tensors that the model writes out");
  // Only the sizes of the sum are used.
  Arg sum = tensors.list().front();
  for (const Arg &tensor : llvm::drop_begin(tensors.list()))
    sum = op.emit(OpKind::Add, {{"self", sum}, {"other", tensor}});
  const Arg sizes = op.emit(OpKind::Size, {{"self", sum}});
  Arg::List results;
  for (const Arg &tensor : tensors.list())
    results.push_back(op.emit(OpKind::Expand, {{"self", tensor}, {"size", sizes}}));
  return results;
}

Arg importRepeatInterleave(OpImporter &op) {
  // The repeats become a dimension, which is merged with the one before it.
  constexpr int64_t kMost = 1024; // Each repeat is an argument of a node.
  Arg self = op.arg("self"), repeats = op.arg("repeats"), dim = op.arg("dim");
  if (!repeats.is<int64_t>() || repeats.as<int64_t>() < 1 || repeats.as<int64_t>() > kMost)
    return op.refuse("cgc repeats a constant number of times, from 1 to " + std::to_string(kMost));
  auto count = static_cast<size_t>(repeats.as<int64_t>());
  Arg first = 0, last = -1;
  if (!dim.isNone()) {
    // The new dimension follows `dim`, so a negative number of it is the same.
    Arg isFromFront = op.emit(OpKind::Ge, {{"self", dim}, {"other", 0}});
    last = op.emit(OpKind::Add,
                   {{"self", dim}, {"other", op.emit(OpKind::PrimInt, {{"a", isFromFront}})}});
    first = op.emit(OpKind::Sub, {{"self", last}, {"other", 1}});
  }
  Arg stacked = op.emit(OpKind::Stack, {{"tensors", Arg::List(count, self)}, {"dim", last}});
  return op.emit(OpKind::Flatten, {{"self", stacked}, {"start_dim", first}, {"end_dim", last}});
}

Arg importTo(OpImporter &op) {
  Arg dtype = op.arg("dtype"), device = op.arg("device"), other = op.arg("other");
  if (other.isValue())
    dtype = op.emit(OpKind::PrimDType, {{"self", other}});
  Arg result =
      op.emit(OpKind::To, {{"self", op.arg("self")}, {"dtype", dtype}, {"device", device}});
  if (op.constant("copy") == Arg(true))
    result = op.emit(OpKind::Clone, {{"self", result}});
  return result;
}

Arg importTypeAs(OpImporter &op) {
  return op.emit(OpKind::To, {{"self", op.arg("self")},
                              {"dtype", op.emit(OpKind::PrimDType, {{"self", op.arg("other")}})}});
}

Arg importToCopy(OpImporter &op) {
  return op.emit(OpKind::Clone, {{"self", importTo(op)}});
}

Arg importCopy(OpImporter &op) {
  Arg self = op.arg("self");
  Arg source = op.emit(OpKind::To, {{"self", op.arg("src")},
                                    {"dtype", op.emit(OpKind::PrimDType, {{"self", self}})}});
  source = op.emit(OpKind::Expand,
                   {{"self", source}, {"size", op.emit(OpKind::Size, {{"self", self}})}});
  return op.emit(OpKind::Clone, {{"self", source}});
}

Arg importPad(OpImporter &op) {
  Arg mode = op.constant("mode"), pad = op.arg("pad"), value = op.argOr("value", 0);
  if (mode == Arg("constant"))
    return op.emit(OpKind::ConstantPad, {{"self", op.arg("self")}, {"pad", pad}, {"value", value}});
  const bool mirrors = mode == Arg("reflect");
  const size_t length = pad.isList() ? pad.list().size() : 0;
  if ((!mirrors && mode != Arg("replicate")) || (length != 2 && length != 4 && length != 6))
    return op.refuse("cgc pads with a constant, or one to three dimensions by \"reflect\" or "
                     "\"replicate\"");
  constexpr OpKind kMirror[] = {OpKind::ReflectionPad1d, OpKind::ReflectionPad2d,
                                OpKind::ReflectionPad3d};
  constexpr OpKind kRepeat[] = {OpKind::ReplicationPad1d, OpKind::ReplicationPad2d,
                                OpKind::ReplicationPad3d};
  const OpKind kind = (mirrors ? kMirror : kRepeat)[length / 2 - 1];
  return op.emit(kind, {{"self", op.arg("self")}, {"padding", pad}});
}

} // namespace cgc::frontend
