// OpDef: the definition of one op: schema, traits, type-inference rule, ATen call, documentation.
//
// Each row of ops.def has one file ir/ops/<op>.cpp that defines `defs::<Enum>`; a missing file is a
// link error that names the op. docs/adding-an-op.md describes the fields.
#pragma once

#include "ir/op_kind.h"
#include "ir/schema.h"
#include "ir/type.h"

namespace cgc::ir {

class BatchCall;
class GradientBuilder;
class Node;
class OpBuilder;
class Value;
struct BatchState;

/// Bit flags.
enum Trait : unsigned {
  kNoTraits = 0,
  kPure = 1u << 0, ///< No side effect, and equal results for equal arguments: calls may be folded,
                   ///< merged, dropped.
  kView = 1u << 1, ///< The result may alias argument 0's memory; Inferred::viewOffset tells whether
                   ///< it does.
  kHost = 1u << 2, ///< Works on ints, lists and sizes: evaluated by specialize, never lowered.
  kPointwise = 1u << 3,  ///< Each result element depends only on the argument elements at its
                         ///< position, whatever the arguments' strides; arguments broadcast.
  kAnyStrides = 1u << 4, ///< Reads arguments of any strides as fast as dense ones. Pointwise ops do
                         ///< so without this trait.
  // The work of an op that is not pointwise: at most one. Drawings color ops by it.
  kGemm = 1u << 5,      ///< Matrix products and convolutions.
  kAttention = 1u << 6, ///< Attention.
  kReduction = 1u << 7, ///< Normalizations, softmax, sums, pooling.
  kMove = 1u << 8,      ///< Copies, lookups, concatenation: memory traffic only.
  kOpaque = 1u << 9,    ///< Not pure, for nobody knows its body: calls without users are dropped,
                        ///< but none is folded or merged.
};

/// The inferred type of one result of an op.
struct Inferred {
  TensorType type;
  /// For a view: its offset from argument 0's first element, in elements. nullopt if the result has
  /// memory of its own.
  std::optional<int64_t> viewOffset;
};

/// The arguments of one call, read by schema name. Tensors are typed and all other arguments are
/// constants. The kinds have been checked, so accessors assert.
class InferArgs {
public:
  InferArgs(const Schema &schema, llvm::ArrayRef<Arg> args) : schema_(schema), args_(args) {}

  const Arg &operator[](llvm::StringRef name) const;
  bool isNone(llvm::StringRef name) const { return (*this)[name].isNone(); }
  bool isTensor(llvm::StringRef name) const { return (*this)[name].isValue(); }
  const TensorType &tensor(llvm::StringRef name) const;
  /// Returns the elements of a tensor list, without those that are none.
  llvm::SmallVector<const TensorType *, 4> tensors(llvm::StringRef name) const;
  int64_t integer(llvm::StringRef name) const;
  double number(llvm::StringRef name) const;
  bool boolean(llvm::StringRef name) const;
  llvm::StringRef str(llvm::StringRef name) const;
  DType dtype(llvm::StringRef name) const;
  Dims ints(llvm::StringRef name) const;

private:
  const Schema &schema_;
  llvm::ArrayRef<Arg> args_;
};

/// Appends one entry to `results` for each result of the op, or returns why the arguments do not
/// fit.
using InferFn = Status (*)(const InferArgs &args, llvm::SmallVectorImpl<Inferred> &results);

/// Evaluates the op on host values: constants, lists, and typed tensor values for ops such as size.
/// Returns one Arg, or a list of Args for an op with several results.
using EvaluateFn = Result<Arg> (*)(llvm::ArrayRef<Arg> args);

/// Returns true if the op reads its tensor argument `name` with the strides of `type` as fast as a
/// dense one. `args` are the arguments of the call.
using ReadsStridesFn = bool (*)(const InferArgs &args, llvm::StringRef name,
                                const TensorType &type);

/// Returns the names of the tensor arguments [..., C] whose row i alone, with the other arguments,
/// determines row i of every result. An argument with fewer dimensions holds the last ones. Empty
/// if rows are not independent.
using RowArgs = llvm::SmallVector<llvm::StringRef, 2>;
using RowArgsFn = RowArgs (*)(const InferArgs &args);

/// Returns how the results depend on the rows of a batch, which the arguments depend on as the call
/// says (ir/batch.h): one state for all results. It must hold for every batch of two or more rows.
using BatchFn = BatchState (*)(const BatchCall &call);

/// Adds the backward pass of one call to its graph: sets the gradients of the tensor arguments that
/// need one from those of the results (ir/gradient.h). Unsupported, with the reason, for a form of
/// the op that has no gradient.
using GradientFn = Status (*)(GradientBuilder &builder);

/// The meaning of one call, in simpler ops: adds their calls and returns its results, with the
/// dtypes and sizes of the call's (ir/decompose.h). Unsupported, with the reason, for a form that
/// no simpler ops compute.
using Values = llvm::SmallVector<Value *, 2>;
using DecomposeFn = Result<Values> (*)(OpBuilder &builder);

/// Constant-initialized, so that code that runs before main() can read it.
struct OpDef {
  const char *schema;
  unsigned traits;
  InferFn infer = nullptr;       ///< Null for host ops and for aten.fallback.
  EvaluateFn evaluate = nullptr; ///< For host ops, and for arithmetic that also works on sizes.
  /// The call of LibTorch that computes the op; null: the overload `out` of the op's own name, with
  /// the op's arguments, into the results. `copy aten::roll`: a functional overload, whose results
  /// are copied. `aten::clamp_min.out(..., 0)` lists the arguments: names of the op's, `...` for
  /// all of these, and constants. Not used for host ops, views and the ops of
  /// backend/lowerings.def.
  const char *aten = nullptr;
  ReadsStridesFn readsStrides = nullptr; ///< Null: only as the traits say.
  RowArgsFn rowArgs = nullptr;           ///< Null: none. Pointwise ops need none.
  BatchFn batch = nullptr; ///< Null: mixes rows. Pointwise ops need none. batch_rules.h has most.
  GradientFn gradient = nullptr; ///< Null: the op has no gradient, and `differentiate` refuses it.
  DecomposeFn decompose = nullptr; ///< Null: the op is not composed of others.
  const char *doc;                 ///< One paragraph: what the op computes, with shapes.
};

namespace defs {
#define CGC_OP(Enum, text) extern const OpDef Enum;
#include "ir/ops.def"
} // namespace defs

const OpDef &opDef(OpKind op);
/// Returns the parsed schema. Parses it on first use.
const Schema &opSchema(OpKind op);
inline bool hasTrait(OpKind op, Trait trait) {
  return opDef(op).traits & trait;
}

/// Returns true if the call reads its argument `name` with the strides of `type` as fast as a dense
/// argument.
bool readsStrides(const Node &node, llvm::StringRef name, const TensorType &type);
/// Returns the names of OpDef::rowArgs for a call.
RowArgs rowArgs(const Node &node);

/// Returns the argument, the first, whose memory the results of a view may share (kView) and which
/// an in-place op overwrites. `node` must have arguments.
const Arg &aliasedArg(const Node &node);

/// Evaluates the op where its result does not depend on types and devices that are still unknown. A
/// host op may be evaluated from constants, list elements and parameter types; arithmetic only from
/// constants. Returns nullopt if the result is not known yet.
std::optional<Arg> evaluateEarly(OpKind op, llvm::ArrayRef<Arg> args);

/// Checks `args` against the schema and runs the op's rule. Every result gets `device`. Errors name
/// the argument; the caller adds the op and its location. Unsupported if the op has no rule.
Result<llvm::SmallVector<Inferred, 1>> inferResults(OpKind op, llvm::ArrayRef<Arg> args,
                                                    DeviceKind device);

} // namespace cgc::ir
