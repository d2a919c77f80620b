// Tests of tar archives: members are listed, and damaged archives are rejected.
#include "tools/cgc/train/tar.h"

#include "data_files.h"

#include <gtest/gtest.h>

namespace cgc::tool {
namespace {

Result<std::vector<TarMember>> read(const std::string &archive) {
  return readTar(std::as_bytes(std::span(archive)), "x.tar");
}

void refuses(const std::string &archive, const std::string &text) {
  const auto members = read(archive);
  ASSERT_FALSE(members.isOk());
  EXPECT_EQ(members.status().code(), Code::InvalidFile);
  EXPECT_NE(members.status().message().find(text), std::string::npos) << members.status().message();
}

/// "name=content" for each member.
std::vector<std::string> list(const std::string &archive) {
  const auto members = read(archive);
  EXPECT_TRUE(members.isOk()) << members.status().message();
  std::vector<std::string> all;
  if (members.isOk())
    for (const TarMember &member : *members)
      all.push_back(
          member.name + "=" +
          std::string(reinterpret_cast<const char *>(member.bytes.data()), member.bytes.size()));
  return all;
}

TEST(Tar, ListsRegularFilesInOrder) {
  const std::string archive = tarMember("folder/", "", '5') + tarMember("b.npy", "second") +
                              tarMember("a.npy", std::string(513, 'x')) + tarMember("empty", "") +
                              tarMember("link", "", '2') + kTarEnd;
  EXPECT_EQ(list(archive),
            (std::vector<std::string>{"b.npy=second", "a.npy=" + std::string(513, 'x'), "empty="}));
}

TEST(Tar, ReadsLongNamesOfPaxAndGnu) {
  const std::string name(150, 'n');
  const std::string record = "160 path=" + name + "\n";
  ASSERT_EQ(record.size(), 160u);
  EXPECT_EQ(list(tarMember("pax", "20 mtime=1234567.89\n" + record, 'x') + tarMember("cut", "1") +
                 tarMember("next", "2") + tarMember("long", name + '\0', 'L') +
                 tarMember("cut", "3") + kTarEnd),
            (std::vector<std::string>{name + "=1", "next=2", name + "=3"}));
}

TEST(Tar, JoinsThePrefixOfUstar) {
  std::string member = tarMember("a.npy", "1");
  // The checksum is that of the header with its prefix.
  std::string other = member;
  other.replace(345, 6, "folder");
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i)
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(other[i]);
  char text[8];
  std::snprintf(text, sizeof(text), "%06o", sum);
  other.replace(148, 7, std::string(text, 7));
  EXPECT_EQ(list(other + kTarEnd), std::vector<std::string>{"folder/a.npy=1"});
}

TEST(Tar, RefusesOtherFiles) {
  refuses("", "is not a tar archive");
  refuses("text", "is not a tar archive");
  refuses(std::string(2000, 'x'), "is not a tar archive, or compressed");
}

TEST(Tar, RefusesDamage) {
  const std::string archive = tarMember("a.npy", std::string(600, 'x')) + tarMember("b.npy", "y");
  refuses(archive, "is cut short: it has no end");
  refuses(archive.substr(0, 1000), "'a.npy' needs 600 bytes, there are 488");
  std::string damaged = archive + kTarEnd;
  damaged[512 + 1024] = 'c'; // The first letter of the second member.
  refuses(damaged, "is damaged at byte 1536");
}

} // namespace
} // namespace cgc::tool
