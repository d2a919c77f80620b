// Tests of entry groups: inputs, outputs, weights, batches and branches of entries that are made of
// several methods, and groups that are refused.
#include "driver/add_buckets.h"
#include "driver/compile.h"

#include "ir/text/text.h"
#include "ir/verifier.h"
#include "runtime/plan/branches.h"
#include "runtime/plan/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::driver {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

/// A method of `depth` ops on %`input`, whose weight is @weight.
std::string tower(const std::string &name, const std::string &input, int depth = 10) {
  std::string text = "graph @" + name + "(%" + input + ": dynamic, %flag: dynamic = true) -> " +
                     "dynamic {\n%w = get_attr @weight : dynamic\n%0 = aten.mul(%" + input +
                     ", %w) : dynamic\n";
  for (int i = 0; i < depth; ++i)
    text += "%" + std::to_string(i + 1) + " = aten.neg(%" + std::to_string(i) + ") : dynamic\n";
  return text + "output %" + std::to_string(depth) + "\n}\n";
}

std::unique_ptr<ir::Module> towers() {
  ir::Diagnostics diagnostics;
  auto root = ir::parseModule("module @root class=\"Clip\" {\nparam @weight : f32[8]\n" +
                                  tower("encode_image", "image") + tower("encode_text", "text") +
                                  tower("encode_other_image", "image") + R"(
    graph @pair(%image: dynamic) -> (first: dynamic, second: dynamic) {
      %0 = aten.neg(%image) : dynamic
      output %0, %image
    }
  })",
                              "test.cgir", diagnostics);
  EXPECT_TRUE(root) << diagnostics.render();
  if (root) {
    const ir::Parameter &weight = root->parameters()[0];
    root->setParameterData(
        weight.name,
        ir::TensorData::copyOf(weight.type,
                               std::vector<std::byte>(weight.type.numBytes(), std::byte{1})));
  }
  return root;
}

CompileOptions optionsOf(std::vector<EntryGroup> groups, DeviceKind target = DeviceKind::Cuda) {
  CompileOptions options;
  options.inputs = {{"image", DType::F32, {3, 8}}, {"text", DType::F32, {3, 8}}};
  options.target = target;
  options.entryGroups = std::move(groups);
  return options;
}

Result<backend::CompiledPlan> compiled(const CompileOptions &options) {
  ir::Diagnostics diagnostics;
  auto plan = compile(*towers(), options, diagnostics);
  if (plan) {
    EXPECT_TRUE(validate(plan->plan).isOk()) << validate(plan->plan).message();
  }
  return plan;
}

std::vector<std::string> namesOf(const std::vector<IoTensor> &tensors) {
  std::vector<std::string> names;
  for (const IoTensor &tensor : tensors)
    names.push_back(tensor.name);
  return names;
}

const EntryGroup kClip{"clip", {"encode_image", "encode_text"}};

TEST(EntryGroups, AreOneEntryWithABranchForEachMember) {
  const auto plan = compiled(optionsOf({kClip}));
  ASSERT_TRUE(plan) << plan.status().message();
  ASSERT_EQ(plan->plan.entries.size(), 1u) << "nobody asked for the members";
  EXPECT_EQ(plan->plan.entries[0].name, "clip");
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  EXPECT_THAT(namesOf(bucket.inputs), ElementsAre("image", "text"));
  EXPECT_THAT(namesOf(bucket.outputs), ElementsAre("encode_image", "encode_text"));
  EXPECT_EQ(plan->plan.weights.size(), 1u) << "both members use one weight";
  EXPECT_THAT(parallelRegions(bucket.records),
              ElementsAre(ParallelRegion{0, bucket.records.size()}));
  EXPECT_EQ(largestBranch(bucket), 2u);
}

TEST(EntryGroups, OnACpuRunInOrder) {
  const auto plan = compiled(optionsOf({kClip}, DeviceKind::Cpu));
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  EXPECT_THAT(namesOf(bucket.outputs), ElementsAre("encode_image", "encode_text"));
  EXPECT_TRUE(parallelRegions(bucket.records).empty());
}

TEST(EntryGroups, AreCompiledBesideTheEntriesThatAreAskedFor) {
  CompileOptions options = optionsOf({kClip, {"both", {"encode_text", "pair"}}});
  options.entries = {"encode_text"};
  const auto plan = compiled(options);
  ASSERT_TRUE(plan) << plan.status().message();
  std::vector<std::string> entries;
  for (const Entry &entry : plan->plan.entries)
    entries.push_back(entry.name);
  EXPECT_THAT(entries, ElementsAre("encode_text", "clip", "both"));
  EXPECT_THAT(namesOf(plan->plan.entries[2].buckets[0].inputs), ElementsAre("text", "image"));
  EXPECT_THAT(namesOf(plan->plan.entries[2].buckets[0].outputs),
              ElementsAre("encode_text", "first", "second"));
  EXPECT_EQ(plan->plan.weights.size(), 1u);
}

TEST(EntryGroups, RowsAreIndependentIfThoseOfTheMembersAre) {
  CompileOptions options = optionsOf({kClip});
  options.batches = {1, 4};
  const auto plan = compiled(options);
  ASSERT_TRUE(plan) << plan.status().message();
  const Entry &entry = plan->plan.entries[0];
  EXPECT_TRUE(entry.rows.independent) << entry.rows.reason;
  ASSERT_EQ(entry.buckets.size(), 2u);
  for (const Bucket &bucket : entry.buckets)
    for (const auto *tensors : {&bucket.inputs, &bucket.outputs})
      for (const IoTensor &tensor : *tensors)
        EXPECT_EQ(tensor.batchDim, 0) << tensor.name;
}

TEST(EntryGroups, EqualNamesGetTheMembersNames) {
  CompileOptions options = optionsOf({{"images", {"encode_image", "encode_other_image", "pair"}}});
  EXPECT_THAT(compiled(options).status().message(),
              AllOf(HasSubstr("images(encode_image_image, encode_other_image_image, pair_image)"),
                    HasSubstr("has no type for encode_image_image")));
  for (const char *name : {"encode_image_image", "encode_other_image_image", "pair_image"})
    options.inputs.push_back({name, DType::F32, {3, 8}});
  const auto plan = compiled(options);
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_THAT(namesOf(plan->plan.entries[0].buckets[0].outputs),
              ElementsAre("encode_image", "encode_other_image", "first", "second"));
}

TEST(EntryGroups, CanBeAddedToAPlan) {
  CompileOptions options = optionsOf({});
  options.entries = {"encode_text"};
  auto first = compiled(options);
  const auto group = compiled(optionsOf({kClip}));
  ASSERT_TRUE(first && group);
  std::vector<std::vector<std::byte>> weights;
  for (const auto &weight : first->weights)
    weights.emplace_back(weight->bytes().begin(), weight->bytes().end());
  const Result<Plan> plan = Plan::fromMemory(first->plan, std::move(weights));
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  const auto extended = addBuckets(*plan, *group);
  ASSERT_TRUE(extended) << extended.status().message();
  ASSERT_EQ(extended->plan.entries.size(), 2u);
  EXPECT_EQ(extended->plan.weights.size(), 1u);
  EXPECT_EQ(extended->plan.entries[1].buckets[0].records,
            group->plan.entries[0].buckets[0].records);
}

TEST(EntryGroups, ThatDoNotFitTheModelAreRefused) {
  const auto refusal = [](std::vector<EntryGroup> groups) {
    const Status status = compiled(optionsOf(std::move(groups))).status();
    EXPECT_EQ(status.code(), Code::Usage);
    return status.message();
  };
  EXPECT_THAT(refusal({{"clip", {"encode_image", "encode_txt"}}}),
              AllOf(HasSubstr("entry group 'clip'"), HasSubstr("no method 'encode_txt'"),
                    HasSubstr("encode_text(text")));
  EXPECT_THAT(refusal({{"clip", {"encode_image"}}}), HasSubstr("needs two entries or more"));
  EXPECT_THAT(refusal({{"clip", {"pair", "pair"}}}), HasSubstr("it names 'pair' twice"));
  EXPECT_THAT(refusal({{"pair", {"encode_image", "encode_text"}}}),
              HasSubstr("the model has a method of this name"));
  EXPECT_THAT(refusal({kClip, kClip}), HasSubstr("two entry groups are called 'clip'"));
  EXPECT_THAT(refusal({kClip, {"more", {"clip", "pair"}}}), HasSubstr("no method 'clip'"));
  for (const char *name : {"", "two words", "1st", "a/b"})
    EXPECT_THAT(refusal({{name, {"encode_image", "encode_text"}}}), HasSubstr("its name has to be"))
        << name;
  CompileOptions options = optionsOf({kClip});
  options.inputs.pop_back();
  EXPECT_THAT(compiled(options).status().message(),
              HasSubstr("clip(image, text) has no type for text"));
}

} // namespace
} // namespace cgc::driver
