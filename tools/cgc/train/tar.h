// Tar archives: lists the regular files of an archive in memory.
#pragma once

#include "runtime/base/status.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace cgc::tool {

/// A regular file of an archive, whose bytes it borrows.
struct TarMember {
  std::string name; ///< The path in the archive.
  std::span<const std::byte> bytes;
};

/// The regular files of an uncompressed archive, in its order: ustar with the extensions of pax and
/// GNU for long names. Other members are left out. `name` names the archive in messages.
/// InvalidFile if it is no archive, is cut short or damaged, or has a file that is sparse or larger
/// than 8 GiB.
Result<std::vector<TarMember>> readTar(std::span<const std::byte> archive, const std::string &name);

} // namespace cgc::tool
