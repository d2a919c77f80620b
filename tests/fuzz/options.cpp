// What the sanitizers assume in every fuzz target; ASAN_OPTIONS and UBSAN_OPTIONS change it.

/// An allocation that fails is the caller's to handle. LibTorch keeps what it has built until the
/// process ends. The target `torchscript` replaces some forms of operator new and not the others.
extern "C" __attribute__((visibility("default"))) const char *__asan_default_options() {
  return "allocator_may_return_null=1:detect_leaks=0:alloc_dealloc_mismatch=0";
}

extern "C" __attribute__((visibility("default"))) const char *__ubsan_default_options() {
  return "print_stacktrace=1";
}
