// Status and Result<T>: how every cgc library reports failure. No exceptions cross a cgc API.
#pragma once

#include "runtime/base/export.h"

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace cgc {

/// The kind of a failure. The `cgc` tool maps each code to an exit status (docs/cli.md).
enum class Code {
  Ok = 0,
  Failed,      ///< The operation failed for a reason that no other code names (I/O, interruption).
  Usage,       ///< The caller's arguments are wrong.
  InvalidFile, ///< A file is missing, damaged or of another kind.
  Unsupported, ///< The model uses something cgc cannot compile.
  Mismatch,    ///< A comparison went past its tolerance.
  Device,      ///< No usable device or driver, or the device failed.
  OutOfMemory, ///< Host or device memory ran out.
  Busy,        ///< A limit on waiting or the time-out was reached. Try again later.
};

/// The name of a code in JSON output, for example "invalid_file".
CGC_API std::string_view codeName(Code code);

/// Success, or an error code with a message that names the object, the cause and the next step.
class [[nodiscard]] CGC_API Status {
public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {
    assert(code != Code::Ok && "an error needs an error code");
  }

  static Status ok() { return {}; }
  bool isOk() const { return code_ == Code::Ok; }
  Code code() const { return code_; }
  const std::string &message() const { return message_; }

  /// The same failure with `context` and a colon before its message. Ok stays Ok.
  Status withContext(std::string_view context) const;

private:
  Code code_ = Code::Ok;
  std::string message_;
};

/// A value of type T, or the Status that says why there is none.
template <class T> class [[nodiscard]] Result {
public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status error) : state_(std::in_place_index<1>, std::move(error)) {
    assert(!std::get<1>(state_).isOk() && "a Result without a value needs an error");
  }

  bool isOk() const { return state_.index() == 0; }
  explicit operator bool() const { return isOk(); }
  Status status() const { return isOk() ? Status::ok() : std::get<1>(state_); }

  T &operator*() & { return value(); }
  const T &operator*() const & { return const_cast<Result *>(this)->value(); }
  T &&operator*() && { return std::move(value()); }
  T *operator->() { return &value(); }
  const T *operator->() const { return &const_cast<Result *>(this)->value(); }

private:
  T &value() {
    assert(isOk() && "value of a failed Result");
    return std::get<0>(state_);
  }
  std::variant<T, Status> state_;
};

} // namespace cgc

/// Returns the Status of `expr` from the enclosing function if it failed.
#define CGC_TRY(expr)                                                                              \
  do {                                                                                             \
    if (::cgc::Status cgcStatus_ = (expr); !cgcStatus_.isOk())                                     \
      return cgcStatus_;                                                                           \
  } while (false)

/// Declares `decl` from the value of the Result `expr`, or returns its Status.
#define CGC_ASSIGN_OR_RETURN(decl, expr)                                                           \
  CGC_ASSIGN_OR_RETURN_IMPL(CGC_CONCAT(cgcResult_, __LINE__), decl, expr)
#define CGC_ASSIGN_OR_RETURN_IMPL(tmp, decl, expr)                                                 \
  auto tmp = (expr);                                                                               \
  if (!tmp.isOk())                                                                                 \
    return tmp.status();                                                                           \
  decl = *std::move(tmp)
#define CGC_CONCAT(a, b) CGC_CONCAT_IMPL(a, b)
#define CGC_CONCAT_IMPL(a, b) a##b
