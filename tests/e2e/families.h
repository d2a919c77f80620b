// Families: the models of docs/supported-models.md and the results that scripts/supported_models.py
// makes that page from.
#pragma once

#include "tool.h"

namespace cgc::e2e {

struct Family {
  const char *name; ///< The name in make_families.py.
  size_t outputs;   ///< Number of outputs of all methods together.
  size_t scripted;  ///< As `outputs`, for the scripted module; 0: scripting is not tested.
};

/// OpenCLIP models have the features of both towers and all outputs of forward. For CoCa,
/// torch.jit.script keeps forward and _encode_text, which has two outputs.
inline constexpr Family kFamilies[] = {{"ViT-B-32", 5, 5},      {"ViT-B-32-quickgelu", 5, 0},
                                       {"ViT-L-14", 5, 0},      {"ViT-H-14", 5, 0},
                                       {"RN50", 5, 5},          {"coca_ViT-B-32", 7, 7},
                                       {"convnext_base", 5, 5}, {"ViT-B-16-SigLIP", 6, 0},
                                       {"EVA02-B-16", 5, 0},    {"MobileCLIP-S1", 5, 0},
                                       {"ViTamin-B", 5, 0},     {"roberta-ViT-B-32", 5, 0},
                                       {"resnet50", 1, 0},      {"vit_b_16", 1, 0},
                                       {"swin_t", 1, 0},        {"bert", 2, 0}};

std::string testName(const testing::TestParamInfo<Family> &info);

/// One plan of a model and its reference.
struct Check {
  std::vector<std::string>
      arguments;      ///< Arguments of compile besides the model's inputs and batches.
  fs::path reference; ///< The model that LibTorch runs.
  size_t outputs;     ///< The number of outputs to compare for each batch.
};

/// A test of one family.
class FamilyTest : public ToolTest, public testing::WithParamInterface<Family> {
protected:
  void TearDown() override { fs::remove_all(folder); } // Models are large.

  std::string name() const { return GetParam().name; }
  /// Exports the model in real size into the test's folder and returns its path. `name` may end in
  /// `.scripted`.
  fs::path makeReal(const std::string &name);
  /// Compiles for batches 1 and 3 with these further arguments.
  Outcome compile(const fs::path &model, const std::vector<std::string> &more);
  /// Compiles the plans for target cpu and compares them with LibTorch. Records the largest
  /// relative L2 as `column`, from which scripts/supported_models.py makes the page.
  void expectAgreement(const fs::path &model, const std::string &column,
                       const std::vector<Check> &checks);
};

} // namespace cgc::e2e
