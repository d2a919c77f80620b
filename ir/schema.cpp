// Schema: parsing signatures and checking arguments against them.
#include "ir/schema.h"

#include "ir/graph.h"
#include "runtime/base/check.h"

#include "llvm/ADT/StringSwitch.h"

#include <cstdlib>

namespace cgc::ir {
namespace {

ArgKind parseKind(llvm::StringRef text) {
  auto kind = llvm::StringSwitch<std::optional<ArgKind>>(text)
                  .Case("Tensor", ArgKind::Tensor)
                  .Case("number", ArgKind::Number)
                  .Case("Tensor|number", ArgKind::TensorOrNumber)
                  .Case("int", ArgKind::Int)
                  .Case("float", ArgKind::Float)
                  .Case("bool", ArgKind::Bool)
                  .Case("str", ArgKind::Str)
                  .Case("dtype", ArgKind::DType)
                  .Case("device", ArgKind::Device)
                  .Case("any", ArgKind::Any)
                  .Default(std::nullopt);
  CGC_CHECK(kind && "unknown type in an op's schema");
  return *kind;
}

llvm::StringRef kindName(ArgKind kind) {
  switch (kind) {
  case ArgKind::Tensor:
    return "a tensor";
  case ArgKind::Number:
    return "a number";
  case ArgKind::TensorOrNumber:
    return "a tensor or a number";
  case ArgKind::Int:
    return "an int";
  case ArgKind::Float:
    return "a float";
  case ArgKind::Bool:
    return "a bool";
  case ArgKind::Str:
    return "a string";
  case ArgKind::DType:
    return "a dtype";
  case ArgKind::Device:
    return "a device";
  case ArgKind::Any:
    return "anything";
  }
  return "";
}

/// Parses a default in a schema: none, true, false, an int, a float, a "string", or [ints].
Arg parseDefault(llvm::StringRef text) {
  text = text.trim();
  if (text == "none")
    return {};
  if (text == "true" || text == "false")
    return text == "true";
  if (text.consume_front("[")) {
    text.consume_back("]");
    Arg::List list;
    while (!text.empty()) {
      auto [head, rest] = text.split(',');
      list.push_back(parseDefault(head));
      text = rest;
    }
    return Arg(std::move(list));
  }
  if (text.consume_front("\"")) {
    text.consume_back("\"");
    return Arg(text.str());
  }
  int64_t integer;
  if (!text.getAsInteger(10, integer))
    return integer;
  double number;
  bool failed = text.getAsDouble(number);
  CGC_CHECK(!failed && "unreadable default in an op's schema");
  return number;
}

/// Splits at commas outside brackets.
llvm::SmallVector<llvm::StringRef, 8> splitArgs(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef, 8> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[')
      ++depth;
    else if (text[i] == ']')
      --depth;
    else if (text[i] == ',' && depth == 0) {
      parts.push_back(text.slice(start, i).trim());
      start = i + 1;
    }
  }
  if (!text.drop_front(start).trim().empty())
    parts.push_back(text.drop_front(start).trim());
  return parts;
}

bool accepts(const SchemaArg &schema, const Arg &arg) {
  if (arg.isValue())
    return true; // A tensor or dynamic value.
  switch (schema.kind) {
  case ArgKind::Tensor:
    return false;
  case ArgKind::Number:
  case ArgKind::TensorOrNumber:
    return arg.asNumber().has_value();
  case ArgKind::Int:
    return arg.is<int64_t>() || arg.is<bool>();
  case ArgKind::Float:
    return arg.is<double>() || arg.is<int64_t>();
  case ArgKind::Bool:
    return arg.is<bool>();
  case ArgKind::Str:
    return arg.is<std::string>();
  case ArgKind::DType:
    return arg.is<DType>();
  case ArgKind::Device:
    return arg.is<DeviceKind>();
  case ArgKind::Any:
    return true;
  }
  return false;
}

} // namespace

Schema parseSchema(llvm::StringRef text) {
  Schema schema;
  size_t close = text.rfind(") ->");
  CGC_CHECK(text.starts_with("(") && close != llvm::StringRef::npos && "malformed op schema");
  for (llvm::StringRef part : splitArgs(text.slice(1, close))) {
    SchemaArg arg;
    auto [declaration, defaultText] = part.split('=');
    auto [type, name] = declaration.rsplit(' ');
    arg.name = name.trim().str();
    type = type.trim();
    arg.isOptional = type.consume_back("?");
    arg.isList = type.consume_back("[]");
    if (arg.isList) // `Tensor?[]`: elements may be none.
      arg.isOptional |= type.consume_back("?");
    arg.kind = parseKind(type);
    if (!defaultText.empty())
      arg.defaultValue = parseDefault(defaultText);
    schema.args.push_back(std::move(arg));
  }
  llvm::StringRef result = text.drop_front(close + 4).trim();
  const bool lastIsOptional = result.ends_with("?)");
  schema.listResult = result == "Tensor[]" || lastIsOptional;
  schema.numResults = static_cast<unsigned>(result.count(',')) + (lastIsOptional ? 0 : 1);
  return schema;
}

std::optional<unsigned> Schema::find(llvm::StringRef name) const {
  for (unsigned i = 0; i < args.size(); ++i)
    if (args[i].name == name)
      return i;
  return std::nullopt;
}

Status checkArgs(const Schema &schema, llvm::ArrayRef<Arg> args) {
  if (args.size() != schema.args.size())
    return Status(Code::Unsupported, "expected " + std::to_string(schema.args.size()) +
                                         " arguments, got " + std::to_string(args.size()));
  for (unsigned i = 0; i < args.size(); ++i) {
    const SchemaArg &expected = schema.args[i];
    const Arg &arg = args[i];
    // For `Tensor?[]` each element may be none; for other kinds the argument itself.
    bool optionalElements = expected.isList && expected.kind == ArgKind::Tensor;
    if (arg.isNone() && expected.isOptional && !optionalElements)
      continue;
    bool fits;
    if (expected.isList && !arg.isValue()) {
      fits = arg.isList();
      if (fits)
        for (const Arg &element : arg.list())
          fits &= accepts(expected, element) ||
                  (expected.isOptional && optionalElements && element.isNone());
    } else {
      fits = accepts(expected, arg);
    }
    if (!fits)
      return Status(Code::Unsupported, "argument '" + expected.name + "' must be " +
                                           (expected.isList ? "a list, each element " : "") +
                                           kindName(expected.kind).str() +
                                           (expected.isOptional ? ", or none" : ""));
  }
  return Status::ok();
}

} // namespace cgc::ir
