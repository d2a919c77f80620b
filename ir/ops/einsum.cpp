// aten.einsum: sum of products by index labels.
#include "ir/ops/batch_rules.h"
#include "ir/ops/einsum_rules.h"
#include "ir/ops/rules.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const auto tensors = args.tensors("tensors");
  Dims ranks;
  for (const TensorType *tensor : tensors)
    ranks.push_back(tensor->rank());
  CGC_ASSIGN_OR_RETURN(rules::Einsum einsum, rules::parseEinsum(args.str("equation"), ranks));
  std::map<char, int64_t> sizes;
  for (const auto &[term, tensor] : llvm::zip_equal(einsum.terms, tensors)) {
    if (tensor->dtype != tensors.front()->dtype)
      return rules::mismatch("tensors", "of one dtype", *tensor);
    for (const auto &[label, size] : llvm::zip_equal(term, tensor->sizes))
      if (int64_t first = sizes.try_emplace(label, size).first->second; first != size)
        return rules::mismatch("tensors",
                               "of size " + llvm::Twine(first) + " in dimension '" +
                                   llvm::Twine(label) + "'",
                               *tensor);
  }
  Dims result;
  for (char label : einsum.result) {
    if (!sizes.count(label))
      return rules::refuse("label '" + llvm::Twine(label) + "' of the result is in no operand");
    result.push_back(sizes[label]);
  }
  return rules::addDense(results, tensors.front()->dtype, result);
}

} // namespace

const OpDef defs::Einsum = {
    .schema = "(str equation, Tensor[] tensors) -> Tensor",
    .traits = kPure | kGemm,
    .infer = infer,
    .aten = "copy aten::einsum(..., none)",
    .batch =
        [](const BatchCall &call) {
          Dims ranks;
          for (const Arg &tensor : call.tensors())
            ranks.push_back(tensor.value()->tensor().rank());
          const auto einsum = rules::parseEinsum(call.args.str("equation"), ranks);
          batch::Join join(call);
          for (const auto &[term, tensor] : llvm::zip_equal(einsum->terms, call.tensors())) {
            batch::DimMap map;
            for (char label : term) {
              const size_t dim = einsum->result.find(label);
              map.push_back(dim == std::string::npos ? batch::kCombined : int64_t(dim));
            }
            join.add(tensor, map);
          }
          return join.state();
        },
    .doc = "The sum of the products of the elements of all tensors over the labels that the result "
           "lacks: "
           "ij,jk->ik is a matrix product. Letters, each once in a term, and an ellipsis for any "
           "number "
           "of dimensions; dimensions of size 1 do not broadcast. canonicalize writes two operands "
           "as a matmul.",
};

} // namespace cgc::ir
