// Archive: the checksums of a TorchScript file, which is a zip. LibTorch does not look at them.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace cgc::frontend {

/// Compares the bytes of every record of the zip `path` with their CRC-32. InvalidFile names the
/// first record that differs. May throw what LibTorch throws.
Status checkArchive(const std::string &path);

} // namespace cgc::frontend
