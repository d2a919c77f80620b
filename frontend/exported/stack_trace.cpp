// userLine: reads the text that Python's traceback prints.
#include "frontend/exported/stack_trace.h"

#include "frontend/ops/torch_files.h"

#include "llvm/ADT/StringRef.h"

#include <tuple>

namespace cgc::exported {

std::optional<ir::Loc> userLine(std::string_view trace) {
  std::optional<ir::Loc> innermost;
  llvm::StringRef rest = trace;
  while (!rest.empty()) {
    llvm::StringRef line;
    std::tie(line, rest) = rest.split('\n');
    line = line.ltrim();
    if (!line.consume_front("File \""))
      continue;
    auto [file, after] = line.split("\", line ");
    unsigned number = 0;
    // Torch names the files of its own passes by their relative paths.
    const bool isTorch = frontend::isTorchFile(file) || file.starts_with("torch/");
    if (!after.consumeInteger(10, number) && !isTorch)
      innermost = ir::Loc{file.str(), number, ""};
  }
  return innermost;
}

} // namespace cgc::exported
