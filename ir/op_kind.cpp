// OpKind: conversion to and from names.
#include "ir/op_kind.h"

#include "llvm/ADT/StringMap.h"

namespace cgc::ir {
namespace {
constexpr const char *kNames[] = {
#define CGC_OP(Enum, text) text,
#include "ir/ops.def"
};
} // namespace

llvm::StringRef opName(OpKind op) {
  return kNames[static_cast<unsigned>(op)];
}

std::optional<OpKind> parseOpName(llvm::StringRef name) {
  static const llvm::StringMap<OpKind> byName = [] {
    llvm::StringMap<OpKind> map;
    for (unsigned i = 0; i < kNumOps; ++i)
      map[kNames[i]] = static_cast<OpKind>(i);
    return map;
  }();
  auto it = byName.find(name);
  return it == byName.end() ? std::nullopt : std::optional(it->second);
}

} // namespace cgc::ir
