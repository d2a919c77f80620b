// cgc.library_op: an op implemented by a user's library.
#include "ir/graph.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

/// The result has the type stated by `type`, or else the type of input number `like`.
Status inferLibraryOp(const InferArgs &args, rules::Results &results) {
  if (!args.isNone("type")) {
    auto type = parseTensorType(args.str("type"));
    if (!type || !type->isContiguous())
      return rules::refuse("expected 'type' to be a dense tensor type as in \"f32[2,3]\", got \"" +
                           args.str("type") + "\"");
    return rules::addDense(results, type->dtype, type->sizes);
  }
  auto inputs = args.tensors("inputs");
  const int64_t like = args.integer("like");
  if (like < 0 || like >= static_cast<int64_t>(inputs.size()))
    return rules::mismatch(
        "like", "the position of one of " + llvm::Twine(inputs.size()) + " inputs", like);
  return rules::addDense(results, inputs[like]->dtype, inputs[like]->sizes);
}

} // namespace

const OpDef defs::CgcLibraryOp = {
    .schema = "(Tensor[] inputs, str op, int like=0, str? type=none, int[] ints=[], "
              "float[] floats=[]) -> Tensor",
    .traits = kPure,
    .infer = inferLibraryOp,
    .doc = "The op called op of an op library (runtime/plan/op_library_abi.h), which gets the "
           "inputs, made dense, and the numbers. The result is dense, of the type that type "
           "states, or else of the dtype and sizes of input number like.",
};

} // namespace cgc::ir
