// A plug-in and an op library for an interface that is not this cgc's.
#include "runtime/plan/op_library_abi.h"

namespace {
struct OtherPlugin {
  unsigned abi;
  const char *name;
  void (*registerIn)(void *);
};
} // namespace

extern "C" [[gnu::visibility("default")]] OtherPlugin cgcPassPlugin() {
  return {77, nullptr, nullptr};
}

extern "C" const CgcOpLibrary *cgcOpLibrary(void) {
  static const CgcOpLibrary library = {77, 0, nullptr};
  return &library;
}
