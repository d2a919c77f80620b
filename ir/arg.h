// Arg: one argument of a node: a value, a constant, or a list of arguments.
#pragma once

#include "runtime/base/dtype.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace cgc::ir {

class Value;

/// An argument holds a TorchScript constant that can reach an op, a borrowed `Value *` of the
/// graph, or a list of arguments.
class Arg {
public:
  using List = std::vector<Arg>;
  struct None {
    bool operator==(const None &) const = default;
  };

  Arg() = default;
  Arg(None) {}
  Arg(Value *value) : state_(value) { assert(value && "use Arg() for none"); }
  Arg(bool b) : state_(b) {}
  Arg(int64_t i) : state_(i) {}
  Arg(int i) : state_(static_cast<int64_t>(i)) {}
  Arg(double d) : state_(d) {}
  Arg(std::string s) : state_(std::move(s)) {}
  Arg(const char *s) : state_(std::string(s)) {}
  Arg(DType dtype) : state_(dtype) {}
  Arg(DeviceKind device) : state_(device) {}
  Arg(List list) : state_(std::move(list)) {}
  /// A list of integers.
  template <class Ints> static Arg ints(const Ints &values) {
    List list;
    for (int64_t v : values)
      list.emplace_back(v);
    return Arg(std::move(list));
  }

  template <class T> bool is() const { return std::holds_alternative<T>(state_); }
  template <class T> const T &as() const { return std::get<T>(state_); }
  template <class T> const T *getIf() const { return std::get_if<T>(&state_); }
  bool isNone() const { return is<None>(); }
  bool isValue() const { return is<Value *>(); }
  bool isList() const { return is<List>(); }
  /// Calls `fn` with the held alternative: None, Value *, bool, int64_t, double, std::string,
  /// DType, DeviceKind or List.
  template <class Fn> decltype(auto) visit(Fn &&fn) const {
    return std::visit(std::forward<Fn>(fn), state_);
  }
  Value *value() const { return std::get<Value *>(state_); }
  const List &list() const { return std::get<List>(state_); }
  List &list() { return std::get<List>(state_); }
  /// Returns the elements of a constant list of ints or bools; nullopt if an element is neither.
  std::optional<llvm::SmallVector<int64_t, 6>> asInts() const;
  /// Returns a constant int or bool as an int; nullopt otherwise.
  std::optional<int64_t> asInt() const;
  /// Returns a constant int, float or bool as a double; nullopt otherwise.
  std::optional<double> asNumber() const;
  /// Returns true if the argument contains no Value, at any depth.
  bool isConstant() const;

  /// Calls `fn` for each contained Value, at any depth, in order.
  void forEachValue(llvm::function_ref<void(Value *)> fn) const;
  /// Replaces each contained Value `v`, at any depth, with `fn(v)`.
  void mapValues(llvm::function_ref<Arg(Value *)> fn);

  bool operator==(const Arg &other) const = default;

private:
  std::variant<None, Value *, bool, int64_t, double, std::string, DType, DeviceKind, List> state_;
};

} // namespace cgc::ir
