// Op libraries: calls on the host, and libraries that are refused before they are loaded.
#include "runtime/base/file.h"
#include "runtime/base/shared_library.h"
#include "runtime/exec/engine.h"
#include "runtime/plan/op_library.h"
#include "tests/op_library_files.h"
#include "tests/temp_folder.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <dlfcn.h>
#include <fstream>

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

Result<Engine> engineFor(const Plan &plan, std::vector<std::string> libraries) {
  EngineOptions options;
  options.opLibraries = std::move(libraries);
  return Engine::create(plan, options);
}

Plan planFor(const OpLibraryId &library, const std::string &op = "example.quick_gelu") {
  return *Plan::fromMemory(opLibraryPlan(DeviceKind::Cpu, library, op).plan, {});
}

/// The op names of a loaded library.
std::vector<std::string> opNames(void *library) {
  const auto entry = reinterpret_cast<decltype(&cgcOpLibrary)>(dlsym(library, "cgcOpLibrary"));
  std::vector<std::string> names;
  for (const CgcOp &op : std::span(entry()->ops, entry()->numOps))
    names.push_back(op.name);
  return names;
}

class OpLibraryTest : public testing::Test {
protected:
  void SetUp() override {
    auto library = OpLibrary::open(exampleOps());
    ASSERT_TRUE(library.isOk()) << library.status().message();
    id_ = (*library)->id();
  }

  OpLibraryId id_;
  const TempFolder folder_;
};

TEST_F(OpLibraryTest, APlanCallsAnOp) {
  const Plan plan = planFor(id_);
  const auto engine = engineFor(plan, {exampleOps()});
  ASSERT_TRUE(engine.isOk()) << engine.status().message();
  auto context = Context::create(*engine);
  ASSERT_TRUE(context.isOk()) << context.status().message();
  std::vector<float> x = {-3, -1, -0.5, 0, 0.25, 1, 2, 40}, y(8);
  const std::vector<int64_t> sizes = {2, 4};
  const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
  const TensorView out{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
  ASSERT_TRUE(context->run("main", {&in, 1}, {&out, 1}).isOk());
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(y[i], x[i] / (1 + std::exp(-1.702 * x[i])), 1e-6) << x[i];
}

TEST_F(OpLibraryTest, AMissingLibraryIsReportedWithNameHashAndOption) {
  const Plan plan = planFor(id_);
  const Status status = engineFor(plan, {}).status();
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("op library 'libcgc_test_ops.so'"),
                                      HasSubstr(hashText(id_.hash)), HasSubstr("--op-library")));
}

TEST_F(OpLibraryTest, AFileThatIsMissingIsNamedWithTheLibrary) {
  const std::string path = folder_ / "libcgc_test_ops.so";
  const Plan plan = planFor(id_);
  const Status status = engineFor(plan, {path}).status();
  EXPECT_EQ(status.code(), Code::Device);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("op library 'libcgc_test_ops.so'"),
                                      HasSubstr("given with --op-library"),
                                      HasSubstr("'" + path + "' does not exist")));
}

TEST_F(OpLibraryTest, ALibraryWithAnotherHashIsRefusedAndNotOpened) {
  const std::string path = folder_ / "libcgc_test_ops.so";
  std::ofstream(path) << "no library at all";
  const Plan plan = planFor(id_);
  const Status status = engineFor(plan, {path}).status();
  EXPECT_EQ(status.code(), Code::Usage);
  const std::string text = "no library at all";
  EXPECT_THAT(status.message(), AllOf(HasSubstr("'" + path + "', given with --op-library"),
                                      HasSubstr(hashText(hash64(std::as_bytes(std::span(text))))),
                                      HasSubstr(hashText(id_.hash))));
}

TEST_F(OpLibraryTest, LibrariesAreIdentifiedByTheirBytes) {
  const std::string path = folder_ / "renamed.so";
  std::filesystem::copy_file(exampleOps(), path);
  const Plan plan = planFor(id_);
  EXPECT_TRUE(engineFor(plan, {path}).isOk());
}

TEST_F(OpLibraryTest, AnUnknownOpIsNamed) {
  const Plan plan = planFor(id_, "example.slow_gelu");
  const auto engine = engineFor(plan, {exampleOps()});
  ASSERT_TRUE(engine.isOk());
  EXPECT_THAT(
      Context::create(*engine).status().message(),
      AllOf(HasSubstr("example.slow_gelu (model.py:12, mlp.act)"), HasSubstr("has no such op")));
}

TEST_F(OpLibraryTest, ARefusedCallFailsWhenThePlanIsLoaded) {
  SamplePlan sample = opLibraryPlan(DeviceKind::Cpu, id_, "example.quick_gelu");
  std::get<LibraryCall>(sample.plan.entries[0].buckets[0].records[0].op).ints = {1};
  const Plan plan = *Plan::fromMemory(sample.plan, {});
  const auto engine = engineFor(plan, {exampleOps()});
  ASSERT_TRUE(engine.isOk());
  EXPECT_THAT(Context::create(*engine).status().message(),
              HasSubstr("op 'example.quick_gelu' of 'libcgc_test_ops.so' refuses: it takes one"));
}

TEST_F(OpLibraryTest, AnErrorOfAnOpIsTheStatusOfTheRun) {
  const std::string path = builtLibrary("libcgc_test_partial_ops.so");
  const Plan plan = planFor((*OpLibrary::open(path))->id(), "test.host");
  const auto engine = engineFor(plan, {path});
  ASSERT_TRUE(engine.isOk());
  auto context = Context::create(*engine);
  ASSERT_TRUE(context.isOk()) << context.status().message();
  std::vector<float> x(8), y(8);
  const std::vector<int64_t> sizes = {2, 4};
  const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
  const TensorView out{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
  const Status status = context->run("main", {&in, 1}, {&out, 1});
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_THAT(status.message(),
              HasSubstr("libcgc_test_partial_ops.so.test.host (model.py:12, mlp.act): the host"));
}

TEST_F(OpLibraryTest, APlanWithoutOpLibrariesOpensNone) {
  const Plan plan = *Plan::fromMemory(samplePlan().plan, samplePlan().weights);
  EXPECT_THAT(engineFor(plan, {folder_ / "missing.so"}).status().message(),
              Not(HasSubstr("missing.so")));
}

TEST(OpLibraryFiles, TheHashedFileIsLoadedEvenIfItsPathWasReplaced) {
  const TempFolder folder;
  const std::string path = folder / "ops.so";
  const std::string first = builtLibrary("libcgc_test_partial_ops.so"), second = exampleOps();
  std::filesystem::copy_file(first, path);
  Result<LibraryFile> file = LibraryFile::open(path);
  ASSERT_TRUE(file.isOk()) << file.status().message();
  EXPECT_EQ(file->hash(), (*OpLibrary::open(first))->id().hash);
  std::filesystem::copy_file(second, folder / "other.so");
  std::filesystem::rename(folder / "other.so", path);
  const Result<void *> library = file->load();
  ASSERT_TRUE(library.isOk()) << library.status().message();
  EXPECT_THAT(opNames(*library), Contains("test.host"));
}

/// Descriptors of files that are opened and closed in turn have the same number.
TEST(OpLibraryFiles, EachFileIsItsOwnLibrary) {
  const TempFolder folder;
  for (const auto &[file, op] : {std::pair(builtLibrary("libcgc_test_partial_ops.so"), "test.host"),
                                 {exampleOps(), "example.quick_gelu"}}) {
    const std::string path = folder / "ops.so"; // A new file each time, not yet loaded.
    std::filesystem::remove(path);
    std::filesystem::copy_file(file, path);
    const auto library = OpLibrary::open(path);
    ASSERT_TRUE(library.isOk()) << library.status().message();
    EXPECT_TRUE((*library)->find(op)) << op;
    EXPECT_EQ((*OpLibrary::open(path))->find(op), (*library)->find(op));
  }
}

TEST(OpLibraryFiles, AFileThatIsNoOpLibraryIsNamed) {
  EXPECT_EQ(OpLibrary::open("/nonexistent/lib.so").status().code(), Code::InvalidFile);
  const TempFolder folder;
  const std::string text = folder / "text.so";
  std::ofstream(text) << "text";
  Status status = OpLibrary::open(text).status();
  EXPECT_EQ(status.code(), Code::InvalidFile);
  EXPECT_THAT(status.message(), HasSubstr("cannot load op library '" + text + "'"));
  const std::string whole = exampleOps(), cut = folder / "cut.so";
  for (const size_t size : {size_t(20), size_t(100), size_t(5000), size_t(20000)}) {
    std::filesystem::copy_file(whole, cut, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(cut, size);
    status = OpLibrary::open(cut).status();
    EXPECT_EQ(status.code(), Code::InvalidFile) << size;
    EXPECT_THAT(status.message(), HasSubstr("the file is cut short")) << size;
  }
  status = OpLibrary::open(builtLibrary("libcgc_test_no_plugin.so")).status();
  EXPECT_EQ(status.code(), Code::InvalidFile);
  EXPECT_THAT(status.message(), HasSubstr("is no op library: it does not define cgcOpLibrary"));
  status = OpLibrary::open(builtLibrary("libcgc_test_other_abi.so")).status();
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_THAT(status.message(), HasSubstr("has ABI 77, and this cgc takes ABI 1"));
  status = OpLibrary::open(builtLibrary("libcgc_test_no_check.so")).status();
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_THAT(status.message(), HasSubstr("op 0 has no name or no check function"));
}

} // namespace
} // namespace cgc::test
