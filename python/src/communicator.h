// Communicator: a cgc_communicator.
#pragma once

#include <cgc.h>
#include <nanobind/nanobind.h>

namespace cgc_python {

/// Every member releases the GIL while it waits for other ranks.
class Communicator final {
public:
  /// A new id. It is given to all ranks.
  static nanobind::bytes makeId(const char *ncclPath);

  /// `options` has members of cgc_communicator_options by name.
  Communicator(const nanobind::bytes &id, const nanobind::kwargs &options);
  Communicator(const Communicator &) = delete;
  Communicator &operator=(const Communicator &) = delete;
  ~Communicator();

  const cgc_communicator *get() const { return communicator_; }
  void abort(const char *why);

private:
  cgc_communicator *communicator_ = nullptr;
};

} // namespace cgc_python
