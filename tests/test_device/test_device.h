// The device of a session test: the host, or the fake GPU. The same tests are built into one
// program for each.
#pragma once

#include "runtime/base/dtype.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <functional>

namespace cgc::test {

/// The target of the plans that the tests serve.
extern const DeviceKind kTestDevice;

/// Does the work of a record: at once on the host, on `stream` on a GPU.
Status doWork(void *stream, std::function<void()> work);

/// Bytes that are allocated on the device, and handles of it that exist. 0 on the host.
uint64_t deviceBytesInUse();
size_t deviceHandlesInUse();

} // namespace cgc::test
