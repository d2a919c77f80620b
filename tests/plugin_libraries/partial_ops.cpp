// An op library whose ops run on one target only, and fail there.
#include "runtime/plan/op_library_abi.h"

namespace {

const char *anything(const CgcOpCall *) {
  return nullptr;
}
const char *launch(const CgcOpCall *, void *) {
  return "the launch failed";
}
const char *run(const CgcOpCall *) {
  return "the host gave up";
}

} // namespace

extern "C" const CgcOpLibrary *cgcOpLibrary(void) {
  static const CgcOp ops[] = {{"test.host", anything, nullptr, run},
                              {"test.device", anything, launch, nullptr}};
  static const CgcOpLibrary library = {CGC_OP_LIBRARY_ABI, 2, ops};
  return &library;
}
