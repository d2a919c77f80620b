// Communicator: a cgc_communicator.
#include "communicator.h"

#include "raise.h"
#include "structures.h"

#include <cstring>

namespace nb = nanobind;

namespace cgc_python {

nb::bytes Communicator::makeId(const char *ncclPath) {
  cgc_communicator_id id;
  checkWithoutGil(
      [&](cgc_error **error) { return cgc_communicator_make_id(ncclPath, &id, error); });
  return nb::bytes(id.bytes, sizeof(id.bytes));
}

Communicator::Communicator(const nb::bytes &given, const nb::kwargs &options) {
  cgc_communicator_id id;
  if (given.size() != sizeof(id.bytes))
    raise(CGC_USAGE, "the id of a communicator has 128 bytes, not " + std::to_string(given.size()));
  std::memcpy(id.bytes, given.data(), sizeof(id.bytes));
  cgc_communicator_options converted = CGC_INIT(cgc_communicator_options);
  Options named(options);
  named.take("rank", converted.rank);
  named.take("ranks", converted.ranks);
  named.take("device", converted.device);
  named.take("nccl_path", converted.nccl_path);
  named.take("timeout_ms", converted.timeout_ms);
  named.finish();
  checkWithoutGil([&](cgc_error **error) {
    return cgc_communicator_create(&id, &converted, &communicator_, error);
  });
}

Communicator::~Communicator() {
  const nb::gil_scoped_release released;
  cgc_communicator_destroy(communicator_);
}

void Communicator::abort(const char *why) {
  cgc_communicator_abort(communicator_, why);
}

} // namespace cgc_python
