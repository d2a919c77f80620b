// Helpers of the IR unit tests: parsing text that must parse, and running the verifier on text.
#pragma once

#include "ir/text/text.h"
#include "ir/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace cgc::ir {

/// Parses text that must be right; on failure the test fails with the errors and the module is
/// empty.
inline std::unique_ptr<Module> parsed(llvm::StringRef text) {
  Diagnostics diagnostics;
  auto module = parseModule(text, "test.cgir", diagnostics);
  EXPECT_TRUE(module) << diagnostics.render();
  return module ? std::move(module) : std::make_unique<Module>("failed", "");
}

/// What the parser says of text that must be wrong.
inline std::string parseErrors(llvm::StringRef text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(parseModule(text, "test.cgir", diagnostics)) << text.str();
  return diagnostics.render();
}

/// What the verifier says of text that must parse; empty if it finds nothing.
inline std::string verifyErrors(llvm::StringRef text) {
  Diagnostics diagnostics;
  verify(*parsed(text), diagnostics);
  return diagnostics.render();
}

} // namespace cgc::ir
