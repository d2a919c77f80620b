// .npy files: NumPy's array format, versions 1.0 to 3.0, little-endian.
#pragma once

#include "tools/cgc/io/tensors.h"

namespace cgc::tool {

/// Reads a whole array; Fortran order is transposed to row-major. InvalidFile names the file and
/// what is wrong with it: not an .npy file, truncated or overlong, big-endian, or of an element
/// type that cgc has not.
Result<HostTensor> readNpy(const std::string &path);

/// The bytes of an .npy file; bf16, which NumPy lacks, as float32.
std::vector<std::byte> formatNpy(const HostTensor &tensor);

} // namespace cgc::tool
