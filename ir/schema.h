// Schema: the signature of an op, parsed from one line of text in its OpDef.
#pragma once

#include "ir/arg.h"
#include "runtime/base/status.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace cgc::ir {

/// What an argument accepts.
enum class ArgKind : uint8_t {
  Tensor,
  Number,         ///< int, float or bool constant (ATen's Scalar)
  TensorOrNumber, ///< the Tensor and the Scalar overload of one op
  Int,
  Float, ///< an int constant is accepted
  Bool,
  Str,
  DType,
  Device,
  Any, ///< host ops, and the int or list of aten.split
};

struct SchemaArg {
  std::string name;
  ArgKind kind = ArgKind::Tensor;
  bool isList = false;
  bool isOptional = false; ///< Accepts none. For `Tensor?[]` each element does, not the list.
  std::optional<Arg> defaultValue;
};

struct Schema {
  std::vector<SchemaArg> args;
  unsigned numResults = 1;
  /// `-> Tensor[]`: as many results as the op's rule says (chunk, split, unbind).
  bool listResult = false;

  /// The position of the argument with this name; nothing if there is none.
  std::optional<unsigned> find(llvm::StringRef name) const;
};

/// Grammar: `(type name[=default], ...) -> result` with types `Tensor number Tensor|number int
/// float bool str dtype device any`, suffixes `[]` and `?`, results `Tensor`, `(Tensor, Tensor)`,
/// `Tensor[]`, `any`; defaults as in IR text. The text is cgc's own: a malformed one is an
/// assertion failure.
Schema parseSchema(llvm::StringRef text);

/// Checks count and kinds of `args` against the schema; dynamic values are accepted wherever a
/// constant is. The message names the argument and what it accepts.
Status checkArgs(const Schema &schema, llvm::ArrayRef<Arg> args);

} // namespace cgc::ir
