// .npy files: reads and writes NumPy's array format, versions 1.0 to 3.0, little-endian.
#pragma once

#include "tools/cgc/io/tensors.h"

namespace cgc::tool {

/// Reads a whole array. An array in Fortran order is transposed to row-major. InvalidFile, naming
/// the file and the problem, if it is not an .npy file, is truncated or overlong, is big-endian, or
/// has an element type that cgc does not have.
Result<HostTensor> readNpy(const std::string &path);

/// The bytes of an .npy file that holds `tensor`. bf16, which NumPy lacks, becomes float32.
std::vector<std::byte> formatNpy(const HostTensor &tensor);

} // namespace cgc::tool
