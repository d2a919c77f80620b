// File kind: which of cgc's inputs a file is, by content, never by name.
#pragma once

#include "ir/module.h"
#include "runtime/base/status.h"

#include <memory>
#include <string>

namespace cgc::tool {

enum class FileKind { Plan, TorchScript, Ir };

/// InvalidFile if it is none of them; `use` says who asks, as in "cgc inspects TorchScript files".
Result<FileKind> kindOf(const std::string &path, const std::string &use);

/// A file of IR text, or standard input for "-". InvalidFile if it is a binary file.
Result<std::string> readIrText(const std::string &path);

/// Parses and verifies the text of `path`. InvalidFile with every error and its line.
Result<std::unique_ptr<ir::Module>> parseIrText(const std::string &text, const std::string &path);

} // namespace cgc::tool
