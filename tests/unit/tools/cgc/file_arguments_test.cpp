// Tests of FileArguments: an input file is never an output file, whatever its name.
#include "tools/cgc/cli/file_arguments.h"

#include "tests/temp_folder.h"

#include "gmock/gmock.h"

namespace cgc::tool {
namespace {

using testing::HasSubstr;

class FileArgumentsTest : public testing::Test {
protected:
  void SetUp() override {
    test::writeFile(in_, "in");
    std::filesystem::create_symlink(in_, link_);
    std::filesystem::create_directory(folder_ / "dump");
  }

  test::TempFolder folder_;
  const std::string in_ = folder_ / "in", link_ = folder_ / "link", out_ = folder_ / "out",
                    dump_ = folder_ / "dump";
};

TEST_F(FileArgumentsTest, AnInputIsNotAnOutput) {
  for (const std::string &path : {in_, link_, folder_ / "dump/../in"}) {
    const Status status = FileArguments().writes("-o", path).reads({out_, in_}).check();
    EXPECT_EQ(status.code(), Code::Usage) << path;
    EXPECT_THAT(status.message(), HasSubstr("'" + path + "' would be overwritten"));
    EXPECT_THAT(status.message(), HasSubstr("for -o"));
  }
  EXPECT_TRUE(
      FileArguments().reads(in_).reads("").writes("-o", out_).writes("-x", "").check().isOk());
  EXPECT_EQ(folder_.list(), (std::vector<std::string>{"dump", "in", "link"}));
}

TEST_F(FileArgumentsTest, AReplacedFileIsNotAnotherInput) {
  EXPECT_TRUE(FileArguments().reads(in_).writes("-o", in_, in_).check().isOk());
  EXPECT_TRUE(FileArguments().reads(in_).writes("-o", link_, in_).check().isOk());
  EXPECT_FALSE(FileArguments().reads(in_).reads(link_).writes("-o", in_, in_).check().isOk());
  EXPECT_FALSE(FileArguments().reads(in_).writes("-o", in_, in_).writes("-x", in_).check().isOk());
}

TEST_F(FileArgumentsTest, TwoResultsAreTwoFiles) {
  const Status status = FileArguments().writes("-o", out_).writes("-x", dump_ + "/../out").check();
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_THAT(status.message(), HasSubstr("for -x"));
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dump_); // "new" has no part that exists.
  const Status relative = FileArguments().writes("-o", dump_ + "/new").writes("-x", "new").check();
  std::filesystem::current_path(before);
  EXPECT_EQ(relative.code(), Code::Usage);
}

TEST_F(FileArgumentsTest, AStreamTakesAnyNumberOfResults) {
  EXPECT_TRUE(FileArguments().writes("-o", "/dev/null").writes("-x", "/dev/null").check().isOk());
}

TEST_F(FileArgumentsTest, DumpsOverwriteNothing) {
  const std::string dumped = dump_ + "/01-cse.f.cgir";
  for (const std::string &path : {dumped, dump_ + "/123-a.dot", dump_}) {
    EXPECT_EQ(FileArguments().reads(path).dumpsTo(dump_).check().code(), Code::Usage) << path;
    EXPECT_EQ(FileArguments().writes("-o", path).dumpsTo(dump_).check().code(), Code::Usage);
  }
  EXPECT_TRUE(
      FileArguments().reads(in_).writes("-o", dump_ + "/a.cgir").dumpsTo(dump_).check().isOk());
  EXPECT_TRUE(FileArguments().reads(dumped).dumpsTo(folder_ / "other").check().isOk());
  for (const char *missing : {"new", "new/"})
    EXPECT_FALSE(FileArguments()
                     .reads(folder_ / "new/01-cse.f.dot")
                     .dumpsTo(folder_ / missing)
                     .check()
                     .isOk())
        << missing;
  std::filesystem::create_symlink(dumped, folder_ / "to_dump");
  test::writeFile(dumped, "");
  EXPECT_FALSE(FileArguments().reads(folder_ / "to_dump").dumpsTo(dump_).check().isOk());
  // A dump would replace the link.
  std::filesystem::create_symlink(in_, dump_ + "/02-cse.f.cgir");
  EXPECT_FALSE(FileArguments().reads(dump_ + "/02-cse.f.cgir").dumpsTo(dump_).check().isOk());
}

TEST_F(FileArgumentsTest, AnUnwritableFileFailsAtOnce) {
  EXPECT_EQ(FileArguments().writes("-o", folder_ / "no/out").check().code(), Code::Failed);
  EXPECT_EQ(FileArguments().writes("-o", "-").check().code(), Code::Usage);
}

} // namespace
} // namespace cgc::tool
