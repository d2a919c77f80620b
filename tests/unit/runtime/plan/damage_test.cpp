// Damaged plans are refused: any changed byte, any length, other versions, and headers with
// matching checksums.
#include "tests/unit/runtime/damaged_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(DamagedPlan, AnyChangedByteIsDetected) {
  ASSERT_TRUE(load().isOk());
  for (size_t i = 0; i < good_.size(); ++i) {
    const unsigned char byte = good_[i];
    for (const int changed : {byte ^ 0x01, byte ^ 0x80, 0x00, 0xff, ~byte & 0xff}) {
      if (changed == byte)
        continue;
      poke(i, changed);
      const Status status = load();
      ASSERT_EQ(status.code(), Code::InvalidFile) << "byte " << i << " set to " << changed;
      ASSERT_THAT(status.message(), HasSubstr(path_));
    }
    poke(i, byte);
  }
  EXPECT_TRUE(load().isOk());
}

TEST_F(DamagedPlan, MetadataVerificationDetectsAnyByteBeforeTheWeights) {
  for (size_t i = 0; i < header().weightsOffset; ++i) {
    poke(i, static_cast<unsigned char>(good_[i]) ^ 0x10);
    ASSERT_EQ(load(Plan::Verify::Metadata).code(), Code::InvalidFile) << "byte " << i;
    poke(i, good_[i]);
  }
}

TEST_F(DamagedPlan, MetadataVerificationDoesNotReadWeights) {
  poke(good_.size() - 1, ~good_.back() & 0xff);
  EXPECT_FALSE(load().isOk());
  EXPECT_TRUE(load(Plan::Verify::Metadata).isOk());
}

TEST_F(DamagedPlan, AnyOtherLengthIsDetected) {
  for (size_t length = good_.size(); length-- > 0;) {
    ASSERT_EQ(::ftruncate(fd_, length), 0);
    for (const auto verify : {Plan::Verify::Full, Plan::Verify::Metadata})
      ASSERT_EQ(load(verify).code(), Code::InvalidFile) << "length " << length;
  }
  poke(0, good_);
  ASSERT_TRUE(load().isOk());
  poke(good_.size(), '\0');
  EXPECT_THAT(load().message(), HasSubstr("its header says " + std::to_string(good_.size())));
}

TEST_F(DamagedPlan, AnotherVersionIsRefusedByBothNumbers) {
  for (uint32_t version : {kPlanFormatVersion + 1, 0u, 77u}) {
    PlanHeader changed = header();
    changed.formatVersion = version;
    pokeSealed(changed);
    EXPECT_THAT(load().message(), AllOf(HasSubstr("version " + std::to_string(version)),
                                        HasSubstr("version " + std::to_string(kPlanFormatVersion)),
                                        HasSubstr("compile the model again")));
  }
}

TEST_F(DamagedPlan, UnknownFeaturesAndKernelConventionsAreRefused) {
  PlanHeader changed = header();
  changed.features |= 1u << 30;
  pokeSealed(changed);
  EXPECT_THAT(load().message(), HasSubstr("needs features that this cgc does not have"));
  changed = header();
  changed.kernelAbi = kKernelAbi + 1;
  pokeSealed(changed);
  EXPECT_THAT(load().message(), HasSubstr("kernel convention " + std::to_string(kKernelAbi + 1)));
  changed = header();
  changed.features ^= 1;
  pokeSealed(changed);
  EXPECT_THAT(load().message(), HasSubstr("not of the kinds that the header names"));
}

TEST_F(DamagedPlan, ASealedHeaderCannotPointElsewhere) {
  constexpr uint64_t kEdges[] = {0,
                                 1,
                                 79,
                                 81,
                                 0x7fffffff,
                                 0x80000000,
                                 0xffffffff,
                                 uint64_t(1) << 63,
                                 ~uint64_t(0),
                                 ~uint64_t(0) - 255};
  for (uint64_t PlanHeader::*field :
       {&PlanHeader::fileBytes, &PlanHeader::metadataOffset, &PlanHeader::metadataBytes,
        &PlanHeader::metadataHash, &PlanHeader::weightsOffset, &PlanHeader::weightsBytes})
    for (const uint64_t edge : kEdges) {
      PlanHeader changed = header();
      changed.*field = edge;
      if (edge == header().*field)
        continue;
      pokeSealed(changed);
      ASSERT_EQ(load().code(), Code::InvalidFile) << "value " << edge;
    }
}

/// A file with more bytes than its weights, whose header and checksums match it.
TEST_F(DamagedPlan, BytesAfterTheLastWeightAreRefused) {
  for (const uint64_t more : {uint64_t(1), kBufferAlignment}) {
    PlanHeader changed = header();
    changed.weightsBytes += more;
    changed.fileBytes += more;
    ASSERT_EQ(::ftruncate(fd_, off_t(changed.fileBytes)), 0);
    pokeSealed(changed);
    for (const auto verify : {Plan::Verify::Full, Plan::Verify::Metadata})
      EXPECT_THAT(load(verify).message(), HasSubstr("there are bytes after the last weight"));
  }
}

/// No 1 of the metadata means the same as a 2: neither AtenCall::writesOut nor an argument that is
/// a bool may be 2.
TEST_F(DamagedPlan, ABoolIsZeroOrOne) {
  SamplePlan sample = samplePlan();
  std::get<AtenCall>(sample.plan.entries[0].buckets[0].records[0].op).args.emplace_back(true);
  ASSERT_TRUE(writePlan(sample.plan, sample.weightSpans(), path_).isOk());
  good_ = readFile(path_);
  ::close(fd_);
  fd_ = ::open(path_.c_str(), O_RDWR);
  const Result<Plan> good = Plan::load(path_);
  ASSERT_TRUE(good.isOk()) << good.status().message();
  const std::string metadata = this->metadata();
  size_t malformed = 0;
  for (size_t i = 0; i < metadata.size(); ++i) {
    if (metadata[i] != 1)
      continue;
    std::string changed = metadata;
    changed[i] = 2;
    pokeMetadata(changed);
    const Result<Plan> plan = Plan::load(path_);
    if (plan.isOk())
      EXPECT_NE(plan->data(), good->data()) << "byte " << i;
    else
      malformed +=
          plan.status().message().find("a record or an argument is not") != std::string::npos;
  }
  EXPECT_GE(malformed, 3u) << "the bool, and writesOut of a record in each of two buckets";
}

/// The peak memory use of this process so far.
long peakKilobytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// In FlatBuffers any number of tables can share one vector. Here 2000 arguments share one vector
/// of 80 KB: a file of 200 KB would unpack into 160 MB.
TEST_F(DamagedPlan, ASmallFileCannotUnpackIntoMuchMemory) {
  constexpr int64_t kMark = 0x1234567812345678;
  SamplePlan sample = samplePlan();
  auto &args = std::get<AtenCall>(sample.plan.entries[0].buckets[0].records[0].op).args;
  args.assign(2000, std::vector<int64_t>{kMark});
  args[0] = std::vector<int64_t>(10'000, 7);
  ASSERT_TRUE(writePlan(sample.plan, sample.weightSpans(), path_).isOk());
  ASSERT_TRUE(load().isOk()) << load().message();

  std::string file = readFile(path_);
  PlanHeader changed;
  std::memcpy(&changed, file.data(), sizeof(changed));
  std::string metadata = file.substr(changed.metadataOffset, changed.metadataBytes);
  const auto word = [&](size_t at) {
    uint32_t value;
    std::memcpy(&value, metadata.data() + at, sizeof(value));
    return value;
  };
  // A vector is a length followed by its elements; a field stores the distance to the length.
  size_t longVector = 0, redirected = 0;
  while (word(longVector) != 10'000 || word(longVector + 4) != 7)
    longVector += 4;
  for (size_t field = 0; field < longVector; field += 4) {
    const size_t target = field + word(field);
    if (target + 12 > metadata.size() || word(target) != 1 ||
        std::memcmp(metadata.data() + target + 4, &kMark, sizeof(kMark)) != 0)
      continue;
    const auto distance = static_cast<uint32_t>(longVector - field);
    std::memcpy(metadata.data() + field, &distance, sizeof(distance));
    ++redirected;
  }
  ASSERT_EQ(redirected, 1999u);
  changed.metadataHash = hash(metadata);
  file.replace(changed.metadataOffset, metadata.size(), metadata);
  writeFile(path_, file);
  ::close(fd_);
  fd_ = ::open(path_.c_str(), O_RDWR);
  pokeSealed(changed);
  const long before = peakKilobytes();
  const Status status = load();
  EXPECT_EQ(status.code(), Code::InvalidFile);
  EXPECT_THAT(status.message(), HasSubstr("unpacks into too much memory"));
  EXPECT_LT(peakKilobytes() - before, 80'000);
}

TEST_F(DamagedPlan, OtherKindsOfFileAreNamed) {
  const std::pair<const char *, const char *> cases[] = {
      {"\x89PNG\r\n\x1a\n", "it is a PNG image, not a cgc plan"},
      {"hello", "it is a text file, not a cgc plan"},
      {"\1\2\3\4\5\6\7\xff", "it is not a cgc plan"}};
  for (const auto &[content, message] : cases) {
    writeFile(folder_ / "other", content);
    const Status status = Plan::load(folder_ / "other").status();
    EXPECT_EQ(status.code(), Code::InvalidFile);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(message), HasSubstr("cgc compile")));
  }
}

} // namespace
} // namespace cgc::test
