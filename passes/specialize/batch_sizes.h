// BatchSizes: follows the size of the batch through the arithmetic on sizes of a method.
#pragma once

#include "ir/graph.h"
#include "passes/specialize/specialize.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>
#include <vector>

namespace cgc::passes {

/// Numbers on the host as linear functions of the number of rows n, for all n from 1 on. What a
/// number that is none would decide is a BatchUse: a comparison that not all n answer alike, the
/// smaller of two, a remainder, a quotient that is rounded, an index.
class BatchSizes {
public:
  /// `batch`: the rows that the method is specialized for, a prime above all other sizes, so that
  /// a size that is a multiple of it comes from the batch.
  explicit BatchSizes(int64_t batch) : batch_(batch) {}

  /// Follows a host op of `args`, in which host values are resolved, to its result `value`.
  void follow(const ir::Node &node, llvm::ArrayRef<ir::Arg> args, const ir::Arg &value);
  /// Says that result `index` of `node` is the host value of `from`.
  void follow(const ir::Node &node, unsigned index, const ir::Arg &from);
  /// Follows a tensor op, whose results have types.
  void followTensors(const ir::Node &node);

  /// The first use that was found.
  const std::optional<BatchUse> &use() const { return use_; }

private:
  /// How a host value changes with each row: a number, or the elements of a list. No elements: none
  /// changes.
  struct Terms {
    double perRow = 0;
    std::vector<Terms> elements;

    bool isConstant() const;
  };
  /// perRow * n + rest.
  struct Linear {
    double perRow, rest;
  };

  Terms termsOf(const ir::Arg &arg) const;
  Linear linear(const ir::Arg &number, const Terms &terms) const;
  /// The value of `arg` if the batch had `more` further rows.
  static ir::Arg shifted(const ir::Arg &arg, const Terms &terms, int64_t more);
  static Terms difference(const ir::Arg &from, const ir::Arg &to, int64_t more);
  /// Why the result of a host op is no linear function; null if it is one.
  const char *whyNotLinear(const ir::Node &node, llvm::ArrayRef<ir::Arg> args,
                           llvm::ArrayRef<Terms> terms) const;
  /// Whether `op` of both gives the same for all n.
  bool isDecided(ir::OpKind op, Linear a, Linear b) const;
  bool areComparable(const ir::Arg &a, const Terms &ta, const ir::Arg &b, const Terms &tb) const;
  bool isOfBatch(int64_t size) const { return size > 0 && size % batch_ == 0; }
  void add(const ir::Node &node, const char *reason);

  int64_t batch_;
  std::optional<BatchUse> use_;
  llvm::DenseMap<const ir::Value *, Terms> terms_; ///< Of host values. Looked up, never iterated.
  /// Tensors with sizes that are no linear functions. Looked up, never iterated.
  llvm::DenseSet<const ir::Value *> parts_;
};

} // namespace cgc::passes
