// The C API: reservations.
#include "runtime/c_api/handles.h"

using namespace cgc;
using namespace cgc::c_api;

cgc_code cgc_session_reserve(cgc_session *session, const char *entry, int64_t batch, int32_t device,
                             cgc_reservation **reservation, cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(session, "session"));
    CGC_TRY(require(entry, "entry"));
    CGC_TRY(require(reservation, "reservation"));
    CGC_ASSIGN_OR_RETURN(
        Reservation reserved,
        session->session.reserve(entry, batch,
                                 device == -1 ? std::nullopt : std::optional<int>(device)));
    *reservation = new cgc_reservation{std::move(reserved)};
    return Status::ok();
  });
}

void cgc_reservation_destroy(cgc_reservation *reservation) {
  delete reservation;
}

int32_t cgc_reservation_device(const cgc_reservation *reservation) {
  return reservation ? reservation->reservation.device().value_or(-1) : -1;
}

cgc_code cgc_reservation_tensor(const cgc_reservation *reservation, cgc_io io, size_t index,
                                cgc_tensor *tensor, cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(reservation, "reservation"));
    CGC_TRY(require(tensor, "tensor"));
    CGC_TRY(checkIo(io));
    const Reservation &reserved = reservation->reservation;
    CGC_ASSIGN_OR_RETURN(const TensorView view, io == CGC_INPUT ? reserved.inputBuffer(index)
                                                                : reserved.outputBuffer(index));
    *tensor = tensorOf(view);
    return Status::ok();
  });
}

cgc_code cgc_reservation_run(cgc_reservation *reservation, void *stream, cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(reservation, "reservation"));
    return reservation->reservation.run(stream);
  });
}
