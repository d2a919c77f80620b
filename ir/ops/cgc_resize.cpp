// cgc.resize: pictures of any sizes, resized and normalized.
#include "ir/op_builder.h"
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

/// Integers of a row of the table before those of the columns.
constexpr int64_t kHeader = 3;
/// Weights are multiples of 2^-kBits.
constexpr int64_t kBits = 22;

/// The taps of an output of an axis, of which the table has a begin and as many weights; 0 if the
/// table does not fit the size.
int64_t tapsOf(const TensorType &table, const Dims &size) {
  const int64_t integers = table.sizes[1] - kHeader, outputs = size[0] + size[1];
  return integers % outputs == 0 ? integers / outputs - 1 : 0;
}

Status inferCgcResize(const InferArgs &args, rules::Results &results) {
  const TensorType &pixels = args.tensor("pixels"), &table = args.tensor("table"),
                   &values = args.tensor("values");
  const Dims size = args.ints("size");
  if (pixels.dtype != DType::U8 || pixels.rank() != 2 || pixels.sizes[1] < 3)
    return rules::mismatch("pixels", "[B, P] of dtype u8 with at least one pixel", pixels);
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > 8192 || size[1] > 8192)
    return rules::refuse("expected 'size' to be two sizes of 1 to 8192, got " +
                         rules::toString(size));
  if (table.dtype != DType::I32 || table.rank() != 2 || table.sizes[0] != pixels.sizes[0] ||
      tapsOf(table, size) < 1)
    return rules::mismatch("table",
                           "[" + llvm::Twine(pixels.sizes[0]) + ", 3 + " +
                               llvm::Twine(size[0] + size[1]) +
                               " (1 + taps)] of dtype i32 with at least one tap",
                           table);
  if (!isFloating(values.dtype) || llvm::ArrayRef(values.sizes) != llvm::ArrayRef<int64_t>{3, 256})
    return rules::mismatch("values", "[3, 256] of a floating dtype", values);
  return rules::addDense(results, values.dtype, {pixels.sizes[0], 3, size[0], size[1]});
}

/// The sum over `dim`, rounded as by the kernel.
Value *weighted(OpBuilder &b, Value *products, int64_t dim) {
  Value *const sum = b.add(b.sum(products, {dim}, false), int64_t(1) << (kBits - 1));
  return b.call(OpKind::Clamp, {b.call(OpKind::BitwiseRightShift, {sum, kBits}), 0, 255});
}

Result<Values> defineCgcResize(OpBuilder &b) {
  const Dims size = b.args().ints("size");
  const TensorType &pixels = b.input("pixels")->tensor();
  const int64_t taps = tapsOf(b.input("table")->tensor(), size), batch = pixels.sizes[0],
                count = pixels.sizes[1] / 3, height = size[0], width = size[1];
  Value *const table = b.to(b.input("table"), DType::I64);
  int64_t at = 0;
  const auto take = [&](int64_t length, llvm::ArrayRef<int64_t> sizes) {
    Value *const part = b.call(OpKind::Slice, {table, 1, at, at + length});
    at += length;
    return b.reshape(part, sizes);
  };
  Value *const pitch = take(1, {batch, 1, 1, 1, 1}), *const rowsFirst = take(1, {batch, 1, 1, 1}),
               *const fill = take(1, {batch, 1, 1, 1});
  Value *const left = take(width, {batch, 1, 1, 1, width});
  Value *const across = take(taps * width, {batch, 1, 1, taps, width, 1});
  Value *const top = take(height, {batch, 1, height, 1, 1});
  Value *const down = take(taps * height, {batch, taps, height, 1, 1, 1});

  // The pixels of all taps: [batch, taps, height, taps, width, 3].
  Value *const tap = b.call(OpKind::Arange, {0, taps, 1, DType::I64});
  Value *const row = b.mul(b.add(top, b.reshape(tap, {1, taps, 1, 1, 1})), pitch);
  Value *const column = b.add(left, b.reshape(tap, {1, 1, 1, taps, 1}));
  Value *index = b.call(OpKind::Clamp, {b.add(row, column), 0, count - 1});
  const int64_t picked = taps * height * taps * width;
  index = b.expand(b.reshape(index, {batch, picked, 1}), {batch, picked, 3});
  Value *from = b.call(OpKind::Slice, {b.input("pixels"), 1, 0, count * 3});
  from = b.call(OpKind::Gather, {b.reshape(from, {batch, count, 3}), 1, index});
  from = b.reshape(b.to(from, DType::I64), {batch, taps, height, taps, width, 3});

  Value *const columns = weighted(b, b.mul(from, across), 3);
  Value *const columnsThenRows =
      weighted(b, b.mul(columns, b.reshape(down, {batch, taps, height, 1, 1})), 1);
  Value *const rows = weighted(b, b.mul(from, down), 1);
  Value *const rowsThenColumns =
      weighted(b, b.mul(rows, b.reshape(across, {batch, 1, taps, width, 1})), 2);
  Value *resized =
      b.call(OpKind::Where, {b.call(OpKind::Ne, {rowsFirst, 0}), rowsThenColumns, columnsThenRows});
  Value *const isOutside =
      b.call(OpKind::Lt, {b.call(OpKind::Minimum, {b.reshape(top, {batch, height, 1, 1}),
                                                   b.reshape(left, {batch, 1, width, 1})}),
                          0});
  resized = b.call(OpKind::Where, {isOutside, b.call(OpKind::Clamp, {fill, 0, 255}), resized});

  index = b.reshape(b.permute(resized, {3, 0, 1, 2}), {3, batch * height * width});
  Value *const y =
      b.reshape(b.call(OpKind::Gather, {b.arg("values"), 1, index}), {3, batch, height, width});
  return Values{b.call(OpKind::Contiguous, {b.permute(y, {1, 0, 2, 3})})};
}

} // namespace

const OpDef defs::CgcResize = {
    .schema = "(Tensor pixels, Tensor table, Tensor values, int[] size) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferCgcResize,
    .batch =
        [](const BatchCall &call) {
          return batch::Join(call)
              .add(call.args["pixels"], batch::leading(call.args.tensor("pixels"), 1))
              .add(call.args["table"], batch::leading(call.args.tensor("table"), 1))
              .state();
        },
    .gradient = gradient::none,
    .decompose = defineCgcResize,
    .doc =
        "Pictures resized as by Pillow, in its integer arithmetic, and normalized: [B, 3, H, W] "
        "for size [H, W]. A row of pixels u8[B, P] has the rows of a picture one after the "
        "other, RGB. A row of table i32[B, T] has the number of pixels of a picture's row; 1 if "
        "rows are resized before columns, else 0; and a fill. Then, for the W columns of the "
        "result, their first taps [W] and the weights [taps, W], and the same for its H rows. A "
        "pass is the sum of weights and pixels in units of 2^-22, rounded half up and clamped to "
        "0..255. An output with a first tap below 0 is the fill. Pixels beyond the last are the "
        "last. The result is values[c, pixel], of values [3, 256].",
};

} // namespace cgc::ir
