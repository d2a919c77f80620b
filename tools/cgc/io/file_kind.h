// File kind: detects the kind of an input file by its content, never by its name.
#pragma once

#include "ir/module.h"
#include "runtime/base/status.h"

#include <memory>
#include <string>

namespace cgc::tool {

enum class FileKind { Plan, TorchScript, Exported, Ir };

/// The kind of the file `path`. InvalidFile if it is none of them; the message ends with `use`, for
/// example "cgc inspects TorchScript files".
Result<FileKind> kindOf(const std::string &path, const std::string &use);

/// Reads a file of IR text, or standard input if `path` is "-". InvalidFile if the file is binary.
Result<std::string> readIrText(const std::string &path);

/// Parses and verifies `text`, which was read from `path`. InvalidFile, listing every error with
/// its line, if the text is malformed.
Result<std::unique_ptr<ir::Module>> parseIrText(const std::string &text, const std::string &path);

} // namespace cgc::tool
