// LibTorch at run time: where the libraries of cgc that link it find it.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace cgc {

/// The version that cgc is built with. Another one is refused or does not load: LibTorch's C++ API
/// is not stable.
inline constexpr const char *kLibTorchVersion = "2.11.0";

/// The environment variable that names LibTorch's folder: the one with lib/libtorch_cpu.so, or lib
/// itself.
inline constexpr const char *kLibTorchVariable = "CGC_LIBTORCH";

/// dlopen of `path`, a library of cgc that links LibTorch; it is never closed. The LibTorch that
/// the process has already loaded is used; else that of CGC_LIBTORCH, if it is set; else the one
/// beside `path`; else the one that the loader finds (LD_LIBRARY_PATH). Device, with the library
/// that is missing, these places and what to do, if it cannot be opened.
Result<void *> openWithLibTorch(const std::string &path);

/// Opens libtorch_cuda.so for the whole process, which registers LibTorch's CUDA kernels: beside
/// the LibTorch that `address`, a function of it, belongs to, else where the loader finds it.
/// Device with the cause if there is none.
Result<void *> openLibTorchCuda(const void *address);

} // namespace cgc
