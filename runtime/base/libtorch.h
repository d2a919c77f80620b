// LibTorch at run time: how cgc's libraries find and load it.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace cgc {

/// The LibTorch version that cgc is built with. LibTorch's C++ API is not stable: libcgc_frontend
/// works with this version alone, and libcgc_aten with the version that it was built with itself
/// (runtime/exec/provider.h).
inline constexpr const char *kLibTorchVersion = "2.11.0";

/// The environment variable that names LibTorch's folder: the one that contains
/// lib/libtorch_cpu.so, or lib itself.
inline constexpr const char *kLibTorchVariable = "CGC_LIBTORCH";

/// Opens `path`, a cgc library that links LibTorch, with dlopen. The library is never closed.
/// LibTorch is taken from the first of these: the one that the process has already loaded, the
/// folder in CGC_LIBTORCH, the folder of `path`, the dynamic loader's search path
/// (LD_LIBRARY_PATH). Device if it cannot be opened; the message names the missing library, the
/// folders searched and the next step.
Result<void *> openWithLibTorch(const std::string &path);

/// The path of a library that the process has loaded; empty if it has not.
std::string loadedPath(const char *name);

/// The release, such as "2.15", of the LibTorch that the process has loaded or that CGC_LIBTORCH
/// names: from the files version.py or build-version in its folder. Empty if it is not known.
std::string libTorchRelease();

/// Opens libtorch_cuda.so with RTLD_GLOBAL, which registers LibTorch's CUDA kernels. Looks in the
/// folder of the library that contains `address`, a LibTorch function, then in the loader's search
/// path. Device with the cause if it is not found.
Result<void *> openLibTorchCuda(const void *address);

} // namespace cgc
