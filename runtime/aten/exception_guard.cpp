// guarded(): converts exceptions to Status.
#include "runtime/aten/exception_guard.h"

#include <c10/util/Exception.h>

#include <new>

namespace cgc::aten {

Status guarded(const std::function<Status()> &body) {
  try {
    return body();
  } catch (const c10::OutOfMemoryError &e) {
    return {Code::OutOfMemory, e.what_without_backtrace()};
  } catch (const c10::AcceleratorError &e) {
    return {Code::Device, e.what_without_backtrace()};
  } catch (const c10::Error &e) {
    return {Code::Failed, e.what_without_backtrace()};
  } catch (const std::bad_alloc &) {
    return {Code::OutOfMemory, "no host memory left"};
  } catch (const std::exception &e) {
    return {Code::Failed, e.what()};
  }
}

} // namespace cgc::aten
