// DamagedPlan: a fixture with a plan file that tests damage in place, optionally with matching
// checksums.
#pragma once

#include "runtime/plan/layout.h"
#include "runtime/plan/plan_file.h"
#include "tests/temp_folder.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

namespace cgc::test {

/// A plan file that tests damage in place, which is much faster than writing a new file for each
/// case.
class DamagedPlan : public testing::Test {
protected:
  void SetUp() override {
    const SamplePlan sample = undamaged();
    ASSERT_TRUE(writePlan(sample.plan, sample.weightSpans(), path_).isOk());
    good_ = readFile(path_);
    fd_ = ::open(path_.c_str(), O_RDWR);
    ASSERT_GE(fd_, 0);
  }
  ~DamagedPlan() override { ::close(fd_); }

  /// The plan in the file.
  virtual SamplePlan undamaged() const { return samplePlan(); }

  void poke(size_t offset, std::string_view bytes) {
    ASSERT_EQ(::pwrite(fd_, bytes.data(), bytes.size(), offset), ssize_t(bytes.size()));
  }
  void poke(size_t offset, unsigned char byte) {
    poke(offset, std::string_view(reinterpret_cast<const char *>(&byte), 1));
  }
  PlanHeader header() const {
    PlanHeader header;
    std::memcpy(&header, good_.data(), sizeof(header));
    return header;
  }
  static uint64_t hash(std::string_view bytes) {
    return hash64(std::as_bytes(std::span(bytes.data(), bytes.size())));
  }
  /// Writes `header` with a matching checksum.
  void pokeSealed(PlanHeader header) {
    const std::string_view bytes(reinterpret_cast<const char *>(&header), sizeof(header));
    header.headerHash = hash(bytes.substr(0, offsetof(PlanHeader, headerHash)));
    poke(0, bytes);
  }
  /// Writes other metadata of the same length, with a matching header.
  void pokeMetadata(const std::string &metadata) {
    PlanHeader sealed = header();
    sealed.metadataHash = hash(metadata);
    pokeSealed(sealed);
    poke(sealed.metadataOffset, metadata);
  }
  std::string metadata() const {
    return good_.substr(header().metadataOffset, header().metadataBytes);
  }
  Status load(Plan::Verify verify = Plan::Verify::Full) const {
    return Plan::load(path_, verify).status();
  }

  const TempFolder folder_;
  const std::string path_ = folder_ / "plan.cgplan";
  std::string good_;
  int fd_ = -1;
};

} // namespace cgc::test
