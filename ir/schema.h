// Schema: the signature of an op, parsed from one line of text in its OpDef.
#pragma once

#include "ir/arg.h"
#include "runtime/base/status.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace cgc::ir {

/// The kinds of argument.
enum class ArgKind : uint8_t {
  Tensor,
  Number,         ///< int, float or bool constant (ATen's Scalar).
  TensorOrNumber, ///< Merges the Tensor and the Scalar overload of one op.
  Int,
  Float, ///< Accepts an int constant too.
  Bool,
  Str,
  DType,
  Device,
  Any, ///< For host ops, and for the int or list of aten.split.
};

struct SchemaArg {
  std::string name;
  ArgKind kind = ArgKind::Tensor;
  bool isList = false;
  bool isOptional = false; ///< Accepts none. For `Tensor?[]`, each element does rather than the
                           ///< list.
  std::optional<Arg> defaultValue;
};

struct Schema {
  std::vector<SchemaArg> args;
  unsigned numResults = 1; ///< Without an optional one.
  /// The op's rule determines the number of results: `-> Tensor[]` (chunk, split, unbind) and
  /// `-> (Tensor, Tensor?)`, whose last result is optional.
  bool listResult = false;

  /// Returns the position of the argument with this name; nullopt if there is none.
  std::optional<unsigned> find(llvm::StringRef name) const;
};

/// Parses `(type name[=default], ...) -> result` with types `Tensor number Tensor|number int float
/// bool str dtype device any`, suffixes `[]` and `?`, and results `Tensor`, `(Tensor, Tensor)`,
/// `(Tensor, Tensor?)`, `Tensor[]`, `any`; defaults as in IR text. Asserts that the text is well
/// formed, since only cgc's own texts are parsed.
Schema parseSchema(llvm::StringRef text);

/// Checks the number and kinds of `args` against the schema. Accepts a dynamic value wherever a
/// constant is accepted. The message names the argument and what it accepts.
Status checkArgs(const Schema &schema, llvm::ArrayRef<Arg> args);

} // namespace cgc::ir
