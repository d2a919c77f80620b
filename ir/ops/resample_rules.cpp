// resample_rules: the positions of lookups.
#include "ir/ops/resample_rules.h"

namespace cgc::ir::rules {
namespace {

/// How far apart neighbors of the result are, in elements of self.
template <class Float>
Float stepOf(const OpBuilder &b, unsigned spatial, unsigned i, int64_t from, int64_t to) {
  const Arg &scale = b.arg(scaleName(spatial, i));
  return scale.isNone() ? static_cast<Float>(from) / static_cast<Float>(to)
                        : static_cast<Float>(1 / *scale.asNumber());
}

Value *elementsAt(OpBuilder &b, Value *self, int64_t dim, Value *positions) {
  return b.call(OpKind::IndexSelect, {self, dim, b.to(positions, DType::I64)});
}

} // namespace

/// As LibTorch's kernel for the CPU does, computes positions in the dtype of self, at least f32,
/// and rounds them to f32 before the floor. The center is half an element away from the position.
Values resampleNearest(OpBuilder &b, unsigned spatial, Nearest nearest) {
  Value *y = b.input("self");
  const Dims size = b.args().ints("output_size");
  const DType wide = y->tensor().dtype == DType::F64 ? DType::F64 : DType::F32;
  for (unsigned i = 0; i < spatial; ++i) {
    const int64_t dim = i + 2, from = y->tensor().sizes[dim], to = size[i];
    const double step = wide == DType::F64 ? stepOf<double>(b, spatial, i, from, to)
                                           : stepOf<float>(b, spatial, i, from, to);
    Value *positions = b.call(OpKind::Arange, {0, to, 1, DType::F64});
    if (nearest == Nearest::Center) {
      positions = b.sub(b.mul(b.add(positions, 0.5), step), 0.5);
      positions = b.add(b.to(positions, wide), 0.5);
    } else {
      positions = b.mul(positions, step);
    }
    positions = b.to(positions, DType::F32);
    positions = b.call(OpKind::Floor, {positions});
    const double last = static_cast<double>(from - 1);
    y = elementsAt(b, y, dim, b.call(OpKind::Clamp, {positions, Arg(), last}));
  }
  return {y};
}

Values resampleLinear(OpBuilder &b, unsigned spatial) {
  const DType dtype = b.result()->tensor().dtype;
  const DType wide = dtype == DType::F64 ? DType::F64 : DType::F32;
  Value *y = b.to(b.input("self"), wide);
  const Dims size = b.args().ints("output_size");
  const bool aligns = b.args().boolean("align_corners");
  for (unsigned i = 0; i < spatial; ++i) {
    const int64_t dim = i + 2, from = y->tensor().sizes[dim], to = size[i];
    if (from == to)
      continue; // Whatever the scale is.
    double step = stepOf<double>(b, spatial, i, from, to);
    if (aligns)
      step = to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0;
    Value *positions = b.call(OpKind::Arange, {0, to, 1, wide});
    positions =
        aligns ? b.mul(positions, step)
               : b.call(OpKind::ClampMin, {b.sub(b.mul(b.add(positions, 0.5), step), 0.5), 0.0});
    const double last = static_cast<double>(from - 1);
    Value *below = b.call(OpKind::Clamp, {b.call(OpKind::Floor, {positions}), Arg(), last});
    Value *above = b.call(OpKind::Clamp, {b.add(below, 1), Arg(), last});
    Value *weight = b.call(OpKind::Clamp, {b.sub(positions, below), 0.0, 1.0});
    Dims shape(static_cast<size_t>(spatial - i), 1);
    shape.front() = to;
    weight = b.reshape(weight, shape);
    Value *first = b.mul(elementsAt(b, y, dim, below), b.call(OpKind::Rsub, {weight, 1}));
    y = b.add(first, b.mul(elementsAt(b, y, dim, above), weight));
  }
  return {b.to(y, dtype)};
}

} // namespace cgc::ir::rules
