// Reservation: a context of a session that one caller keeps, to write inputs and read outputs where
// they are.
#pragma once

#include "runtime/base/export.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"

#include <cstddef>
#include <memory>
#include <optional>

namespace cgc {

/// One context of a session and one of its buckets, from Session::reserve() until it is destroyed,
/// which gives the context back. One thread at a time may use it; it must not outlive the session.
///
/// The session's update(), swapWeights() and reset() do not wait for it: it goes on with the plan
/// of its creation, whose memory is freed when it is destroyed.
class CGC_API Reservation final {
public:
  Reservation(Reservation &&) noexcept;
  Reservation &operator=(Reservation &&) noexcept;
  ~Reservation();

  /// The memory of an input or output, with as many rows as were reserved: device memory, or host
  /// memory if the plan runs on the host. Valid as long as the reservation. Write an input after
  /// the last run; read an output before the next one and before the reservation is destroyed.
  /// Usage if there is no such tensor.
  Result<TensorView> inputBuffer(size_t index) const;
  Result<TensorView> outputBuffer(size_t index) const;

  /// The index of the GPU; nothing if the plan runs on the host.
  std::optional<int> device() const;

  /// Runs the entry on what the input buffers hold. Rows of the bucket behind those reserved are
  /// zeros. Copies nothing. `stream`, of the reservation's GPU, and the errors are those of
  /// Session::run(); a stream that is being captured is refused with Usage.
  Status run(void *stream = nullptr);

  struct Impl; ///< session_impl.h, which is not installed.

private:
  friend class Session;
  explicit Reservation(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace cgc
