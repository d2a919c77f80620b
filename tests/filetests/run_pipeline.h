// Running pipelines on IR text: for file tests, for the examples of docs/passes.md, and for what
// checks that every pass has a test.
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

/// A valid module; null, with a failure, if the text is wrong.
std::unique_ptr<ir::Module> parsedAndVerified(llvm::StringRef text, const std::string &name);

/// A module that can be compiled, its parameters with bytes; null if the text is wrong.
std::unique_ptr<ir::Module> compilable(llvm::StringRef text, const fs::path &path);

/// Runs `pipeline` on the text, with bytes for its parameters, and verifies after each pass. The
/// printed module, or what a pass refuses; nothing, with failures reported, if the text is wrong.
/// `changing` gets the passes that change or refuse something.
std::optional<std::string> runPipeline(const fs::path &path, llvm::StringRef text,
                                       llvm::StringRef pipeline,
                                       std::set<std::string> *changing = nullptr);

} // namespace cgc
