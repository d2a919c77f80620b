// The host as the device of the session tests.
#include "tests/test_device/test_device.h"

namespace cgc::test {

const DeviceKind kTestDevice = DeviceKind::Cpu;

Status doWork(void *, std::function<void()> work) {
  work();
  return Status::ok();
}

uint64_t deviceBytesInUse() {
  return 0;
}
size_t deviceHandlesInUse() {
  return 0;
}

} // namespace cgc::test
