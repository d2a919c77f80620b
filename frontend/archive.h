// Archive: checks of a TorchScript file, a zip of records, that LibTorch omits.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace cgc::frontend {

/// Of all classes in a file. Each may need the next, which bounds the stack that LibTorch needs.
constexpr unsigned kMostMethods = 1u << 14;

/// Checks the zip `path` before LibTorch loads it. InvalidFile names a record with which the file
/// unpacks to far more bytes than it has, before anything is unpacked, or source whose parts
/// are too deep inside each other for LibTorch (runtime/script/source_depth.h). Otherwise it names
/// the first record whose bytes do not match its CRC-32, or the first record with fewer bytes than
/// a tensor in it needs: LibTorch trusts the lengths, sizes, strides and offsets of the pickle. May
/// throw LibTorch's exceptions.
Status checkArchive(const std::string &path);

} // namespace cgc::frontend
