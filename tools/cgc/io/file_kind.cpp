// File kind: detects file kinds, and reads and parses IR text.
#include "tools/cgc/io/file_kind.h"

#include "ir/text/text.h"
#include "runtime/base/file.h"

#include <fmt/format.h>

#include <iostream>
#include <iterator>

namespace cgc::tool {

Result<FileKind> kindOf(const std::string &path, const std::string &use) {
  CGC_TRY(MappedFile::open(path).status());
  const std::string kind = describeForeignFile(path);
  if (kind == kPlanFile)
    return FileKind::Plan;
  if (kind == kTorchScriptFile)
    return FileKind::TorchScript;
  if (kind == kExportedFile)
    return FileKind::Exported;
  if (kind == kIrTextFile)
    return FileKind::Ir;
  return Status(
      Code::InvalidFile,
      fmt::format("'{}' is {}; {}", path, kind.empty() ? "of no kind that cgc knows" : kind, use));
}

Result<std::string> readIrText(const std::string &path) {
  if (path == "-")
    return std::string(std::istreambuf_iterator<char>(std::cin), {});
  CGC_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  // The parser reports what is wrong with a text file.
  const std::string kind = describeForeignFile(path);
  if (kind != kIrTextFile && kind != kTextFile)
    return Status(Code::InvalidFile,
                  fmt::format("'{}' is {}; here cgc reads IR text, for example what cgc compile "
                              "--dump-dir writes",
                              path, kind.empty() ? "of no kind that cgc knows" : kind));
  return std::string(reinterpret_cast<const char *>(file.bytes().data()), file.bytes().size());
}

Result<std::unique_ptr<ir::Module>> parseIrText(const std::string &text, const std::string &path) {
  ir::Diagnostics diagnostics;
  auto module = ir::parseAndVerify(text, path == "-" ? "<stdin>" : path, diagnostics);
  if (!module)
    return diagnostics.toStatus(Code::InvalidFile);
  return module;
}

} // namespace cgc::tool
