// batch_rules: the batch rules of ops (OpDef::batch). A rule says for each dimension of an operand
// whether the op treats its indices independently of each other and alike.
#pragma once

#include "ir/batch.h"
#include "ir/graph.h"
#include "ir/ops/rules.h"

namespace cgc::ir::batch {

/// For each dimension of an operand: the dimension of the result that it becomes, if the elements
/// of the result with index i there read the operand's elements with index i only, or with index 0
/// if the operand has one there. kCombined otherwise: each element of the result may read all
/// indices.
using DimMap = llvm::SmallVector<int64_t, 6>;
inline constexpr int64_t kCombined = -1;

/// Returns the map of an operand that broadcasts: its last dimension is the result's last.
DimMap broadcast(const TensorType &operand, const TensorType &result);
/// Returns the map of an operand that has the dimensions of the result, of which `dim` is combined,
/// and which the result lacks if `dropped`.
DimMap without(const TensorType &operand, int64_t dim, bool dropped = false);
/// Returns the map of an operand whose first `kept` dimensions are those of the result.
DimMap leading(const TensorType &operand, int64_t kept);
/// Returns the map of an operand whose marked dimensions are combined, and dropped unless `kept`.
DimMap reduced(llvm::ArrayRef<bool> marked, bool kept);
/// Returns the dimension that the int argument `name` counts, from the front of `type`.
int64_t dimOf(const BatchCall &call, const TensorType &type, llvm::StringRef name = "dim");
/// Returns the state of the first argument after its dimensions were reordered: dimension i of the
/// result is order[i].
BatchState permuted(const BatchCall &call, llvm::ArrayRef<int64_t> order);

/// Finds the state of a result from operands and their maps. The maps cover everything that the
/// element of the result with index i in a dimension reads.
class Join {
public:
  explicit Join(const BatchCall &call) : call_(call) {}
  /// Adds an operand; one that is no tensor counts for nothing.
  Join &add(const Arg &operand, DimMap map);
  /// Says that an operand is accounted for by the map of another.
  Join &ignore(const Arg &operand);
  /// Rows, if all operands with rows have them in one dimension of the result, and the others have
  /// size 1 there, or do not have it. Shared, if none has rows. Otherwise Mixed, also if a tensor
  /// that was not added is not Shared.
  BatchState state() const;

private:
  struct Operand {
    const Value *value;
    BatchState state;
    DimMap map;
  };
  const BatchCall &call_;
  llvm::SmallVector<Operand, 4> operands_;
};

// Rules of several ops. Tensors that they do not name must be Shared.

/// All tensor arguments broadcast.
BatchState pointwise(const BatchCall &call);
/// The first argument, elementwise; row numbers stay such if they stay integers.
BatchState copy(const BatchCall &call);
/// The elements of the first argument, in row-major order, in other sizes.
BatchState view(const BatchCall &call);
/// The first argument [N, ...], for each n on its own.
BatchState firstDim(const BatchCall &call);
/// All dimensions of the first argument but those that the arguments 'dim', 'dims' or 'dimension'
/// name. The result has the same dimensions, or others behind them.
BatchState otherDims(const BatchCall &call);
/// Like otherDims; these are dropped unless there is a 'keepdim' that holds. No 'dim' or an empty
/// one stands for all.
BatchState reduction(const BatchCall &call);
/// 'input' [N, C, ...], or [C, ...], and 'weight' with as many dimensions as the former.
BatchState convolution(const BatchCall &call);
/// 'self' [..., M, K] times 'other' [..., K, N]; a vector has no M or N.
BatchState matmul(const BatchCall &call);
/// 'input' [..., K].
BatchState linear(const BatchCall &call);
/// Parts of dimension 'dim' of 'self', which is dropped or not.
BatchState parts(const BatchCall &call);
/// 'self' with elements of 'dim' replaced at 'index' by those of 'src'.
BatchState scatter(const BatchCall &call);
/// One value everywhere, in sizes of which one may be the batch, or a multiple.
BatchState constant(const BatchCall &call);

/// All dimensions of the first argument but the last `kCount`, which may become others.
template <int kCount> BatchState allButLast(const BatchCall &call) {
  const TensorType &type = call.first().value()->tensor();
  return Join(call).add(call.first(), leading(type, type.rank() - kCount)).state();
}

} // namespace cgc::ir::batch
