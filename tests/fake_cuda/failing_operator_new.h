// Replaces operator new of a test program by one that fails on demand (failing_allocations.h).
// Include it in one source of the program.
#pragma once

#include "tests/fake_cuda/failing_allocations.h"
#include "tests/fake_cuda/fake_cuda.h"

#include <cstdlib>
#include <new>

thread_local long allocationsLeft = -1;

[[gnu::noinline]] void *operator new(size_t bytes) {
  if (allocationsLeft >= 0 && !cgc::test::fake_cuda::isInCall()) {
    --allocationsLeft; // Below 0 after the last one: what handles the failure may allocate.
    if (allocationsLeft < 0)
      throw std::bad_alloc();
  }
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}
// Who asks for memory this way does without it.
[[gnu::noinline]] void *operator new(size_t bytes, const std::nothrow_t &) noexcept {
  return std::malloc(bytes ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void *memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void *memory, size_t) noexcept {
  std::free(memory);
}
