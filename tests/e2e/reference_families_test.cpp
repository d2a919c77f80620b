// Plans for cuda of every OpenCLIP family, run by the reference executor, against LibTorch: every
// precision, with and without fused ops, for both architectures, at batch 1 and 3. `cgc compare`
// poisons the arena before each run, and all runs of a plan share it.
#include "families.h"

#include <algorithm>

namespace cgc::e2e {
namespace {

/// The OpenCLIP models of kFamilies.
std::vector<Family> openClipFamilies() {
  std::vector<Family> families(std::begin(kFamilies), std::end(kFamilies));
  families.resize(std::ranges::find(families, std::string("resnet50"), &Family::name) -
                  families.begin());
  return families;
}

class ReferenceFamilies : public FamilyTest {
protected:
  /// Compiles the small model for cuda with these arguments and compares the plan with LibTorch.
  void expectAgreement(const std::vector<std::string> &arguments) {
    SCOPED_TRACE(testing::PrintToString(arguments));
    const fs::path model = familyModels() / (name() + ".pt");
    std::vector<std::string> all = {"--target", "cuda"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    ASSERT_EQ(compile(model, all).status, 0);
    const Outcome compared =
        cgc({"compare", "plan.cgplan", model, "--executor", "reference", "--json"});
    const auto report = parseJson(compared, "compare");
    EXPECT_EQ(report["executor"], "reference");
    EXPECT_EQ(report["outputs"].size(), 2 * GetParam().outputs); // Each output for two batches.
    // The limit is a multiple of the error of LibTorch's own run. With ATEN_CPU_CAPABILITY=default,
    // that of CoCa in bf16 is 4 % smaller than with AVX2, and a plan may be past it.
    const bool limitVaries = name() == "coca_ViT-B-32" && std::ranges::count(arguments, "bf16") > 0;
    bool isPast = false;
    for (const auto &output : report["outputs"]) {
      isPast = isPast || !output["passed"].get<bool>();
      const double limit = output["limit"];
      EXPECT_LE(output["relative_l2"].get<double>(), (limitVaries ? 1.05 : 1) * limit) << output;
    }
    EXPECT_EQ(compared.status, limitVaries && isPast ? 5 : 0) << compared.err << compared.out;
  }
};

TEST_P(ReferenceFamilies, Fp16PlansAgreeWithLibTorch) {
  expectAgreement({"--precision", "fp16", "-O1", "--arch", "sm_90a"});
  expectAgreement({"--precision", "fp16", "-O0", "--arch", "sm_80"});
}

TEST_P(ReferenceFamilies, Bf16PlansAgreeWithLibTorch) {
  expectAgreement({"--precision", "bf16", "-O1", "--arch", "sm_80"});
  expectAgreement({"--precision", "bf16", "-O0", "--arch", "sm_90a"});
}

TEST_P(ReferenceFamilies, Fp32PlansAgreeWithLibTorch) {
  expectAgreement({"--precision", "fp32", "-O1", "--arch", "sm_90a"});
  expectAgreement({"--precision", "fp32", "-O0", "--arch", "sm_80"});
}

TEST_P(ReferenceFamilies, Tf32PlansAgreeWithLibTorch) {
  expectAgreement({"--precision", "tf32", "-O1", "--arch", "sm_80"});
  expectAgreement({"--precision", "tf32", "-O0", "--arch", "sm_90a"});
}

INSTANTIATE_TEST_SUITE_P(OpenClip, ReferenceFamilies, testing::ValuesIn(openClipFamilies()),
                         testName);

/// All combinations, for the model whose fused ops are all kernels of cgc.
class ReferenceViT : public ReferenceFamilies {};

TEST_P(ReferenceViT, AgreesWithLibTorchInEveryConfiguration) {
  for (const char *precision : {"fp16", "bf16", "fp32", "tf32"})
    for (const char *level : {"-O0", "-O1"})
      for (const char *arch : {"sm_80", "sm_90a"})
        expectAgreement({"--precision", precision, level, "--arch", arch});
}

INSTANTIATE_TEST_SUITE_P(OpenClip, ReferenceViT, testing::Values(kFamilies[0]), testName);

} // namespace
} // namespace cgc::e2e
