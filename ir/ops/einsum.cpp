// aten.einsum: sum of products by index labels.
#include "ir/ops/batch_rules.h"
#include "ir/ops/einsum_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

namespace cgc::ir {
namespace {

Status inferEinsum(const InferArgs &args, rules::Results &results) {
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
    if (!sizes.contains(label))
      return rules::refuse("label '" + llvm::Twine(label) + "' of the result is in no operand");
    result.push_back(sizes[label]);
  }
  return rules::addDense(results, tensors.front()->dtype, result);
}

/// Writes labels with a letter in place of each digit: one that no operand uses.
class Letters {
public:
  explicit Letters(const rules::Einsum &einsum) {
    for (const std::string &term : einsum.terms)
      used_ += term;
  }

  /// `labels`, with commas between terms; nothing if there are more labels than letters.
  std::optional<std::string> of(llvm::StringRef labels) {
    std::string text;
    for (const char label : labels) {
      if (label == ',') {
        text += label;
        continue;
      }
      char &letter = letters_[label];
      for (const char free :
           llvm::StringRef("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
        if (letter)
          break;
        if (llvm::isAlpha(label))
          letter = label;
        else if (used_.find(free) == std::string::npos)
          used_ += letter = free;
      }
      if (!letter)
        return std::nullopt;
      text += letter;
    }
    return text;
  }

private:
  std::string used_;
  std::map<char, char> letters_;
};

/// The gradient of an operand is the product of the result's gradient and the other operands,
/// summed over the labels that the operand lacks.
Status backwardEinsum(GradientBuilder &b) {
  const std::vector<Value *> operands = b.inputs("tensors");
  Dims ranks;
  for (const Value *operand : operands)
    ranks.push_back(operand->tensor().rank());
  CGC_ASSIGN_OR_RETURN(const rules::Einsum einsum,
                       rules::parseEinsum(b.arg("equation").as<std::string>(), ranks));
  Letters letters(einsum);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!b.needs(operands[i]))
      continue;
    std::string known = einsum.result; // The labels of the other operands and the result.
    Arg::List factors = {b.grad()};
    std::vector<std::string> terms = {einsum.result};
    for (size_t other = 0; other < operands.size(); ++other)
      if (other != i) {
        factors.emplace_back(operands[other]);
        terms.push_back(einsum.terms[other]);
        known += einsum.terms[other];
      }
    std::string target; // The operand's labels but those that only it has.
    Dims kept;          // Its sizes, with 1 for those.
    const TensorType &type = operands[i]->tensor();
    for (const auto &[label, size] : llvm::zip_equal(einsum.terms[i], type.sizes)) {
      const bool isKnown = known.find(label) != std::string::npos;
      kept.push_back(isKnown ? size : 1);
      if (isKnown)
        target += label;
    }
    const auto left = letters.of(llvm::join(terms, ",")), right = letters.of(target);
    if (!left || !right)
      return rules::refuse("its gradient would need more labels than there are letters");
    Value *grad = b.call(OpKind::Einsum, {*left + "->" + *right, factors});
    b.set(operands[i], b.expand(b.reshape(grad, kept), type.sizes));
  }
  return Status::ok();
}

/// The positions in `labels` of the letters of `order`.
Dims positions(const std::string &labels, const std::string &order) {
  Dims dims;
  for (char label : order)
    dims.push_back(static_cast<int64_t>(labels.find(label)));
  return dims;
}

/// Permutations and a matmul of two operands.
Result<Values> defineEinsum(OpBuilder &builder) {
  const std::vector<Value *> operands = builder.inputs("tensors");
  if (operands.size() != 2)
    return rules::refuse("it has other than two operands");
  Dims ranks;
  for (const Value *operand : operands)
    ranks.push_back(operand->tensor().rank());
  CGC_ASSIGN_OR_RETURN(const rules::Einsum einsum,
                       rules::parseEinsum(builder.arg("equation").as<std::string>(), ranks));
  const std::string &a = einsum.terms[0], &b = einsum.terms[1], &result = einsum.result;
  const auto contains = [](const std::string &labels, char label) {
    return labels.find(label) != std::string::npos;
  };
  std::string batch, rows, columns, summed;
  for (char label : a) {
    const bool inB = contains(b, label), kept = contains(result, label);
    if (!inB && !kept)
      return rules::refuse("it sums over a dimension of one operand alone");
    (inB ? kept ? batch : summed : rows) += label;
  }
  for (char label : b)
    if (!contains(a, label)) {
      if (!contains(result, label))
        return rules::refuse("it sums over a dimension of one operand alone");
      columns += label;
    }
  // An operand as [batch, first, second], where each group of labels is one dimension.
  const auto matrix = [&](size_t i, const std::string &first, const std::string &second) {
    const Dims order = positions(einsum.terms[i], batch + first + second);
    const Dims sizes = operands[i]->tensor().sizes;
    Dims merged;
    size_t next = 0;
    for (const std::string &group : {batch, first, second}) {
      merged.push_back(1);
      for (size_t k = 0; k < group.size(); ++k)
        merged.back() *= sizes[order[next++]];
    }
    Value *permuted = builder.permute(operands[i], order);
    return builder.call(OpKind::Reshape, {permuted, Arg::ints(merged)});
  };
  Value *left = matrix(0, rows, summed);
  Value *product = builder.matmul(left, matrix(1, summed, columns));
  const std::string labels = batch + rows + columns;
  const Dims back = positions(labels, result);
  Dims sizes(labels.size());
  for (auto [i, dim] : llvm::enumerate(back))
    sizes[dim] = builder.result()->tensor().sizes[i];
  product = builder.call(OpKind::View, {product, Arg::ints(sizes)});
  return Values{builder.permute(product, back)};
}

} // namespace

const OpDef defs::Einsum = {
    .schema = "(str equation, Tensor[] tensors) -> Tensor",
    .traits = kPure | kGemm,
    .infer = inferEinsum,
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
    .gradient = backwardEinsum,
    .decompose = defineEinsum,
    .doc = "The sum of the products of the elements of all tensors over the labels that the result "
           "lacks: "
           "ij,jk->ik is a matrix product. Letters, each once in a term, and an ellipsis for any "
           "number "
           "of dimensions; dimensions of size 1 do not broadcast. canonicalize writes two operands "
           "as a matmul.",
};

} // namespace cgc::ir
