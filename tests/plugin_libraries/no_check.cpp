// An op library with an op that nothing checks.
#include "runtime/plan/op_library_abi.h"

extern "C" const CgcOpLibrary *cgcOpLibrary(void) {
  static const CgcOp ops[] = {{"test.unchecked", nullptr, nullptr, nullptr}};
  static const CgcOpLibrary library = {CGC_OP_LIBRARY_ABI, 1, ops};
  return &library;
}
