// PlanFile: a plan file taken apart into FlatBuffers objects, changed, and put together again with
// checksums that match: damage that reaches validation, binding and runs.
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

  /// Nothing if `bytes` are no plan file in form; meaning and checksums do not matter.
  static std::optional<PlanFile> parse(std::span<const uint8_t> bytes);
  /// Places the weights where a reader wants them, if they are few bytes, and seals. A weight's
  /// bytes are those of the region at its place, and zeros past its end.
  std::vector<uint8_t> write();
};

/// A file of this metadata and these weights, with a header that fits them. `features` as
/// planFeatures() says.
std::vector<uint8_t> sealedFile(std::span<const uint8_t> metadata,
                                std::span<const std::byte> weights, uint32_t features);

} // namespace cgc::fuzz
