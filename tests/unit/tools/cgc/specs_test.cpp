// Tests of specs: the syntax of --input, and the buckets that compile makes from it.
#include "tools/cgc/cli/specs.h"

#include "driver/buckets.h"

#include <gtest/gtest.h>

namespace cgc::tool {
namespace {

TEST(Specs, ParsesTypes) {
  const auto spec = parseInputSpec("image=bf16[1,3,224,224]");
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  EXPECT_EQ(spec->name, "image");
  EXPECT_EQ(spec->dtype, DType::BF16);
  EXPECT_EQ(spec->sizes, (std::vector<int64_t>{1, 3, 224, 224}));
  EXPECT_TRUE(parseInputSpec("scale=f32[]").isOk());
}

TEST(Specs, TakesTheNamesOfPyTorch) {
  const std::pair<const char *, DType> names[] = {
      {"float32", DType::F32}, {"float", DType::F32},     {"float16", DType::F16},
      {"half", DType::F16},    {"bfloat16", DType::BF16}, {"float64", DType::F64},
      {"double", DType::F64},  {"int64", DType::I64},     {"long", DType::I64},
      {"int32", DType::I32},   {"int", DType::I32},       {"int16", DType::I16},
      {"short", DType::I16},   {"int8", DType::I8},       {"uint8", DType::U8},
      {"bool", DType::Bool}};
  for (const auto &[name, dtype] : names) {
    const auto spec = parseInputSpec("x=" + std::string(name) + "[2,3]");
    ASSERT_TRUE(spec.isOk()) << spec.status().message();
    EXPECT_EQ(spec->dtype, dtype) << name;
    EXPECT_EQ(spec->sizes, (std::vector<int64_t>{2, 3}));
  }
}

TEST(Specs, RefusesMalformedTypes) {
  for (const char *text : {"float32",
                           "x=float32",
                           "x=float32[",
                           "x=float99[1]",
                           "",
                           "image",
                           "=f32[1]",
                           "image=",
                           "image=f32",
                           "image=[1]",
                           "image=f32[1",
                           "image=f32[1]x",
                           "image=f32[1][1]",
                           "image=f32[1]@cuda",
                           "image=f99[1]",
                           "image=f32[a]",
                           "image=f32[0]",
                           "image=f32[-1]",
                           "image=f32[1,,2]",
                           "image=f32[99999999999999999999]"}) {
    const auto spec = parseInputSpec(text);
    ASSERT_FALSE(spec.isOk()) << text;
    EXPECT_EQ(spec.status().code(), Code::Usage);
    EXPECT_NE(spec.status().message().find(text), std::string::npos);
  }
}

TEST(Specs, SizesAreConcrete) {
  for (const char *size : {"-1", "N", "?", "*", "batch_size"}) {
    const std::string first = "image=f32[" + std::string(size) + ",3]";
    const std::string message = parseInputSpec(first).status().message();
    EXPECT_NE(message.find("sizes are concrete; give a number instead of " + std::string(size)),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("--batch"), std::string::npos) << message;
    // --batch sets dimension 0 only.
    const std::string second = "image=f32[3, " + std::string(size) + " ]";
    const std::string other = parseInputSpec(second).status().message();
    EXPECT_NE(other.find("sizes are concrete"), std::string::npos) << other;
    EXPECT_EQ(other.find("--batch"), std::string::npos) << other;
  }
}

TEST(Specs, ABarePathIsMeantWithAnAt) {
  for (const char *path : {"bad.npy", "/dev/../etc/passwd"}) {
    const Status status = parseInputSource("text=" + std::string(path)).status();
    EXPECT_EQ(status.code(), Code::Usage);
    EXPECT_NE(status.message().find("did you mean text=@" + std::string(path) + "?"),
              std::string::npos)
        << status.message();
  }
  EXPECT_EQ(parseInputSource("text=random").status().message().find("did you mean"),
            std::string::npos);
}

TEST(Specs, ParsesSources) {
  const auto file = parseInputSource("x=@a=b.npy");
  ASSERT_TRUE(file.isOk());
  EXPECT_EQ(file->file, "a=b.npy");
  const auto random = parseInputSource("x=random:18446744073709551615");
  ASSERT_TRUE(random.isOk());
  EXPECT_EQ(random->seed, UINT64_MAX);
  for (const char *text : {"x", "x=@", "x=y.npy", "x=random", "x=random:", "x=random:-1",
                           "x=random:1x", "x=random:18446744073709551616"})
    EXPECT_FALSE(parseInputSource(text).isOk()) << text;
}

/// A root module with the methods of CLIP.
class Buckets : public testing::Test {
protected:
  Buckets() {
    add("forward", {"image", "text"});
    add("encode_image", {"image"});
    add("encode_text", {"text"});
  }
  void add(const char *name, std::initializer_list<const char *> inputs) {
    ir::Graph *graph = root.addGraph(std::make_unique<ir::Graph>(name));
    for (const char *input : inputs)
      graph->placeholder(input, ir::Type(), ir::Loc::unknown());
  }
  std::string describe(const std::vector<std::string> &inputs, const std::vector<int64_t> &batches,
                       const std::vector<std::string> &entries) {
    const auto specs = parseInputSpecs(inputs);
    const auto buckets = driver::chooseBuckets(root, *specs, batches, entries);
    if (!buckets.isOk())
      return buckets.status().message();
    std::string text;
    for (const driver::BucketSpec &bucket : *buckets) {
      text += bucket.entry;
      for (const InputSpec &input : bucket.inputs)
        text += " " + input.name + std::to_string(input.sizes[0]);
      text += "; ";
    }
    return text;
  }
  ir::Module root{"", "CLIP"};
};

TEST_F(Buckets, EntriesAreTheMethodsWhoseInputsAreGiven) {
  EXPECT_EQ(describe({"image=f32[1]"}, {}, {}), "encode_image image1; ");
  EXPECT_EQ(describe({"text=f32[2]", "image=f32[1]"}, {}, {}),
            "forward image1 text2; encode_image image1; encode_text text2; ");
}

TEST_F(Buckets, BatchesReplaceDimension0) {
  EXPECT_EQ(describe({"text=f32[2]"}, {4, 1}, {}), "encode_text text4; encode_text text1; ");
  EXPECT_NE(describe({"text=f32[]"}, {4}, {}).find("has none"), std::string::npos);
}

TEST_F(Buckets, ErrorsSayWhatTheModelHas) {
  EXPECT_NE(describe({"sound=f32[1]"}, {}, {}).find("'sound'; it has forward(image, text)"),
            std::string::npos);
  EXPECT_NE(describe({"text=f32[1]"}, {}, {"encode_sound"})
                .find("'encode_sound'; it has forward(image, text)"),
            std::string::npos);
  EXPECT_NE(describe({"text=f32[1]"}, {}, {"forward"}).find("no type for image"),
            std::string::npos);
  EXPECT_NE(describe({}, {}, {}).find("at least one method"), std::string::npos);
}

} // namespace
} // namespace cgc::tool
