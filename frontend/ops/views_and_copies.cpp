// Op functions: views, copies, casts and padding.
#include "frontend/ops/op_import.h"

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
  const Arg::List tensors = op.tensors("tensors");
  if (tensors.empty())
    return op.refused();
  // Only the sizes of the sum are used.
  Arg sum = tensors.front();
  for (const Arg &tensor : llvm::drop_begin(tensors))
    sum = op.emit(OpKind::Add, {{"self", sum}, {"other", tensor}});
  const Arg sizes = op.emit(OpKind::Size, {{"self", sum}});
  Arg::List results;
  for (const Arg &tensor : tensors)
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

namespace {
Arg unsqueezed(OpImporter &op, Arg tensor, int64_t dim) {
  return op.emit(OpKind::Unsqueeze, {{"self", std::move(tensor)}, {"dim", dim}});
}

Arg reshaped(OpImporter &op, Arg tensor, Arg::List shape) {
  return op.emit(OpKind::Reshape, {{"self", std::move(tensor)}, {"shape", std::move(shape)}});
}

/// Returns the elements from `start` to before `end` along `dim`.
Arg sliced(OpImporter &op, Arg tensor, Arg dim, Arg start, Arg end) {
  return op.emit(OpKind::Slice, {{"self", std::move(tensor)},
                                 {"dim", std::move(dim)},
                                 {"start", std::move(start)},
                                 {"end", std::move(end)}});
}

Arg joined(OpImporter &op, Arg::List tensors, Arg dim) {
  return op.emit(OpKind::Cat, {{"tensors", std::move(tensors)}, {"dim", std::move(dim)}});
}

/// Returns a tensor with at least `rank` dimensions, of which the new ones have size 1.
Arg atLeast(OpImporter &op, int64_t rank, const Arg &tensor) {
  const auto fromVector = [&] { return unsqueezed(op, tensor, 0); };
  const auto orLonger = [&](int64_t known, llvm::function_ref<Arg()> then,
                            llvm::function_ref<Arg()> otherwise) {
    return op.chooseBranch(op.hasRank(tensor, known), then, otherwise);
  };
  const auto itself = [&] { return tensor; };
  const auto matrixOrLonger = [&] {
    return rank < 3 ? itself() : orLonger(2, [&] { return unsqueezed(op, tensor, -1); }, itself);
  };
  const auto vectorOrLonger = [&] {
    if (rank < 2)
      return itself();
    return orLonger(
        1, [&] { return rank == 2 ? fromVector() : unsqueezed(op, fromVector(), -1); },
        matrixOrLonger);
  };
  return orLonger(
      0, [&] { return reshaped(op, tensor, Arg::List(static_cast<size_t>(rank), Arg(1))); },
      vectorOrLonger);
}

/// Returns the tensors of the list 'tensors' with at least `rank` dimensions; none if the call is
/// refused.
Arg::List allAtLeast(OpImporter &op, int64_t rank) {
  Arg::List results;
  for (const Arg &tensor : op.tensors("tensors"))
    results.push_back(atLeast(op, rank, tensor));
  return results;
}

/// Imports the overloads for a tensor and for a list of tensors.
Arg importAtLeast(OpImporter &op, int64_t rank) {
  if (const Arg self = op.arg("self"); !self.isNone())
    return atLeast(op, rank, self);
  const Arg::List tensors = allAtLeast(op, rank);
  return tensors.empty() ? op.refused() : Arg(tensors);
}
} // namespace

Arg importAtLeast1d(OpImporter &op) {
  return importAtLeast(op, 1);
}
Arg importAtLeast2d(OpImporter &op) {
  return importAtLeast(op, 2);
}
Arg importAtLeast3d(OpImporter &op) {
  return importAtLeast(op, 3);
}

Arg importHstack(OpImporter &op) {
  const Arg::List tensors = allAtLeast(op, 1);
  if (tensors.empty())
    return op.refused();
  return joined(op, tensors, op.choose(op.hasRank(tensors.front(), 1), 0, 1));
}

Arg importVstack(OpImporter &op) {
  const Arg::List tensors = allAtLeast(op, 2);
  return tensors.empty() ? op.refused() : joined(op, tensors, 0);
}

Arg importDstack(OpImporter &op) {
  const Arg::List tensors = allAtLeast(op, 3);
  return tensors.empty() ? op.refused() : joined(op, tensors, 2);
}

Arg importColumnStack(OpImporter &op) {
  Arg::List columns;
  for (const Arg &tensor : op.tensors("tensors")) {
    const Arg isMatrix =
        op.emit(OpKind::Gt, {{"self", op.emit(OpKind::Dim, {{"self", tensor}})}, {"other", 1}});
    columns.push_back(op.chooseBranch(
        isMatrix, [&] { return tensor; }, [&] { return reshaped(op, tensor, Arg::List{-1, 1}); }));
  }
  return columns.empty() ? op.refused() : joined(op, columns, 1);
}

Arg importBlockDiag(OpImporter &op) {
  const Arg::List blocks = allAtLeast(op, 2);
  if (blocks.empty())
    return op.refused();
  Arg width = 0; // Of all blocks.
  Arg::List ends;
  for (const Arg &block : blocks)
    ends.push_back(width = op.emit(OpKind::Add, {{"self", width}, {"other", op.sizeOf(block, 1)}}));
  Arg::List rows;
  Arg left = 0;
  for (const auto &[block, end] : llvm::zip_equal(blocks, ends)) {
    Arg right = op.emit(OpKind::Sub, {{"self", width}, {"other", end}});
    rows.push_back(op.emit(OpKind::ConstantPadNd,
                           {{"self", block}, {"pad", Arg::List{left, right}}, {"value", 0}}));
    left = end;
  }
  return joined(op, rows, 0);
}

namespace {
/// Returns the parts of 'self' along `dim`: between 'indices', or 'sections' parts whose sizes
/// differ by at most one, the longer ones first.
Arg split(OpImporter &op, const Arg &dim) {
  constexpr int64_t kMost = 1024; // Each part is a node.
  const Arg self = op.arg("self"), indices = op.arg("indices");
  Arg::List starts = {0}, parts;
  if (indices.isList()) {
    starts.insert(starts.end(), indices.list().begin(), indices.list().end());
  } else {
    const Arg sections = op.constant("sections");
    if (!sections.is<int64_t>() || sections.as<int64_t>() < 1 || sections.as<int64_t>() > kMost)
      return op.refuse("cgc splits a tensor at indices that the model writes out, or into a "
                       "constant number of parts, from 1 to " +
                       std::to_string(kMost));
    const Arg size = op.sizeOf(self, dim);
    const Arg shorter = op.emit(OpKind::FloorDivide, {{"self", size}, {"other", sections}});
    const Arg longer = op.emit(OpKind::Remainder, {{"self", size}, {"other", sections}});
    for (int64_t i = 1; i < sections.as<int64_t>(); ++i)
      starts.push_back(op.emit(
          OpKind::Add, {{"self", op.emit(OpKind::Mul, {{"self", shorter}, {"other", i}})},
                        {"other", op.emit(OpKind::Minimum, {{"self", longer}, {"other", i}})}}));
  }
  for (size_t i = 0; i < starts.size(); ++i)
    parts.push_back(
        sliced(op, self, dim, starts[i], i + 1 < starts.size() ? starts[i + 1] : Arg()));
  return parts;
}
} // namespace

Arg importTensorSplit(OpImporter &op) {
  return split(op, op.arg("dim"));
}
Arg importHsplit(OpImporter &op) {
  return split(op, op.choose(op.hasRank(op.arg("self"), 1), 0, 1));
}
Arg importVsplit(OpImporter &op) {
  return split(op, 0);
}
Arg importDsplit(OpImporter &op) {
  return split(op, 2);
}

namespace {
/// Returns each vector as a tensor with a dimension for each of `vectors`, along which it runs; the
/// first two change places if `swapsFirst`.
Arg::List grids(OpImporter &op, const Arg::List &vectors, bool swapsFirst) {
  const auto placeOf = [&](size_t i) {
    return swapsFirst && vectors.size() > 1 && i < 2 ? 1 - i : i;
  };
  Arg::List sizes(vectors.size()), results;
  for (size_t i = 0; i < vectors.size(); ++i)
    sizes[placeOf(i)] = op.emit(OpKind::Numel, {{"self", vectors[i]}});
  for (size_t i = 0; i < vectors.size(); ++i) {
    Arg::List shape(vectors.size(), Arg(1));
    shape[placeOf(i)] = -1;
    results.push_back(
        op.emit(OpKind::Expand, {{"self", reshaped(op, vectors[i], shape)}, {"size", sizes}}));
  }
  return results;
}
} // namespace

Arg importMeshgrid(OpImporter &op) {
  const Arg::List vectors = op.tensors("tensors");
  const Arg indexing = op.constant("indexing");
  return vectors.empty() ? op.refused() : Arg(grids(op, vectors, indexing == Arg("xy")));
}

Arg importCartesianProd(OpImporter &op) {
  const Arg::List vectors = op.tensors("tensors");
  if (vectors.empty())
    return op.refused();
  if (vectors.size() == 1)
    return vectors.front();
  Arg::List columns;
  for (const Arg &grid : grids(op, vectors, false))
    columns.push_back(reshaped(op, grid, Arg::List{-1}));
  return op.emit(OpKind::Stack, {{"tensors", columns}, {"dim", 1}});
}

Arg importDiff(OpImporter &op) {
  constexpr int64_t kMost = 64; // Each difference is a node.
  const Arg n = op.constant("n"), dim = op.arg("dim");
  if (!n.is<int64_t>() || n.as<int64_t>() < 0 || n.as<int64_t>() > kMost)
    return op.refuse("cgc takes differences a constant number of times, from 0 to " +
                     std::to_string(kMost));
  Arg::List parts;
  for (llvm::StringRef name : {"prepend", "self", "append"})
    if (Arg part = op.arg(name); !part.isNone())
      parts.push_back(std::move(part));
  Arg values = parts.size() == 1 ? parts.front() : joined(op, parts, dim);
  for (int64_t i = 0; i < n.as<int64_t>(); ++i) {
    const Arg isBool =
        op.emit(OpKind::PrimEqual,
                {{"a", op.emit(OpKind::PrimDType, {{"self", values}})}, {"b", DType::Bool}});
    const Arg later = sliced(op, values, dim, 1, {}), earlier = sliced(op, values, dim, 0, -1);
    const auto difference = [&](OpKind kind) {
      return op.emit(kind, {{"self", later}, {"other", earlier}});
    };
    values = op.chooseBranch(
        isBool, [&] { return difference(OpKind::LogicalXor); },
        [&] { return difference(OpKind::Sub); });
  }
  return n == Arg(0) ? op.emit(OpKind::Clone, {{"self", values}}) : values;
}

Arg importRot90(OpImporter &op) {
  const Arg self = op.arg("self"), k = op.constant("k"), dims = op.constant("dims");
  if (!k.is<int64_t>() || !dims.isList() || dims.list().size() != 2)
    return op.refuse("cgc rotates a constant number of times in two dimensions");
  const Arg first = dims.list()[0], second = dims.list()[1];
  const int64_t turns = (k.as<int64_t>() % 4 + 4) % 4;
  if (turns == 0)
    return op.emit(OpKind::Clone, {{"self", self}});
  const auto flipped = [&](Arg::List along) {
    return op.emit(OpKind::Flip, {{"self", self}, {"dims", std::move(along)}});
  };
  if (turns == 2)
    return flipped({first, second});
  return op.emit(
      OpKind::Transpose,
      {{"self", flipped({turns == 1 ? second : first})}, {"dim0", first}, {"dim1", second}});
}

Arg importChannelShuffle(OpImporter &op) {
  Arg groups =
      op.emit(OpKind::Unflatten,
              {{"self", op.arg("self")}, {"dim", 1}, {"sizes", Arg::List{op.arg("groups"), -1}}});
  Arg shuffled = op.emit(OpKind::Transpose, {{"self", groups}, {"dim0", 1}, {"dim1", 2}});
  return op.emit(OpKind::Flatten, {{"self", shuffled}, {"start_dim", 1}, {"end_dim", 2}});
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

/// Puts the end of each dimension before it and its start behind it.
Arg importPadCircular(OpImporter &op) {
  Arg result = op.arg("self");
  const Arg pad = op.constant("pad");
  if (!pad.isList() || pad.list().size() % 2 != 0)
    return op.refuse("cgc takes constant paddings of a circular pad, two for each dimension");
  for (size_t i = 0; i < pad.list().size() / 2; ++i) {
    const Arg dim = -1 - static_cast<int64_t>(i);
    const Arg &before = pad.list()[2 * i], &after = pad.list()[2 * i + 1];
    Arg::List parts;
    for (const Arg &padding : {before, after}) {
      if (!padding.is<int64_t>() || padding.as<int64_t>() < 0)
        return op.refuse("cgc takes no negative paddings of a circular pad; slice the tensor");
      const Arg isLarge =
          op.emit(OpKind::Gt, {{"self", padding}, {"other", op.sizeOf(result, dim)}});
      op.refuseIf(isLarge, "a circular padding that is larger than the dimension");
    }
    if (before != Arg(0))
      parts.push_back(sliced(op, result, dim, -before.as<int64_t>(), {}));
    parts.push_back(result);
    if (after != Arg(0))
      parts.push_back(sliced(op, result, dim, 0, after));
    if (parts.size() > 1)
      result = joined(op, parts, dim);
  }
  return result;
}

Arg importPad(OpImporter &op) {
  Arg mode = op.constant("mode"), pad = op.arg("pad"), value = op.argOr("value", 0);
  if (mode == Arg("constant"))
    return op.emit(OpKind::ConstantPadNd,
                   {{"self", op.arg("self")}, {"pad", pad}, {"value", value}});
  if (mode == Arg("circular"))
    return importPadCircular(op);
  const bool mirrors = mode == Arg("reflect");
  const size_t length = pad.isList() ? pad.list().size() : 0;
  if ((!mirrors && mode != Arg("replicate")) || (length != 2 && length != 4 && length != 6))
    return op.refuse("cgc pads with a constant, by \"circular\", or one to three dimensions by "
                     "\"reflect\" or \"replicate\"");
  constexpr OpKind kMirror[] = {OpKind::ReflectionPad1d, OpKind::ReflectionPad2d,
                                OpKind::ReflectionPad3d};
  constexpr OpKind kRepeat[] = {OpKind::ReplicationPad1d, OpKind::ReplicationPad2d,
                                OpKind::ReplicationPad3d};
  const OpKind kind = (mirrors ? kMirror : kRepeat)[length / 2 - 1];
  return op.emit(kind, {{"self", op.arg("self")}, {"padding", pad}});
}

} // namespace cgc::frontend
