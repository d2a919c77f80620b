// run_pipeline: runs pipelines on IR text for the file tests, the examples of docs/passes.md, and
// the coverage tests.
#pragma once

#include "ir/module.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace cgc {

namespace fs = std::filesystem;

std::string readFile(const fs::path &path);

/// Parses and verifies the text. Fails the test and returns null if it is invalid.
std::unique_ptr<ir::Module> parsedAndVerified(llvm::StringRef text, const std::string &name);

/// Returns a module that can be compiled, with bytes for its parameters; null if the text is
/// invalid.
std::unique_ptr<ir::Module> compilable(llvm::StringRef text, const fs::path &path);

/// Runs `pipeline` on the text, with bytes for its parameters, and verifies after each pass.
/// Returns the printed module, or the refusal of a pass; nullopt, with test failures, if the text
/// is invalid. Adds to `changing` the passes that change or refuse something.
std::optional<std::string> runPipeline(const fs::path &path, llvm::StringRef text,
                                       llvm::StringRef pipeline,
                                       std::set<std::string> *changing = nullptr);

/// Runs `pass` on the text as runPipeline does and returns the candidates that it does not match,
/// as
/// --explain prints them; nullopt, with test failures, if the text is invalid or the pass fails.
std::optional<std::string> explainPass(const fs::path &path, llvm::StringRef text,
                                       llvm::StringRef pass);

} // namespace cgc
