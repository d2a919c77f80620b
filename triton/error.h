// Errors of the backend, from cgc's and to Triton's.
#pragma once

#include "runtime/cgc.h"
#include "triton/triton_api.h"

#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

namespace cgc_triton {

/// What fails a load or a request, with the code that Triton gives to the client.
class Error final : public std::runtime_error {
public:
  Error(TRITONSERVER_Error_Code code, const std::string &message)
      : std::runtime_error(message), code_(code) {}
  /// Takes the error, which is not null, of a function of the C API.
  explicit Error(cgc_error *error);
  /// Takes an error, which is not null, of a function of Triton.
  explicit Error(TRITONSERVER_Error *error);

  TRITONSERVER_Error_Code code() const { return code_; }

private:
  TRITONSERVER_Error_Code code_;
};

/// Calls a function of the C API with these arguments; throws its error.
template <class Function, class... Args> void callCgc(Function *function, Args... args) {
  cgc_error *error = nullptr;
  if (function(args..., &error) != CGC_OK)
    throw Error(error);
}

/// Throws an error of Triton.
inline void check(TRITONSERVER_Error *error) {
  if (error)
    throw Error(error);
}

/// What a function of Triton says of `object`; throws its error.
template <class Object, class Value>
Value get(TRITONSERVER_Error *(*function)(Object *, Value *), Object *object) {
  Value value = {};
  check(function(object, &value));
  return value;
}

/// Calls the function. Returns what it throws as an error of Triton; null if it throws nothing.
template <class Function> TRITONSERVER_Error *guarded(Function &&function) noexcept {
  try {
    function();
    return nullptr;
  } catch (const Error &error) {
    return TRITONSERVER_ErrorNew(error.code(), error.what());
  } catch (const std::bad_alloc &) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE,
                                 "host memory ran out: try again with fewer rows");
  } catch (const std::exception &error) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, error.what());
  }
}

/// Deletes by a function of the C API.
template <auto destroy> struct Destroy final {
  template <class Handle> void operator()(Handle *handle) const { destroy(handle); }
};
using Plan = std::unique_ptr<cgc_plan, Destroy<cgc_plan_destroy>>;

} // namespace cgc_triton
