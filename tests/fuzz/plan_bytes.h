// PlanFile: a plan file unpacked into FlatBuffers objects, so that it can be edited and written
// with matching checksums. Such damage reaches validation, binding and runs.
#pragma once

#include <plan_generated.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cgc::fuzz {

struct PlanFile {
  fb::PlanT plan;
  std::vector<std::byte> weights; ///< The file's weights region.

  /// Unpacks a plan file; std::nullopt if it is malformed. Checksums and meaning are not checked.
  static std::optional<PlanFile> parse(std::span<const uint8_t> bytes);
  /// Writes the file with matching checksums. If the weights are small, places them where a reader
  /// expects them; a weight then keeps the bytes of the region at its place, with zeros past the
  /// region's end.
  std::vector<uint8_t> write();
};

/// A file of this metadata and these weights with a matching header. `features`: as planFeatures()
/// returns.
std::vector<uint8_t> sealedFile(std::span<const uint8_t> metadata,
                                std::span<const std::byte> weights, uint32_t features);

/// The plan of a file of an older format version, written in the present one, so that a regression
/// outlives the version in which it was found; std::nullopt for any other file.
std::optional<std::vector<uint8_t>> inPresentVersion(std::span<const uint8_t> bytes);

} // namespace cgc::fuzz
