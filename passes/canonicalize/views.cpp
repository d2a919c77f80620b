// View patterns: a chain of views is an address mapping (sizes, strides, offset) of its base's
// memory. It is replaced by the shortest chain in canonical form with the same mapping.
#include "passes/canonicalize/patterns.h"

#include "runtime/base/check.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace cgc::passes {
namespace {

using ir::Dims;
using ir::OpKind;

/// One digit of a position in the base's memory, written as a mixed-radix number with the slowest
/// digit first. A digit is either a dimension of the view or fixed.
struct Digit {
  int64_t radix = 1;
  int64_t dim = -1;  ///< Dimension of the view; -1: fixed at `start`.
  int64_t start = 0; ///< The view covers [start, start + size) of the digit.
  int64_t size = 1;
};

/// One call of the chain, without its first argument.
struct Step {
  OpKind op;
  std::vector<ir::Arg> args;
  bool operator==(const Step &) const = default;
};

/// Writes the addresses of `view` as digits over `total` dense elements. Returns nullopt if they
/// have no such form (overlapping windows, steps). `boundaries` are the strides of the base's own
/// dimensions.
std::optional<std::vector<Digit>> digitsOf(const ir::TensorType &view, int64_t offset,
                                           int64_t total, llvm::ArrayRef<int64_t> boundaries) {
  // Dimensions with more than one address, slowest first.
  llvm::SmallVector<int64_t, 6> moving;
  for (int64_t dim = 0; dim < view.rank(); ++dim)
    if (view.sizes[dim] != 1 && view.strides[dim] != 0)
      moving.push_back(dim);
  llvm::stable_sort(moving,
                    [&](int64_t a, int64_t b) { return view.strides[a] > view.strides[b]; });

  std::vector<Digit> digits;
  int64_t span = total; // Elements addressed by the digits not yet written.
  for (int64_t dim : moving) {
    int64_t stride = view.strides[dim], size = view.sizes[dim];
    if (span % stride != 0)
      return std::nullopt;
    int64_t radix = span / stride;
    int64_t start = offset / stride % radix;
    if (start + size > radix)
      return std::nullopt;
    bool ownDim = llvm::is_contained(boundaries, span) && llvm::is_contained(boundaries, stride) &&
                  llvm::none_of(boundaries, [&](int64_t b) { return b < span && b > stride; });
    if (size != radix && !ownDim && radix % size == 0 && start % size == 0) {
      digits.push_back({.radix = radix / size, .start = start / size});
      digits.push_back({.radix = size, .dim = dim, .size = size});
    } else {
      digits.push_back({.radix = radix, .dim = dim, .start = start, .size = size});
    }
    span = stride;
  }
  if (span > 1)
    digits.push_back({.radix = span, .start = offset % span});
  // A fixed digit may span several dimensions of the base, which then need not be merged first.
  std::vector<Digit> split;
  int64_t below = total;
  for (const Digit &digit : digits) {
    int64_t stride = below / digit.radix;
    if (digit.dim < 0) {
      int64_t upper = below, rest = digit.start;
      for (int64_t boundary : boundaries)
        if (boundary < upper && boundary > stride && upper % boundary == 0 &&
            boundary % stride == 0) {
          split.push_back({.radix = upper / boundary, .start = rest / (boundary / stride)});
          rest %= boundary / stride;
          upper = boundary;
        }
      split.push_back({.radix = upper / stride, .start = rest});
    } else {
      split.push_back(digit);
    }
    below = stride;
  }
  return split;
}

/// Inserts a digit of radix 1 for each dimension of the view with a single address: in front for
/// leading dimensions, so that a batch of one looks like any batch, otherwise before the digit of
/// the next dimension.
void insertUnitDigits(std::vector<Digit> &digits, const ir::TensorType &view) {
  auto isStill = [&](int64_t dim) { return view.sizes[dim] == 1 || view.strides[dim] == 0; };
  int64_t leading = 0;
  while (leading < view.rank() && isStill(leading))
    ++leading;
  for (int64_t dim = view.rank() - 1; dim >= 0; --dim)
    if (isStill(dim)) {
      auto next = dim < leading
                      ? digits.begin()
                      : llvm::find_if(digits, [&](const Digit &d) { return d.dim == dim + 1; });
      digits.insert(next, Digit{.radix = 1, .dim = dim, .size = 1});
    }
}

Dims permuted(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> order) {
  Dims result;
  for (int64_t dim : order)
    result.push_back(sizes[dim]);
  return result;
}

std::optional<std::vector<Step>> chainFor(const ir::TensorType &base, const ir::TensorType &view,
                                          int64_t offset) {
  auto baseOrder = denseOrder(base);
  if (!baseOrder || base.numElements() == 0 || view.numElements() == 0)
    return std::nullopt;
  Dims memorySizes = permuted(base.sizes, *baseOrder);
  Dims boundaries = ir::contiguousStrides(memorySizes);
  boundaries.insert(boundaries.begin(), base.numElements());
  auto digits = digitsOf(view, offset, base.numElements(), boundaries);
  if (!digits)
    return std::nullopt;
  insertUnitDigits(*digits, view);

  Dims viewSizes;
  for (const Digit &digit : *digits)
    viewSizes.push_back(digit.radix);
  bool selects =
      llvm::any_of(*digits, [](const Digit &d) { return d.dim < 0 || d.size != d.radix; });
  bool onePermute = viewSizes == memorySizes && !selects;

  std::vector<Step> steps;
  if (!onePermute && !isIdentity(*baseOrder))
    steps.push_back({OpKind::Permute, {ir::Arg::ints(*baseOrder)}});
  if (viewSizes != memorySizes)
    steps.push_back({OpKind::View, {ir::Arg::ints(viewSizes)}});
  // Starts at the last dimension, so that the numbers of earlier ones stay valid.
  for (int64_t i = static_cast<int64_t>(digits->size()) - 1; i >= 0; --i) {
    const Digit &digit = (*digits)[i];
    if (digit.dim < 0)
      steps.push_back({OpKind::Select, {i, digit.start}});
    else if (digit.size != digit.radix)
      steps.push_back({OpKind::Slice, {i, digit.start, digit.start + digit.size, 1}});
  }
  // Position of each dimension of the view among the remaining digits.
  Dims finalOrder(view.rank());
  int64_t position = 0;
  for (const Digit &digit : *digits)
    if (digit.dim >= 0)
      finalOrder[digit.dim] = position++;
  if (onePermute)
    for (int64_t &dim : finalOrder)
      dim = (*baseOrder)[dim];
  if (!isIdentity(finalOrder))
    steps.push_back({OpKind::Permute, {ir::Arg::ints(finalOrder)}});
  for (int64_t dim = 0; dim < view.rank(); ++dim)
    if (view.sizes[dim] != 1 && view.strides[dim] == 0) {
      steps.push_back({OpKind::Expand, {ir::Arg::ints(view.sizes)}});
      break;
    }
  return steps;
}

/// Returns the current chain from `base` to `value`; nullopt if a node of it has several results.
std::optional<std::vector<Step>> chainOf(const ir::Value *value, const ir::Value *base) {
  std::vector<Step> steps;
  for (; value != base; value = ir::aliasedArg(*value->node()).value()) {
    const ir::Node &node = *value->node();
    if (node.numResults() != 1)
      return std::nullopt;
    steps.push_back({node.op(), node.args().drop_front().vec()});
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

bool normalizeView(ir::Value *value, PatternRewriter &rewriter) {
  Layout layout = layoutOf(value);
  ir::Node &node = *value->node();
  auto wanted = chainFor(layout.base->tensor(), value->tensor(), layout.offset);
  if (!wanted)
    return rewriter.notifyMatchFailure(
        node, "no chain of permute, view, select, slice and expand addresses the same elements");
  auto current = chainOf(value, layout.base);
  if (current && (*current == *wanted || current->size() < wanted->size()))
    return false;
  ir::Value *result = layout.base;
  for (Step &step : *wanted) {
    std::vector<ir::Arg> args = {result};
    args.insert(args.end(), step.args.begin(), step.args.end());
    args.resize(ir::opSchema(step.op).args.size());
    result = rewriter.create(step.op, std::move(args), node, &node)->result();
  }
  CGC_CHECK(sameLayout(result->tensor(), value->tensor()) && "another view than before");
  replaceAllUsesWith(rewriter, value, result);
  return true;
}

} // namespace

bool normalizeViews(ir::Node &node, PatternRewriter &rewriter) {
  if (!isView(node))
    return false;
  bool changed = false;
  for (ir::Value &result : node.results()) {
    // A view used only by views is part of their chains.
    if (llvm::any_of(result.users(), [](const ir::Node *user) { return !isView(*user); }))
      changed |= normalizeView(&result, rewriter);
  }
  return changed;
}

} // namespace cgc::passes
