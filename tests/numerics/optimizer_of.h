// optimizerOf: an optimizer from the options of the pass `optimize`, for tests.
#pragma once

#include "passes/manager/pass_list.h"
#include "passes/train/optimizer_options.h"

#include <gtest/gtest.h>

namespace cgc::test {

/// The optimizer of `rule=adamw,lr=0.001`.
inline OptimizerOptions optimizerOf(const std::string &text) {
  const auto list = passes::parsePassList("optimize{" + text + "}");
  EXPECT_TRUE(list.isOk()) << list.status().message();
  passes::PassOptions options("optimize", list->front().options);
  auto optimizer = passes::takeOptimizer(options);
  EXPECT_TRUE(optimizer.isOk()) << optimizer.status().message();
  return *std::move(optimizer);
}

} // namespace cgc::test
