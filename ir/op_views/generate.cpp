// cgc_generate_op_views: writes ir/op_views.h, a class with named accessors for each op that has an
// inference rule. op_view.h says what the classes do.
#include "ir/op_def.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace cgc::ir {
namespace {

/// Returns "attnMask" for "attn_mask".
std::string accessorName(llvm::StringRef name) {
  return llvm::convertToCamelFromSnakeCase(name);
}

/// Return type and body of an accessor.
struct Accessor {
  const char *type, *body; ///< `{0}` stands for the argument's position.
};

Accessor accessorOf(const SchemaArg &arg) {
  const bool isOptional = arg.isOptional;
  if (arg.isList)
    switch (arg.kind) {
    case ArgKind::Int:
      return isOptional ? Accessor{"std::optional<Dims>", "arg({0}).asInts()"}
                        : Accessor{"Dims", "known(arg({0}).asInts())"};
    default:
      return {"const Arg &", "arg({0})"};
    }
  switch (arg.kind) {
  case ArgKind::Tensor:
    return isOptional ? Accessor{"Value *", "arg({0}).isNone() ? nullptr : arg({0}).value()"}
                      : Accessor{"Value *", "arg({0}).value()"};
  case ArgKind::Number:
  case ArgKind::Float:
    return isOptional ? Accessor{"std::optional<double>", "arg({0}).asNumber()"}
                      : Accessor{"double", "known(arg({0}).asNumber())"};
  case ArgKind::Int:
    return isOptional ? Accessor{"std::optional<int64_t>", "arg({0}).asInt()"}
                      : Accessor{"int64_t", "known(arg({0}).asInt())"};
  case ArgKind::Bool:
    return isOptional ? Accessor{"std::optional<bool>", "optional<bool>({0})"}
                      : Accessor{"bool", "arg({0}).as<bool>()"};
  case ArgKind::Str:
    return isOptional ? Accessor{"std::optional<std::string>", "optional<std::string>({0})"}
                      : Accessor{"llvm::StringRef", "arg({0}).as<std::string>()"};
  case ArgKind::DType:
    return isOptional ? Accessor{"std::optional<DType>", "optional<DType>({0})"}
                      : Accessor{"DType", "arg({0}).as<DType>()"};
  case ArgKind::Device:
    return isOptional ? Accessor{"std::optional<DeviceKind>", "optional<DeviceKind>({0})"}
                      : Accessor{"DeviceKind", "arg({0}).as<DeviceKind>()"};
  case ArgKind::TensorOrNumber:
  case ArgKind::Any:
    return {"const Arg &", "arg({0})"};
  }
  llvm_unreachable("all kinds have been named");
}

void writeClass(llvm::StringRef enumerator, OpKind op, llvm::raw_ostream &os) {
  const std::string name = enumerator.str() + (enumerator.ends_with("Op") ? "" : "Op");
  os << "\n/// " << opName(op) << opDef(op).schema << "\n"
     << "class " << name << " : public OpView<" << name << ", OpKind::" << enumerator << "> {\n"
     << "public:\n";
  const Schema &schema = opSchema(op);
  for (unsigned i = 0; i < schema.args.size(); ++i) {
    const auto [type, body] = accessorOf(schema.args[i]);
    std::string text = body;
    for (size_t at; (at = text.find("{0}")) != std::string::npos;)
      text.replace(at, 3, std::to_string(i));
    const bool isPointer =
        llvm::StringRef(type).ends_with("*") || llvm::StringRef(type).ends_with("&");
    os << "  " << type << (isPointer ? "" : " ") << accessorName(schema.args[i].name)
       << "() const { return " << text << "; }\n";
  }
  os << "\nprivate:\n"
     << "  friend OpView;\n"
     << "  using OpView::OpView;\n"
     << "};\n";
}

void writeHeader(llvm::raw_ostream &os) {
  constexpr std::pair<const char *, OpKind> kOps[] = {
#define CGC_OP(Enum, text) {#Enum, OpKind::Enum},
#include "ir/ops.def"
  };
  os << "// Generated from the schemas of ir/ops by ir/op_views/generate.cpp. Do not edit.\n"
     << "#pragma once\n\n"
     << "#include \"ir/op_views/op_view.h\"\n\n"
     << "namespace cgc::ir {\n";
  for (const auto &[enumerator, op] : kOps)
    if (opDef(op).infer)
      writeClass(enumerator, op, os);
  os << "\n} // namespace cgc::ir\n";
}

} // namespace
} // namespace cgc::ir

/// Takes the path of the header to write.
int main(int argc, char **argv) {
  if (argc != 2) {
    llvm::errs() << "usage: cgc_generate_op_views OUT.h\n";
    return 2;
  }
  std::error_code error;
  llvm::raw_fd_ostream os(argv[1], error);
  if (!error) {
    cgc::ir::writeHeader(os);
    os.close();
    error = os.error();
  }
  if (!error)
    return 0;
  llvm::errs() << "cannot write '" << argv[1] << "': " << error.message() << "\n";
  os.clear_error();
  return 1;
}
