// OpDef: what cgc knows of one op: signature, traits, its rule for result types, its documentation.
//
// Each row of ops.def has one file ir/ops/<op>.cpp that defines `defs::<Enum>`; a missing file is a
// link error that names the op. docs/adding-an-op.md lists the other places.
#pragma once

#include "ir/op_kind.h"
#include "ir/schema.h"
#include "ir/type.h"

namespace cgc::ir {

/// Traits are bits.
enum Trait : unsigned {
  kNoTraits = 0,
  kPure = 1u << 0, ///< No side effect and the same result for the same arguments: may be folded,
                   ///< merged, dropped.
  kView = 1u << 1, ///< The result may alias argument 0's memory (Inferred::viewOffset says whether
                   ///< it does).
  kHost = 1u << 2, ///< Works on ints, lists and sizes: evaluated by specialize, never lowered.
  kPointwise = 1u << 3, ///< Each element of the result depends on those at its place alone, however
                        ///< the arguments lie in memory; they broadcast.
};

/// One result of an op.
struct Inferred {
  TensorType type;
  /// For a view: where it begins in argument 0's storage, in elements from argument 0's first
  /// element. Nothing if the result has memory of its own.
  std::optional<int64_t> viewOffset;
};

/// The arguments of one call, read by schema name. The kinds have been checked: accessors assert.
/// All tensors have types and all other arguments are constants.
class InferArgs {
public:
  InferArgs(const Schema &schema, llvm::ArrayRef<Arg> args) : schema_(schema), args_(args) {}

  const Arg &operator[](llvm::StringRef name) const;
  bool isNone(llvm::StringRef name) const { return (*this)[name].isNone(); }
  bool isTensor(llvm::StringRef name) const { return (*this)[name].isValue(); }
  const TensorType &tensor(llvm::StringRef name) const;
  /// The elements of a tensor list; those that are none are skipped.
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

/// Fills `results`, one for each result, or says why the arguments do not fit.
using InferFn = Status (*)(const InferArgs &args, llvm::SmallVectorImpl<Inferred> &results);

/// Evaluates the op on host values: constants, lists, and typed tensor values for ops such as size.
/// One Arg, or for an op with several results a list of them.
using EvaluateFn = Result<Arg> (*)(llvm::ArrayRef<Arg> args);

struct OpDef {
  const char *schema;
  unsigned traits;
  InferFn infer;       ///< Null for host ops and for aten.fallback.
  EvaluateFn evaluate; ///< Host ops, and arithmetic that also works on sizes; else null.
  const char *doc;     ///< One paragraph: what it computes, with shapes.
};

namespace defs {
#define CGC_OP(Enum, text) extern const OpDef Enum;
#include "ir/ops.def"
} // namespace defs

const OpDef &opDef(OpKind op);
/// Parsed once, on first use.
const Schema &opSchema(OpKind op);
inline bool hasTrait(OpKind op, Trait trait) {
  return opDef(op).traits & trait;
}

/// What the op yields, if that is certain before types and devices are known: of a host op, what
/// follows from constants, the elements of lists and the types of parameters; of arithmetic, what
/// follows from constants alone.
std::optional<Arg> evaluateEarly(OpKind op, llvm::ArrayRef<Arg> args);

/// Checks `args` against the schema and runs the op's rule. `device` becomes every result's device.
/// Errors name the argument; the caller adds op and location. Unsupported if the op has no rule.
Result<llvm::SmallVector<Inferred, 1>> inferResults(OpKind op, llvm::ArrayRef<Arg> args,
                                                    DeviceKind device);

} // namespace cgc::ir
