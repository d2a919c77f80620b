// A plug-in and an op library for an interface that is not this cgc's.
#include "runtime/plan/op_library_abi.h"

namespace {
struct OtherPlugin {
  unsigned abi;
};
} // namespace

extern "C" [[gnu::visibility("default")]] const OtherPlugin *cgcPassPlugin() {
  static const OtherPlugin plugin = {77};
  return &plugin;
}

extern "C" const CgcOpLibrary *cgcOpLibrary(void) {
  static const CgcOpLibrary library = {77, 0, nullptr};
  return &library;
}
