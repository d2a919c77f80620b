// Zip: entries and their fields, with and without zip64, and damaged archives.
#include "runtime/base/zip.h"

#include <gtest/gtest.h>

#include <string>

namespace cgc::test {
namespace {

using namespace std::literals;

std::string little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i)
    out += static_cast<char>(value >> (8 * i));
  return out;
}

/// An archive with one entry 'a/x' of the bytes "hello". `large`: with zip64 fields, behind
/// `field`.
std::string archive(bool large, uint16_t method = 0, uint64_t size = 5,
                    const std::string &field = "") {
  std::string zip = "junk"s + "PK\3\4" + std::string(22, '\0') + little(3, 2) + little(2, 2) +
                    "a/x" + "??" + "hello";
  const size_t directoryAt = zip.size();
  const std::string number = "\xff\xff\xff\xff";
  const std::string extra =
      field +
      (large ? little(1, 2) + little(24, 2) + little(size, 8) + little(5, 8) + little(4, 8) : "");
  std::string entry = "PK\1\2" + std::string(6, '\0') + little(method, 2) + std::string(4, '\0') +
                      little(0x1234, 4) + (large ? number : little(5, 4)) +
                      (large ? number : little(size, 4)) + little(3, 2) + little(extra.size(), 2) +
                      std::string(10, '\0') + (large ? number : little(4, 4)) + "a/x" + extra;
  return zip + entry + "PK\5\6" + std::string(8, '\0') + little(entry.size(), 4) +
         little(directoryAt, 4) + little(7, 2) + "comment";
}

std::span<const std::byte> bytesOf(const std::string &text) {
  return std::as_bytes(std::span(text));
}

TEST(Zip, GivesEntriesAndStoredBytes) {
  for (bool large : {false, true}) {
    const std::string zip = archive(large);
    const auto entries = zipEntries(bytesOf(zip));
    ASSERT_TRUE(entries);
    ASSERT_EQ(entries->size(), 1u);
    const ZipEntry &entry = entries->front();
    EXPECT_EQ(entry.name, "a/x");
    EXPECT_TRUE(entry.isStored);
    EXPECT_EQ(entry.crc, 0x1234u);
    EXPECT_EQ(entry.header, 4u);
    const auto stored = storedBytes(bytesOf(zip), entry);
    ASSERT_TRUE(stored);
    EXPECT_EQ(std::string_view(reinterpret_cast<const char *>(stored->data()), stored->size()),
              "hello");
  }
  EXPECT_FALSE(zipEntries(bytesOf(archive(false, 8)))->front().isStored);
}

/// PyTorch pads entries with a field of its own.
TEST(Zip, OnlyNumbersThatAreTooLargeAreInZip64Fields) {
  const std::string number = "\xff\xff\xff\xff", field = little(1, 2) + little(8, 2) + little(5, 8);
  std::string zip = archive(false, 0, 5, field);
  zip.replace(zip.find("PK\1\2") + 24, 4, number);
  const auto entries = zipEntries(bytesOf(zip));
  ASSERT_TRUE(entries);
  EXPECT_EQ(entries->front().size, 5u);
  EXPECT_EQ(entries->front().header, 4u);
  zip.replace(zip.find("PK\1\2") + 42, 4, number); // The field has one number.
  EXPECT_FALSE(zipEntries(bytesOf(zip)));
}

TEST(Zip, Zip64FieldsMayLieBehindOthers) {
  const auto entries = zipEntries(bytesOf(archive(true, 0, 5, little(0x4246, 2) + "\3\0abc"s)));
  ASSERT_TRUE(entries);
  EXPECT_EQ(entries->front().size, 5u);
  EXPECT_EQ(entries->front().header, 4u);
}

TEST(Zip, DamagedArchivesHaveNoEntries) {
  const std::string zip = archive(true);
  EXPECT_FALSE(zipEntries({}));
  EXPECT_FALSE(zipEntries(bytesOf(zip.substr(0, zip.find("PK\5\6")))));
  std::string cut = zip; // The directory offset is one too large.
  cut.replace(cut.find("PK\5\6") + 16, 4, little(cut.find("PK\1\2") + 1, 4));
  EXPECT_FALSE(zipEntries(bytesOf(cut)));
  for (const std::string &tooLong : {archive(false, 0, 500), archive(true, 0, UINT64_MAX)}) {
    const auto entries = zipEntries(bytesOf(tooLong));
    ASSERT_TRUE(entries);
    EXPECT_FALSE(storedBytes(bytesOf(tooLong), entries->front()));
  }
}

} // namespace
} // namespace cgc::test
