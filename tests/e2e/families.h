// Families: the models of docs/supported-models.md, and what tests leave for
// scripts/supported_models.py, which writes that file.
#pragma once

#include "tool.h"

namespace cgc::e2e {

struct Family {
  const char *name; ///< As in make_families.py.
  size_t outputs;   ///< Of all methods together.
  bool isScripted;  ///< Whether a test compiles what torch.jit.script makes of it, too.
};

/// OpenCLIP's have the towers' features, and all outputs of forward.
inline constexpr Family kFamilies[] = {{"ViT-B-32", 5, true},      {"ViT-B-32-quickgelu", 5, false},
                                       {"ViT-L-14", 5, false},     {"ViT-H-14", 5, false},
                                       {"RN50", 5, true},          {"coca_ViT-B-32", 7, true},
                                       {"convnext_base", 5, true}, {"ViT-B-16-SigLIP", 6, false},
                                       {"EVA02-B-16", 5, false},   {"MobileCLIP-S1", 5, false},
                                       {"ViTamin-B", 5, false},    {"roberta-ViT-B-32", 5, false},
                                       {"resnet50", 1, false},     {"vit_b_16", 1, false},
                                       {"swin_t", 1, false},       {"bert", 2, false}};

std::string testName(const testing::TestParamInfo<Family> &info);

/// A test of one family.
class FamilyTest : public ToolTest, public testing::WithParamInterface<Family> {
protected:
  void TearDown() override { fs::remove_all(folder); } // Models are large.

  std::string name() const { return GetParam().name; }
  /// Exports the model in real size into the test's folder; `name` may end in `.scripted`.
  fs::path makeReal(const std::string &name);
  /// Compiles for batches 1 and 3 with these further arguments.
  Outcome compile(const fs::path &model, const std::vector<std::string> &more);
  /// Compiles for target cpu and compares with LibTorch's runs of the `references`. The largest
  /// relative L2 goes into the results as `column`.
  void expectAgreement(const fs::path &model, const std::vector<fs::path> &references,
                       const std::string &column, std::vector<std::string> more);
};

} // namespace cgc::e2e
