// AtenCall: a call of an ATen op as a frontend reads it from its file.
#pragma once

#include "ir/graph.h"
#include "ir/offenders.h"
#include "runtime/base/status.h"

#include <optional>
#include <string>

namespace cgc::frontend {

class AtenCall {
public:
  virtual ~AtenCall() = default;

  /// The op without its overload: "aten::add".
  virtual const std::string &name() const = 0;
  /// "Tensor"; empty for the overload without a name.
  virtual const std::string &overload() const = 0;

  // The arguments by position. An argument at its default may be absent.
  virtual size_t numArgs() const = 0;
  /// Its name in ATen's schema; empty for an argument that the schema lacks, as those of
  /// aten::format.
  virtual llvm::StringRef argName(size_t i) const = 0;
  /// Returns the argument in the IR's form. A tensor constant becomes a get_attr node on first use,
  /// except for a 0-d integer where the argument `mayBeNumber`: traced size arithmetic spells its
  /// numbers as such tensors. Unsupported, with the reason, for what cgc does not have, such as a
  /// dtype.
  virtual Result<ir::Arg> arg(size_t i, bool mayBeNumber) = 0;
  /// Whether the argument has the type of a list.
  virtual bool isList(size_t i) const = 0;
  /// Whether the type of the argument has the value none.
  virtual bool mayBeNone(size_t i) const = 0;
  /// Whether `value` is known to be the argument's default in ATen's schema.
  virtual bool isDefault(size_t i, const ir::Arg &value) const = 0;

  virtual size_t numResults() const = 0;
  /// Whether something reads the result.
  virtual bool isUsed(size_t result) const = 0;
  /// Whether the op computes on host values: its first result is not a tensor.
  virtual bool isOnHost() const = 0;
  /// The length of the list that the op returns; none if it is unknown or the op returns no list.
  virtual std::optional<unsigned> listLength() const = 0;

  virtual ir::Graph &graph() = 0;
  virtual ir::Loc loc() = 0;
  /// Emits a prim.refused in place of the call: the import continues, and compiling the graph
  /// reports `reason` with the line. Returns the value of the first result.
  virtual ir::Arg refuse(std::string reason, ir::Cause cause) = 0;
  /// Emits an aten.fallback with the ATen schema as its target.
  virtual ir::Node *emitFallback() = 0;
};

} // namespace cgc::frontend
