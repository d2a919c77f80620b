// Sanitizer options for every fuzz target. ASAN_OPTIONS and UBSAN_OPTIONS override them.

/// A failed allocation returns null, because callers have to handle it. Leaks are not reported,
/// because LibTorch keeps its objects until the process ends. Mismatches of new and free are not
/// reported, because the target `torchscript` replaces only some forms of operator new. Fresh
/// memory is filled whole, so that LibTorch's temporaries have the same content in each run of a
/// plan.
extern "C" __attribute__((visibility("default"))) const char *__asan_default_options() {
  return "allocator_may_return_null=1:detect_leaks=0:alloc_dealloc_mismatch=0:"
         "max_malloc_fill_size=1073741824";
}

extern "C" __attribute__((visibility("default"))) const char *__ubsan_default_options() {
  return "print_stacktrace=1";
}
