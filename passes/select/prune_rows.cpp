// prune-rows: moves cgc.rows up through ops that process each row independently.
#include "ir/text/text.h"
#include "passes/canonicalize/patterns.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/run_patterns.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <cstring>

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Dims;
using ir::Node;
using ir::OpKind;
using ir::TensorType;
using ir::Value;

/// Returns all users of the results of `source`, in graph order, if they all are cgc.rows with the
/// same index as `first` and `first` is the first of them. Otherwise returns an empty list.
std::vector<Node *> rowsReaders(Node &source, Node &first) {
  std::vector<Node *> readers;
  for (const Value &result : source.results())
    for (Node *user : result.users()) {
      if (!user->is(OpKind::CgcRows) || user->arg("index") != first.arg("index") ||
          user->arg("input").value()->node() != &source)
        return {};
      readers.push_back(user);
    }
  const bool isFirst =
      llvm::none_of(readers, [&](const Node *reader) { return reader->isBefore(first); });
  return isFirst ? readers : std::vector<Node *>();
}

/// Returns the bits of -inf in the lowest bytes.
uint64_t negativeInfinity(DType dtype) {
  const llvm::fltSemantics &semantics = dtype == DType::F16    ? llvm::APFloat::IEEEhalf()
                                        : dtype == DType::BF16 ? llvm::APFloat::BFloat()
                                        : dtype == DType::F32  ? llvm::APFloat::IEEEsingle()
                                                               : llvm::APFloat::IEEEdouble();
  return llvm::APFloat::getInf(semantics, /*Negative=*/true).bitcastToAPInt().getZExtValue();
}

/// Creates the ops of one pruned call before the cgc.rows node `rows`.
class Pruner {
public:
  Pruner(Node &source, Node &rows, ir::GraphRewriter &rewriter)
      : source_(source), rows_(rows), rewriter_(rewriter),
        type_(rows.arg("input").value()->tensor()) {}

  /// Returns the results of `source` for only the pooled rows. Returns an empty list, with the
  /// graph unchanged, if `source` does not process rows independently.
  std::vector<Value *> prune() {
    if (source_.is(OpKind::CgcAttention))
      return attention();
    if (!ir::hasTrait(source_.op(), ir::kPointwise))
      return call(ir::rowArgs(source_));
    return takesRowsOrVectors() ? call(allNames()) : std::vector<Value *>();
  }

private:
  Value *create(OpKind op, std::vector<Arg> args) {
    return rewriter_.create(op, std::move(args), source_, &rows_)->result();
  }
  /// Returns the pooled row of each sequence of `sequences` [B, T, ...].
  Value *rowsOf(Value *sequences) {
    return create(OpKind::CgcRows, {sequences, rows_.arg("index")});
  }
  /// Returns the pooled rows of `value`, whose sizes are those of the result or its last ones.
  Value *pruned(Value *value) {
    const Dims &sizes = value->tensor().sizes;
    if (sizes.size() < 2)
      return value;
    if (sizes.size() == 2)
      value = create(OpKind::Expand, {value, Arg::ints(Dims{type_.sizes[0], sizes[0], sizes[1]})});
    return rowsOf(value);
  }

  ir::RowArgs allNames() const {
    ir::RowArgs names;
    for (const ir::SchemaArg &arg : ir::opSchema(source_.op()).args)
      names.push_back(arg.name);
    return names;
  }

  /// Repeats the call on the pooled rows of the arguments of these names; returns an empty list if
  /// there are none.
  std::vector<Value *> call(llvm::ArrayRef<llvm::StringRef> names) {
    if (names.empty())
      return {};
    const ir::Schema &schema = ir::opSchema(source_.op());
    std::vector<Arg> args = source_.args().vec();
    for (llvm::StringRef name : names)
      if (Arg &arg = args[*schema.find(name)]; arg.isValue())
        arg = pruned(arg.value());
    Node *node = rewriter_.create(source_.op(), std::move(args), source_, &rows_);
    std::vector<Value *> results;
    for (Value &result : node->results())
      results.push_back(&result);
    return results;
  }

  /// Returns true if each operand of a pointwise op has the sizes of the result, is a vector that
  /// is equal for each row, or is a constant.
  bool takesRowsOrVectors() const {
    return llvm::all_of(source_.args(), [&](const Arg &arg) {
      if (!arg.isValue())
        return true;
      const Dims &sizes = arg.value()->tensor().sizes;
      return sizes == type_.sizes || sizes.size() < 2;
    });
  }

  std::vector<Value *> attention() {
    Value *query = source_.arg("query").value();
    const TensorType &type = query->tensor();
    int64_t batch = type.sizes[0], heads = type.sizes[1], width = type.sizes[3];
    bool first = rows_.arg("index").isNone();
    // The heads of a token must lie side by side, as in a packed projection.
    bool sideBySide = (width == 1 || type.strides[3] == 1) &&
                      (heads == 1 || type.strides[1] == width * type.strides[3]);
    if (!(first || sideBySide) || !canPruneMask())
      return {};
    const auto op = *ir::CgcAttentionOp::of(source_);
    Value *row = nullptr;
    if (first) {
      row = create(OpKind::Slice, {query, 2, 0, 1, 1});
    } else {
      Value *tokens = create(OpKind::Permute, {query, Arg::ints(Dims{0, 2, 1, 3})});
      Value *flat =
          create(OpKind::View, {tokens, Arg::ints(Dims{batch, type.sizes[2], heads * width})});
      Value *split = create(OpKind::View, {rowsOf(flat), Arg::ints(Dims{batch, 1, heads, width})});
      row = create(OpKind::Permute, {split, Arg::ints(Dims{0, 2, 1, 3})});
    }
    Value *rowMask = prunedMask();
    const Arg mask = rowMask ? Arg(rowMask) : source_.arg("attn_mask");
    Value *attended = create(OpKind::CgcAttention, {row, op.key(), op.value(), mask,
                                                    !rowMask && op.isCausal(), op.scale()});
    return {create(OpKind::View, {attended, Arg::ints(Dims{batch, heads * width})})};
  }

  /// Returns true if the mask is equal for all heads or for all queries, and has a batch for each
  /// sequence or for all.
  bool canPruneMask() const {
    if (source_.arg("is_causal") == Arg(true))
      return source_.graph()->owner();
    const Arg &mask = source_.arg("attn_mask");
    if (mask.isNone())
      return true;
    const Dims &sizes = mask.value()->tensor().sizes;
    size_t rank = sizes.size();
    if (rank == 4 && sizes[0] != 1 && sizes[0] != type_.sizes[0])
      return false; // The batches of the mask repeat.
    return rank <= 4 && (sizes[rank - 2] == 1 || rank == 2 || sizes[rank - 3] == 1);
  }

  /// Returns the mask [B, 1, 1, S] of the remaining queries; null if the mask stays as it is.
  Value *prunedMask() {
    Value *mask = nullptr;
    if (source_.arg("is_causal") == Arg(true))
      mask = causalMask();
    else if (source_.arg("attn_mask").isValue())
      mask = source_.arg("attn_mask").value();
    if (!mask || mask->tensor().sizes[mask->tensor().rank() - 2] == 1)
      return nullptr;
    if (mask->tensor().rank() == 4)
      mask = create(OpKind::Select, {mask, 1, 0});
    Dims sizes = mask->tensor().sizes;
    int64_t batch = type_.sizes[0], length = sizes[sizes.size() - 2], keys = sizes.back();
    Value *expanded = create(OpKind::Expand, {mask, Arg::ints(Dims{batch, length, keys})});
    return create(OpKind::View, {rowsOf(expanded), Arg::ints(Dims{batch, 1, 1, keys})});
  }

  /// Returns a constant [L, S]: -inf where a query does not see a key, else 0.
  Value *causalMask() {
    const TensorType &query = source_.arg("query").value()->tensor();
    int64_t queries = query.sizes[2], keys = source_.arg("key").value()->tensor().sizes[2];
    TensorType type = TensorType::dense(query.dtype, {queries, keys});
    size_t width = dtypeSize(type.dtype);
    uint64_t hidden = negativeInfinity(type.dtype);
    std::vector<std::byte> bytes(type.numBytes());
    for (int64_t l = 0; l < queries; ++l)
      for (int64_t s = l + 1; s < keys; ++s)
        std::memcpy(&bytes[static_cast<size_t>(l * keys + s) * width], &hidden, width);
    std::string name = findOrAddConstant(*source_.graph()->owner(), "causal_mask",
                                         ir::TensorData::copyOf(type, bytes));
    type.device = query.device;
    return rewriter_.getAttr(name, type, source_, &rows_)->result();
  }

  Node &source_, &rows_;
  ir::GraphRewriter &rewriter_;
  const TensorType type_; ///< Type of the tensor that the rows are taken from: [B, T, E].
};

bool prune(Node &node, PatternRewriter &rewriter, bool keepsAttention) {
  auto rows = ir::CgcRowsOp::of(node);
  if (!rows)
    return false;
  Node &source = *rows->input()->node();
  if (source.kind() != ir::NodeKind::CallFunction)
    return rewriter.notifyMatchFailure(node, "no op computes the rows");
  if (keepsAttention && source.is(OpKind::CgcAttention))
    return rewriter.notifyMatchFailure(node, "attention is kept whole");
  std::vector<Node *> readers = rowsReaders(source, node);
  if (readers.empty())
    return rewriter.notifyMatchFailure(node, [&] {
      return "other rows are used too, or an earlier cgc.rows prunes them: " + ir::toString(source);
    });
  std::vector<Value *> results = Pruner(source, node, rewriter).prune();
  if (results.empty())
    return rewriter.notifyMatchFailure(
        node, [&] { return "the rows depend on each other: " + ir::toString(source); });
  for (Node *reader : readers)
    replaceAllUsesWith(rewriter, reader->result(), results[reader->arg("input").value()->index()]);
  return true;
}

bool pruneRows(Node &node, PatternRewriter &rewriter) {
  return prune(node, rewriter, /*keepsAttention=*/false);
}
bool pruneRowsBehindAttention(Node &node, PatternRewriter &rewriter) {
  return prune(node, rewriter, /*keepsAttention=*/true);
}

constexpr Pattern kPruneRowsPatterns[] = {
    CGC_PATTERN(pruneRows),
    CGC_PATTERN(normalizeViews),
    CGC_PATTERN(dropIdentity),
};
constexpr Pattern kPatternsBehindAttention[] = {
    CGC_PATTERN(pruneRowsBehindAttention),
    CGC_PATTERN(normalizeViews),
    CGC_PATTERN(dropIdentity),
};

} // namespace

/// Moves cgc.rows up through ops that process each row independently, so that rows that are not
/// pooled are not computed. Attention then has one query for each sequence, unless attention=keep:
/// its gradient is faster for all queries and keys of a packed projection.
struct PruneRowsPass {
  static constexpr const char *name = "prune-rows";
  static constexpr bool explains = true;
  /// Option: attention, prune (the default) or keep.
  static Result<PruneRowsPass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  bool keepsAttention = false;
};

Result<PruneRowsPass> PruneRowsPass::create(PassOptions &options) {
  CGC_ASSIGN_OR_RETURN(const auto attention, options.takeOneOf("attention", {"prune", "keep"}));
  return PruneRowsPass{attention == "keep"};
}

Result<Changed> PruneRowsPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph,
                     keepsAttention ? llvm::ArrayRef(kPatternsBehindAttention)
                                    : llvm::ArrayRef(kPruneRowsPatterns),
                     context);
}

CGC_DEFINE_PASS(PruneRowsPass)

} // namespace cgc::passes
