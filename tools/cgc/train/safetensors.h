// Safetensors files: lists the tensors of a file in memory.
#pragma once

#include "runtime/base/dtype.h"
#include "runtime/base/status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cgc::tool {

/// A dense, row-major tensor that borrows its bytes.
struct NamedArray {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
  std::span<const std::byte> bytes;
};

/// The tensors of a file of safetensors, in the order of its header. Those of dtypes that cgc does
/// not have are left out. `name` names the file in messages. InvalidFile if it is no such file, or
/// is cut short or damaged.
Result<std::vector<NamedArray>> parseSafetensors(std::span<const std::byte> file,
                                                 const std::string &name);

} // namespace cgc::tool
