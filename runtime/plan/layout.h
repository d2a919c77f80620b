// The fixed header of a plan file and where the parts lie: shared by reader and writer only.
#pragma once

#include "runtime/base/checked.h"
#include "runtime/plan/plan.h"

#include <bit>
#include <cstring>
#include <type_traits>

namespace cgc {

static_assert(std::endian::native == std::endian::little,
              "the header is read and written as it lies");

inline constexpr char kPlanMagic[8] = {'C', 'G', 'C', 'P', 'L', 'A', 'N', '\0'};
/// In the file: PlanData::precision is none.
inline constexpr uint8_t kNoPrecision = 255;
inline constexpr uint64_t kMaxMetadataBytes = 64u << 20;

/// What the plan's records need from a runtime: bit i is alternative i of LaunchRecord::op. A
/// reader refuses bits that it does not know.
inline constexpr uint32_t kKnownFeatures =
    (1u << std::variant_size_v<decltype(LaunchRecord::op)>)-1;

struct PlanHeader {
  char magic[8];
  uint32_t formatVersion;
  uint32_t headerBytes;
  uint32_t features;
  uint32_t kernelAbi;
  uint64_t fileBytes;
  uint64_t metadataOffset;
  uint64_t metadataBytes;
  uint64_t metadataHash;
  uint64_t weightsOffset;
  uint64_t weightsBytes; ///< To the end of the last weight, padding between weights included.
  uint64_t headerHash;   ///< Of all bytes before this field.
};
static_assert(sizeof(PlanHeader) == 80 && std::is_trivially_copyable_v<PlanHeader>);

/// The features of a plan's records.
inline uint32_t planFeatures(const PlanData &plan) {
  uint32_t features = 0;
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets)
      for (const LaunchRecord &record : bucket.records)
        features |= 1u << record.op.index();
  return features;
}

} // namespace cgc
