// .npy files: reads and writes NumPy's array format, versions 1.0 to 3.0, little-endian.
#pragma once

#include "tools/cgc/io/tensors.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace cgc::tool {

/// An array in the bytes of an .npy file, from which it borrows.
struct NpyArray {
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
  bool isFortran = false; ///< The elements are column-major.
  std::span<const std::byte> data;
};

/// Whether the bytes begin as an .npy file does.
bool isNpy(std::span<const std::byte> file);

/// Parses the bytes of an .npy file, which messages call `name`. InvalidFile as readNpy().
Result<NpyArray> parseNpy(std::span<const std::byte> file, const std::string &name);

/// Reads a whole array. An array in Fortran order is transposed to row-major. InvalidFile, naming
/// the file and the problem, if it is not an .npy file, is truncated or overlong, is big-endian, or
/// has an element type that cgc does not have.
Result<HostTensor> readNpy(const std::string &path);

/// The bytes of an .npy file that holds `tensor`. bf16, which NumPy lacks, becomes float32.
std::vector<std::byte> formatNpy(const HostTensor &tensor);

} // namespace cgc::tool
