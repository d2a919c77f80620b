// The header of a plan file and the layout of its parts, shared by reader and writer only.
#pragma once

#include "runtime/base/checked.h"
#include "runtime/plan/plan.h"

#include <bit>
#include <cstring>
#include <type_traits>

namespace cgc {

static_assert(std::endian::native == std::endian::little,
              "the header is read and written without byte swaps");

inline constexpr char kPlanMagic[8] = {'C', 'G', 'C', 'P', 'L', 'A', 'N', '\0'};
/// The value in the file that stands for an absent PlanData::precision or TrainingStep::autocast.
inline constexpr uint8_t kNoPrecision = 255;
inline constexpr uint64_t kMaxMetadataBytes = 64u << 20;

/// The feature bits that this runtime knows: bit i stands for records of alternative i of
/// LaunchRecord::op. A reader refuses a plan with other bits.
inline constexpr uint32_t kKnownFeatures =
    (1u << std::variant_size_v<decltype(LaunchRecord::op)>)-1;

/// The first bytes of a plan file. Offsets and sizes are in bytes.
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
  uint64_t weightsBytes; ///< Up to the end of the last weight, including padding between weights.
  uint64_t headerHash;   ///< xxhash64 of all bytes before this field.
};
static_assert(sizeof(PlanHeader) == 80 && std::is_trivially_copyable_v<PlanHeader>);

/// The feature bits of a plan's records.
inline uint32_t planFeatures(const PlanData &plan) {
  uint32_t features = 0;
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets)
      for (const LaunchRecord &record : bucket.records)
        features |= 1u << record.op.index();
  return features;
}

} // namespace cgc
