// Dumps: writes the IR text, and the drawing of a graph.
#include "passes/manager/dump.h"

#include "ir/text/dot.h"
#include "runtime/base/write_file.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"

namespace cgc::passes {

PassCallbacks dumpTo(const std::string &folder) {
  return {.after = [folder](const PassRun &run, Changed) -> Status {
    if (auto error = llvm::sys::fs::create_directories(folder))
      return Status(Code::Failed, folder + ": cannot make the folder: " + error.message());
    std::string stem;
    llvm::raw_string_ostream(stem) << folder << '/' << llvm::format("%02u", run.position) << '-'
                                   << run.pass.data() << (run.graph ? "." + run.graph->name() : "");
    CGC_TRY(writeFile(stem + ".cgir", standaloneText(run)));
    if (!run.graph)
      return Status::ok();
    std::string dot;
    llvm::raw_string_ostream dotStream(dot);
    ir::writeDot(dotStream, *run.graph);
    return writeFile(stem + ".dot", dotStream.str());
  }};
}

bool isDumpName(llvm::StringRef fileName) {
  const auto [position, rest] = fileName.split('-');
  return position.size() >= 2 && llvm::all_of(position, llvm::isDigit) &&
         (rest.ends_with(".cgir") || rest.ends_with(".dot"));
}

} // namespace cgc::passes
