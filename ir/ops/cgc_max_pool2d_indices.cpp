// cgc.max_pool2d_indices: maximum pooling that keeps the places of the maxima.
#include "ir/op_builder.h"
#include "ir/ops/window_rules.h"

#include <limits>

namespace cgc::ir {
namespace {

Status inferCgcMaxPool2dIndices(const InferArgs &args, rules::Results &results) {
  CGC_TRY(rules::maxPool<2>(args, results));
  return rules::addDense(results, DType::I64, results.back().type.sizes);
}

/// The largest of the elements of each window, of which those in the padding are -inf.
Result<Values> defineCgcMaxPool2dIndices(OpBuilder &b) {
  const InferArgs args = b.args();
  CGC_ASSIGN_OR_RETURN(const rules::PoolWindows windows, rules::poolWindows(args, 2));
  CGC_ASSIGN_OR_RETURN(const Dims dilation, rules::extents(args, "dilation", 2, 1));
  Value *self = b.input("self");
  if (!isFloating(self->tensor().dtype))
    return rules::refuse("integers have no -inf for the padding");
  const Dims images = self->tensor().sizes, all = b.result()->tensor().sizes;
  const Dims sizes(images.end() - 2, images.end()), counts(all.end() - 2, all.end());
  Dims extents, pad;
  for (unsigned i : {0, 1})
    extents.push_back(dilation[i] * (windows.kernel[i] - 1) + 1);
  for (unsigned i : {1, 0}) { // The last dimension comes first.
    const int64_t end = (counts[i] - 1) * windows.stride[i] + extents[i];
    pad.append({windows.padding[i], end - windows.padding[i] - sizes[i]});
  }
  // The elements of each window of [..., H, W] side by side: [..., OH, OW, KH * KW].
  const auto elements = [&](Value *image, Arg padding) {
    const int64_t rank = image->tensor().rank();
    image = b.call(OpKind::ConstantPadNd, {image, Arg::ints(pad), std::move(padding)});
    for (unsigned i : {0, 1}) {
      image = b.call(OpKind::Unfold, {image, rank - 2 + i, extents[i], windows.stride[i]});
      image = b.call(OpKind::Slice, {image, -1, 0, extents[i], dilation[i]});
    }
    return b.call(OpKind::Flatten, {image, -2});
  };
  Node *maxima =
      b.callNode(OpKind::Max, {elements(self, -std::numeric_limits<double>::infinity()), -1});
  Value *pixels = b.reshape(b.call(OpKind::Arange, {0, sizes[0] * sizes[1]}), sizes);
  Value *places = elements(pixels, 0);
  Dims ofAll = all;
  ofAll.push_back(places->tensor().sizes.back());
  places = b.expand(places, ofAll);
  Value *chosen = b.call(OpKind::Unsqueeze, {maxima->result(1), -1});
  return Values{maxima->result(0), b.reshape(b.call(OpKind::Gather, {places, -1, chosen}), all)};
}

} // namespace

const OpDef defs::CgcMaxPool2dIndices = {
    .schema = "(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=[0,0], int[] "
              "dilation=[1,1], bool ceil_mode=false) -> (Tensor, Tensor)",
    .traits = kPure | kReduction,
    .infer = inferCgcMaxPool2dIndices,
    .aten = "aten::max_pool2d_with_indices.out",
    .decompose = defineCgcMaxPool2dIndices,
    .doc = "max_pool2d of self, then the index in its image [H, W] of each maximum, in i64.",
};

} // namespace cgc::ir
