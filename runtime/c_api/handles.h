// The objects behind the handles of cgc.h, and the conversion of Status to cgc_code.
#pragma once

#include "runtime/base/no_throw.h"
#include "runtime/cgc.h"
#include "runtime/session/session.h"
#include "runtime/train/trainer.h"

#include <algorithm>
#include <cstring>
#include <deque>

struct cgc_error {
  cgc_code code;
  std::string message;
};
struct cgc_plan {
  std::shared_ptr<const cgc::Plan> plan;
};
struct cgc_memory_pool {
  std::shared_ptr<cgc::MemoryPool> pool;
};
struct cgc_session {
  cgc::Session session;
};
struct cgc_reservation {
  cgc::Reservation reservation;
};
struct cgc_communicator {
  std::shared_ptr<cgc::Communicator> communicator;
};
struct cgc_trainer {
  cgc::Trainer trainer;
  std::string rank;                    ///< Before its errors: "rank 1"; empty if it is alone.
  std::deque<cgc_step_result> results; ///< Those that the caller had no room for.
};

namespace cgc::c_api {

/// Returns the code of `status` and, if it is an error, sets `*error` unless `error` is null.
cgc_code report(const Status &status, cgc_error **error);

/// Runs `body`, which returns a Status, and reports its result. Exceptions become errors.
template <class Body> cgc_code call(cgc_error **error, const Body &body) {
  return report(noThrow([&]() -> Status { return body(); }), error);
}

/// Copies a caller's structure to a new one of this version. Members that the caller's version
/// lacks are zero. Usage if its size is none.
template <class T> Result<T> fromCaller(const T *given, const char *name) {
  T value{};
  if (!given)
    return value;
  if (given->struct_size < sizeof(size_t) || given->struct_size > 4096)
    return Status(Code::Usage, std::string("struct_size of ") + name + " is " +
                                   std::to_string(given->struct_size) + "; set it to sizeof(" +
                                   name + ")");
  std::memcpy(&value, given, std::min(given->struct_size, sizeof(T)));
  return value;
}

/// Copies `value` to a caller's structure, as much as the caller's version has. Usage as above.
template <class T> Status toCaller(T value, T *given, const char *name) {
  if (!given)
    return {Code::Usage, std::string(name) + " is null"};
  const size_t size = given->struct_size;
  CGC_TRY(fromCaller(given, name).status());
  value.struct_size = size;
  std::memcpy(given, &value, std::min(size, sizeof(T)));
  return Status::ok();
}

/// A view as a caller's tensor, whose sizes are borrowed from it.
inline cgc_tensor tensorOf(const TensorView &view) {
  return {view.data, view.sizes.data(), int32_t(view.sizes.size()), cgc_dtype(view.dtype),
          view.device == DeviceKind::Cuda ? CGC_GPU : CGC_HOST};
}

/// Usage if `io` is none of its values.
inline Status checkIo(cgc_io io) {
  return io == CGC_INPUT || io == CGC_OUTPUT
             ? Status::ok()
             : Status(Code::Usage, "there is no cgc_io " + std::to_string(int(io)));
}

/// Usage if a pointer that is required is null.
template <class T> Status require(const T *pointer, const char *name) {
  return pointer ? Status::ok() : Status(Code::Usage, std::string(name) + " is null");
}

} // namespace cgc::c_api
