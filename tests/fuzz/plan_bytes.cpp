// PlanFile: unpacks plan files without validation and writes them with matching checksums.
#include "tests/fuzz/plan_bytes.h"

#include "runtime/base/file.h"
#include "runtime/plan/layout.h"

namespace cgc::fuzz {
namespace {

/// Limit on the weights in bytes. Weights beyond it keep their old offset and checksum, which no
/// longer match.
constexpr uint64_t kMaxWeightBytes = 1 << 20;

void append(std::vector<uint8_t> &file, const void *data, size_t size) {
  const auto *bytes = static_cast<const uint8_t *>(data);
  file.insert(file.end(), bytes, bytes + size);
}

uint32_t featuresOf(const fb::PlanT &plan) {
  uint32_t features = 0;
  for (const auto &entry : plan.entries)
    for (const auto &bucket : entry->buckets)
      for (const auto &record : bucket->records)
        features |= 1u << (record->kind % 32);
  return features;
}

/// The weights region with every weight at its place. Sets offsets and checksums in `plan`.
std::vector<std::byte> placeWeights(fb::PlanT &plan, const std::vector<std::byte> &region) {
  std::vector<std::byte> placed;
  for (const auto &weight : plan.weights) {
    const auto bytes = weight->dtype < kNumDTypes ? tensorBytes(DType(weight->dtype), weight->sizes)
                                                  : std::nullopt;
    if (!bytes || *bytes > kMaxWeightBytes || placed.size() + *bytes > kMaxWeightBytes)
      return region;
    const uint64_t begin = *alignUp(placed.size(), kBufferAlignment);
    placed.resize(begin + *bytes);
    if (begin < region.size())
      std::copy_n(region.begin() + begin, std::min<uint64_t>(*bytes, region.size() - begin),
                  placed.begin() + begin);
    weight->file_offset = begin;
    weight->hash = hash64(std::span(placed).subspan(begin));
  }
  return placed;
}

} // namespace

std::optional<PlanFile> PlanFile::parse(std::span<const uint8_t> bytes) {
  PlanHeader header;
  if (bytes.size() < sizeof(header))
    return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.metadataOffset != sizeof(header) ||
      !rangeInside(header.metadataOffset, header.metadataBytes, bytes.size()) ||
      header.weightsOffset > bytes.size())
    return std::nullopt;
  const auto metadata = bytes.subspan(header.metadataOffset, header.metadataBytes);
  flatbuffers::Verifier verifier(metadata.data(), metadata.size(), /*max_depth=*/16,
                                 /*max_tables=*/1u << 12);
  if (!verifier.VerifyBuffer<fb::Plan>(nullptr))
    return std::nullopt;
  PlanFile file;
  fb::GetPlan(metadata.data())->UnPackTo(&file.plan);
  const auto weights = std::as_bytes(bytes.subspan(header.weightsOffset));
  file.weights.assign(weights.begin(), weights.end());
  return file;
}

std::vector<uint8_t> PlanFile::write() {
  weights = placeWeights(plan, weights);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::Plan::Pack(builder, &plan));
  return sealedFile({builder.GetBufferPointer(), builder.GetSize()}, weights, featuresOf(plan));
}

std::vector<uint8_t> sealedFile(std::span<const uint8_t> metadata,
                                std::span<const std::byte> weights, uint32_t features) {
  PlanHeader header{};
  std::memcpy(header.magic, kPlanMagic, sizeof(kPlanMagic));
  header.formatVersion = kPlanFormatVersion;
  header.headerBytes = sizeof(header);
  header.features = features;
  header.kernelAbi = kKernelAbi;
  header.metadataOffset = sizeof(header);
  header.metadataBytes = metadata.size();
  header.metadataHash = hash64(std::as_bytes(metadata));
  header.weightsOffset = *alignUp(sizeof(header) + metadata.size(), kBufferAlignment);
  header.weightsBytes = weights.size();
  header.fileBytes = header.weightsOffset + header.weightsBytes;
  header.headerHash =
      hash64(std::as_bytes(std::span(&header, 1)).first(offsetof(PlanHeader, headerHash)));
  std::vector<uint8_t> file;
  append(file, &header, sizeof(header));
  append(file, metadata.data(), metadata.size());
  file.resize(header.weightsOffset);
  append(file, weights.data(), weights.size());
  return file;
}

std::optional<std::vector<uint8_t>> inPresentVersion(std::span<const uint8_t> bytes) {
  PlanHeader header;
  if (bytes.size() < sizeof(header))
    return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.magic, kPlanMagic, sizeof(kPlanMagic)) != 0 ||
      header.formatVersion >= kPlanFormatVersion)
    return std::nullopt;
  std::optional<PlanFile> file = PlanFile::parse(bytes);
  return file ? std::optional(file->write()) : std::nullopt;
}

} // namespace cgc::fuzz
