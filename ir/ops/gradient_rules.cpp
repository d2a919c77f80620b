// gradient_rules: backward rules that several ops share, and their helpers.
#include "ir/ops/gradient_rules.h"

#include "ir/ops/rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir::gradient {

// ---- Helpers

Value *scaled(OpBuilder &b, Value *a, double factor) {
  return factor == 1 ? a : b.mul(a, factor);
}

Value *power(OpBuilder &b, Value *a, double exponent) {
  return exponent == 1 ? a : b.call(OpKind::Pow, {a, exponent});
}

Value *unless(OpBuilder &b, Value *condition, Value *a) {
  return b.call(OpKind::Where, {condition, 0.0, a});
}

Value *inside(GradientBuilder &b, double low, double high) {
  const Arg &self = b.arg("self");
  Value *isInside = b.call(OpKind::LogicalAnd,
                           {b.call(OpKind::Gt, {self, low}), b.call(OpKind::Lt, {self, high})});
  return b.where(isInside, b.grad());
}

Value *gaussian(GradientBuilder &b, double factor) {
  const Arg &self = b.arg("self");
  Value *bell = b.call(OpKind::Exp, {b.neg(b.mul(self, self))});
  return b.mul(b.grad(), b.mul(bell, factor));
}

Value *identityMatrix(OpBuilder &b, int64_t size) {
  Value *columns = b.call(OpKind::Arange, {0, size});
  return b.call(OpKind::Eq, {b.call(OpKind::Unsqueeze, {columns, 1}), columns});
}

Value *productOfRows(OpBuilder &builder, Value *a, Value *b) {
  auto rows = [&](Value *value) {
    const TensorType &type = value->tensor();
    const int64_t width = type.sizes.back();
    int64_t count = 1;
    for (int64_t size : llvm::ArrayRef(type.sizes).drop_back())
      count *= size;
    return builder.reshape(value, {count, width});
  };
  Value *rowsOfB = rows(b);
  return builder.matmul(builder.transposed(rows(a)), rowsOfB);
}

Result<Value *> withReducedDims(GradientBuilder &b, Value *a, llvm::StringRef dim) {
  const TensorType &self = b.input("self")->tensor();
  CGC_ASSIGN_OR_RETURN(auto reduced, rules::listedDims(b.args(), dim, self.rank()));
  return b.reshape(a, rules::reducedSizes(self.sizes, reduced, /*keepDim=*/true));
}

Result<int64_t> reducedCount(const GradientBuilder &b) {
  const TensorType &self = b.input("self")->tensor();
  CGC_ASSIGN_OR_RETURN(auto reduced, rules::listedDims(b.args(), "dim", self.rank()));
  int64_t count = 1;
  for (auto [size, isReduced] : llvm::zip_equal(self.sizes, reduced))
    count *= isReduced ? size : 1;
  return count;
}

Value *insideWindows(OpBuilder &b, Value *begin, Value *end, int64_t size) {
  Value *element = b.call(OpKind::Arange, {0, size});
  return b.call(OpKind::LogicalAnd,
                {b.call(OpKind::Ge, {element, begin}), b.call(OpKind::Lt, {element, end})});
}

Value *timesAlong(OpBuilder &b, Value *a, int64_t dim, Value *weights) {
  Value *product = b.matmul(b.call(OpKind::Transpose, {a, dim, -1}), weights);
  return b.call(OpKind::Transpose, {product, dim, -1});
}

Value *placed(GradientBuilder &b, Value *part, int64_t dim, int64_t start, int64_t step) {
  Value *self = b.input("self");
  const int64_t size = self->tensor().sizes[dim], count = part->tensor().sizes[dim];
  if (count == 0)
    return b.zerosLike(self);
  if (step != 1) { // The part may end before self does.
    const int64_t end = start + (count - 1) * step + 1;
    return b.call(OpKind::SliceScatter, {b.zerosLike(self), part, dim, start, end, step});
  }
  if (count == size)
    return part;
  Dims pad(2 * (self->tensor().sizes.size() - static_cast<size_t>(dim)));
  pad[pad.size() - 2] = start; // The last dimension comes first.
  pad[pad.size() - 1] = size - start - count;
  return b.call(OpKind::ConstantPadNd, {part, Arg::ints(pad)});
}

// ---- Complete rules

Status identity(GradientBuilder &b) {
  b.set("self", b.grad());
  return Status::ok();
}

Status reshaped(GradientBuilder &b) {
  b.set("self", b.reshape(b.grad(), b.input("self")->tensor().sizes));
  return Status::ok();
}

Status difference(GradientBuilder &b, int sign) {
  const llvm::StringRef minuend = sign > 0 ? "self" : "other", other = sign > 0 ? "other" : "self";
  b.set(minuend, b.grad());
  if (b.needs(other))
    b.set(other, b.neg(scaled(b, b.grad(), b.number("alpha"))));
  return Status::ok();
}

Status addedProduct(GradientBuilder &b, llvm::StringRef left, llvm::StringRef right) {
  if (b.needs("self"))
    b.set("self", scaled(b, b.grad(), b.number("beta")));
  if (!b.needs(left) && !b.needs(right))
    return Status::ok();
  Value *grad = scaled(b, b.grad(), b.number("alpha"));
  if (b.needs(left))
    b.set(left, b.matmul(grad, b.transposed(b.input(right))));
  if (b.needs(right))
    b.set(right, b.matmul(b.transposed(b.input(left)), grad));
  return Status::ok();
}

Status gated(GradientBuilder &b, double factor) {
  Value *scaledSelf = scaled(b, b.input("self"), factor);
  Value *gate = b.call(OpKind::Sigmoid, {scaledSelf});
  Value *derivative = b.add(b.mul(scaledSelf, b.call(OpKind::Rsub, {gate, 1.0})), 1.0);
  b.set("self", b.mul(b.grad(), b.mul(gate, derivative)));
  return Status::ok();
}

Status joined(GradientBuilder &b, OpKind op) {
  Arg::List parts;
  for (unsigned i = 0; i < b.node().numResults(); ++i)
    parts.emplace_back(b.gradOrZeros(i));
  b.set("self", b.call(op, {parts, b.arg("dim")}));
  return Status::ok();
}

Status extremum(GradientBuilder &b, OpKind loses, OpKind wins) {
  const Arg &self = b.arg("self"), &other = b.arg("other");
  Value *isEqual = b.call(OpKind::Eq, {self, other});
  Value *grad = b.call(OpKind::Where, {isEqual, b.mul(b.grad(), 0.5), b.grad()});
  if (b.needs("self"))
    b.set("self", unless(b, b.call(loses, {self, other}), grad));
  if (b.needs("other"))
    b.set("other", unless(b, b.call(wins, {self, other}), grad));
  return Status::ok();
}

Status extremes(GradientBuilder &b) {
  CGC_ASSIGN_OR_RETURN(Value * result, withReducedDims(b, b.result()));
  CGC_ASSIGN_OR_RETURN(Value * grad, withReducedDims(b, b.grad()));
  Value *isExtreme = b.call(OpKind::Eq, {b.arg("self"), result});
  Value *count = b.call(OpKind::Sum, {b.to(isExtreme, result->tensor().dtype), b.arg("dim"), true});
  b.set("self", b.where(isExtreme, b.div(grad, count)));
  return Status::ok();
}

Status picked(GradientBuilder &b) {
  Value *self = b.input("self"), *grad = b.grad(), *index = b.result(1);
  const Arg &dim = b.arg("dim");
  if (grad->tensor().rank() < self->tensor().rank()) {
    grad = b.call(OpKind::Unsqueeze, {grad, dim.as<int64_t>()});
    index = b.call(OpKind::Unsqueeze, {index, dim.as<int64_t>()});
  }
  b.set("self", b.call(OpKind::Scatter, {b.zerosLike(self), dim, index, grad}));
  return Status::ok();
}

Status extremesSoFar(GradientBuilder &b) {
  Value *self = b.input("self");
  if (self->tensor().rank() == 0) {
    b.set("self", b.grad());
    return Status::ok();
  }
  b.set("self",
        b.call(OpKind::ScatterAdd, {b.zerosLike(self), b.arg("dim"), b.result(1), b.grad()}));
  return Status::ok();
}

Status gathered(GradientBuilder &b, llvm::StringRef name) {
  if (!b.needs(name))
    return Status::ok();
  Value *value = b.input(name), *index = b.input("index");
  if (index->tensor().numElements() == 0) {
    b.set(name, b.zerosLike(value));
    return Status::ok();
  }
  Value *grad = b.call(OpKind::Gather, {b.grad(), b.arg("dim"), index});
  Dims pad; // For the elements that went nowhere. The last dimension comes first.
  for (auto [all, used] :
       llvm::reverse(llvm::zip_equal(value->tensor().sizes, grad->tensor().sizes)))
    pad.append({0, all - used});
  const bool isWhole = llvm::all_of(pad, [](int64_t count) { return count == 0; });
  b.set(name, isWhole ? grad : b.call(OpKind::ConstantPadNd, {grad, Arg::ints(pad)}));
  return Status::ok();
}

Status variance(GradientBuilder &b, Value *grad) {
  CGC_ASSIGN_OR_RETURN(const int64_t count, reducedCount(b));
  CGC_ASSIGN_OR_RETURN(grad, withReducedDims(b, grad));
  const double correction = b.arg("correction").isNone() ? 1 : b.number("correction");
  Value *mean = b.call(OpKind::Mean, {b.arg("self"), b.arg("dim"), true});
  Value *centered = b.sub(b.arg("self"), mean);
  b.set("self", b.mul(b.mul(grad, 2 / (static_cast<double>(count) - correction)), centered));
  return Status::ok();
}

Status convolution(GradientBuilder &b, unsigned spatial, bool transposed) {
  Value *input = b.input("input"), *grad = b.grad();
  const bool batched = input->tensor().rank() == static_cast<int64_t>(spatial) + 2;
  if (!batched) {
    input = b.call(OpKind::Unsqueeze, {input, 0});
    grad = b.call(OpKind::Unsqueeze, {grad, 0});
  }
  const InferArgs call = b.args();
  const auto extents = [&](llvm::StringRef name) {
    Dims values = call.ints(name);
    values.resize(spatial, values.front());
    return Arg::ints(values);
  };
  Arg::List mask;
  for (llvm::StringRef name : {"input", "weight", "bias"})
    mask.emplace_back(b.needs(name));
  Node *grads = b.callNode(OpKind::CgcConvolutionBackward,
                           {grad, input, b.arg("weight"), extents("stride"), extents("padding"),
                            extents("dilation"), transposed,
                            transposed ? extents("output_padding") : Arg::ints(Dims(spatial, 0)),
                            b.arg("groups"), mask});
  unsigned next = 0;
  for (llvm::StringRef name : {"input", "weight", "bias"})
    if (b.needs(name)) {
      Value *result = grads->result(next++);
      b.set(name, b.reshape(result, b.input(name)->tensor().sizes));
    }
  return Status::ok();
}

Status padded(GradientBuilder &b, unsigned spatial, bool mirrored) {
  const Dims padding = b.args().ints("padding");
  const Dims &sizes = b.input("self")->tensor().sizes;
  Value *grad = b.grad();
  for (unsigned i = 0; i < spatial; ++i) { // From the last dimension on.
    Dims unpadded = grad->tensor().sizes;
    const size_t dim = sizes.size() - 1 - i;
    const int64_t last = sizes[dim] - 1;
    // The element of self that each element of the result is a copy of.
    Value *place = b.sub(b.call(OpKind::Arange, {0, unpadded[dim]}), padding[2 * size_t(i)]);
    if (mirrored) {
      place = b.call(OpKind::Rsub, {b.call(OpKind::Abs, {place}), last});
      place = b.call(OpKind::Rsub, {b.call(OpKind::Abs, {place}), last});
    } else {
      place = b.call(OpKind::Clamp, {place, 0, last});
    }
    unpadded[dim] = sizes[dim];
    Value *zeros = b.call(OpKind::Full, {Arg::ints(unpadded), 0.0, grad->tensor().dtype});
    Arg::List indices(dim + 1);
    indices.back() = place;
    grad = b.call(OpKind::IndexPut, {zeros, indices, grad, true});
  }
  b.set("self", grad);
  return Status::ok();
}

namespace {

/// The windows of adaptive pooling, [windows, size]: the part of each element in the average
/// of each window. Window i reaches from floor(i * size / windows) to ceil((i + 1) * size /
/// windows).
Value *adaptiveWeights(GradientBuilder &b, int64_t size, int64_t windows) {
  Value *window = b.call(OpKind::Arange, {0, windows});
  Value *begin = b.call(OpKind::FloorDivide, {b.mul(window, size), windows});
  Value *end =
      b.call(OpKind::FloorDivide, {b.add(b.mul(window, size), size + windows - 1), windows});
  begin = b.call(OpKind::Unsqueeze, {begin, 1});
  end = b.call(OpKind::Unsqueeze, {end, 1});
  Value *isInside = insideWindows(b, begin, end, size);
  const DType dtype = b.result()->tensor().dtype;
  Value *length = b.to(b.sub(end, begin), dtype);
  return b.div(b.to(isInside, dtype), length);
}

} // namespace

Status adaptivePool(GradientBuilder &b, unsigned spatial) {
  const Dims &sizes = b.input("self")->tensor().sizes, &windows = b.result()->tensor().sizes;
  const size_t first = sizes.size() - spatial;
  Value *grad = b.grad();
  bool divides = true;
  int64_t count = 1;
  for (size_t d = first; d < sizes.size(); ++d) {
    divides &= windows[d] > 0 && sizes[d] % windows[d] == 0;
    count *= divides ? sizes[d] / windows[d] : 1;
  }
  if (divides) { // Windows of equal size side by side: each element has a copy of its window's.
    Dims parts(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(first)), copies = parts;
    for (size_t d = first; d < sizes.size(); ++d) {
      parts.append({windows[d], 1});
      copies.append({windows[d], sizes[d] / windows[d]});
    }
    grad = b.expand(b.reshape(b.div(grad, static_cast<double>(count)), parts), copies);
    b.set("self", b.reshape(grad, sizes));
    return Status::ok();
  }
  // Products with the windows' weights, one dimension after the other.
  for (size_t d = first; d < sizes.size(); ++d) {
    Value *weights = adaptiveWeights(b, sizes[d], windows[d]);
    grad = timesAlong(b, grad, static_cast<int64_t>(d), weights);
  }
  b.set("self", grad);
  return Status::ok();
}

} // namespace cgc::ir::gradient
