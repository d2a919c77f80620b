// Helpers of the IR unit tests: parse text that must be valid, and run the verifier on text.
#pragma once

#include "ir/text/text.h"
#include "ir/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace cgc::ir {

/// Parses text that must be valid. Otherwise fails the test with the errors and returns an empty
/// module.
inline std::unique_ptr<Module> parsed(llvm::StringRef text) {
  Diagnostics diagnostics;
  auto module = parseModule(text, "test.cgir", diagnostics);
  EXPECT_TRUE(module) << diagnostics.render();
  return module ? std::move(module) : std::make_unique<Module>("failed", "");
}

/// Returns the parser's errors for text that must be invalid.
inline std::string parseErrors(llvm::StringRef text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(parseModule(text, "test.cgir", diagnostics)) << text.str();
  return diagnostics.render();
}

/// Returns the verifier's errors for text that must parse; empty if there are none.
inline std::string verifyErrors(llvm::StringRef text) {
  Diagnostics diagnostics;
  verify(*parsed(text), diagnostics);
  return diagnostics.render();
}

} // namespace cgc::ir
