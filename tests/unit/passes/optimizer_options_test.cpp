// Optimizer options: their text form.
#include "passes/manager/pass_list.h"
#include "passes/train/optimizer_options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cgc::passes {
namespace {

/// The text of the optimizer that `text` describes.
std::string again(const std::string &text) {
  const auto list = parsePassList("optimize{" + text + "}");
  EXPECT_TRUE(list) << list.status().message();
  PassOptions options("optimize", list->front().options);
  const auto optimizer = takeOptimizer(options);
  EXPECT_TRUE(optimizer) << optimizer.status().message();
  return toString(PassEntry{"optimize", toOptions(*optimizer)});
}

TEST(OptimizerOptions, KeepEachValueInText) {
  for (const std::string text :
       {"rule=sgd,lr=0.3,weight-decay=0.01,momentum=0.9,dampening=0.1",
        "rule=sgd,lr=0.3,momentum=0.9,nesterov=true,keep-gradients=true,copies=false",
        "rule=adam,lr=0,beta1=0.8,beta2=0.98,eps=1e-06,clip-norm=1.5,clip-value=0.25,ema=0.999",
        "rule=adamw,lr=0.001,weight-decay=0,groups=a.*|@vectors:weight_decay=0;b:lr_scale=0.1",
        "rule=sgd,lr=0.001,groups=c:weight_decay=0.5:lr_scale=2;d:lr_scale=1",
        "rule=sgd,lr=0.001,warmup=10,steps=100,final-factor=0.1,schedule=cosine",
        "rule=sgd,lr=0.001,step-size=30,step-factor=0.5,schedule=step,growth-interval=7",
        "rule=sgd,lr=0.001,clamp=scale=-1:4.6052;bias=0:1"})
    EXPECT_EQ(again(text), "optimize{" + text + "}");
}

TEST(OptimizerOptions, LeaveOutWhatIsAsInPyTorch) {
  EXPECT_EQ(again("rule=adamw,weight-decay=1e-2,beta1=0.9,eps=1e-8,schedule=constant"),
            "optimize{rule=adamw,lr=0.001}");
  EXPECT_EQ(again("rule=adam,weight-decay=1e-2"), "optimize{rule=adam,lr=0.001,weight-decay=0.01}");
}

TEST(OptimizerOptions, RefuseSettingsThatGroupsDoNotHave) {
  const auto list = parsePassList("optimize{lr=0.1,groups=a:momentum=0.9}");
  ASSERT_TRUE(list) << list.status().message();
  PassOptions options("optimize", list->front().options);
  const auto optimizer = takeOptimizer(options);
  EXPECT_EQ(optimizer.status().code(), Code::Usage);
  EXPECT_THAT(optimizer.status().message(),
              testing::HasSubstr("for each group weight_decay and lr_scale"));
}

} // namespace
} // namespace cgc::passes
