// Archive: checks of a TorchScript file, which is a zip of records, that LibTorch does not make.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace cgc::frontend {

/// Checks the zip `path` before LibTorch loads it. InvalidFile names the first record whose bytes
/// do not have its CRC-32, or the first record that has fewer bytes than a tensor in it takes:
/// LibTorch believes the lengths, sizes, strides and offsets of the pickle. May throw what LibTorch
/// throws.
Status checkArchive(const std::string &path);

} // namespace cgc::frontend
