// Load: torch::jit::load behind checks that give better messages than its own.
#include "frontend/load.h"

#include "frontend/archive.h"
#include "frontend/guard.h"
#include "frontend/numbers.h"
#include "ir/offenders.h"
#include "runtime/base/file.h"

#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/csrc/jit/runtime/operator.h>
#include <torch/csrc/jit/serialization/import.h>

namespace cgc::frontend {
namespace {

/// Declares the ops on devices that are LibTorch's CUDA library's, so that a module with such an op
/// can be read, and the op refused by line, without that library. They are never run.
void declareCudaOps() {
  static const bool declared = [] {
    for (const char *schema :
         {"cuda::synchronize() -> ()", "cuda::synchronize.device(Device? device) -> ()",
          "cuda::synchronize.int(int? val) -> ()", "cuda::_current_device() -> int",
          "cuda::_set_device(int val) -> ()"}) {
      const c10::FunctionSchema parsed = torch::jit::parseSchema(schema);
      if (!torch::jit::findOperatorFor(parsed.operator_name()))
        torch::jit::registerOperator(torch::jit::Operator(
            schema, [](torch::jit::Stack &) { TORCH_CHECK(false, "not run here"); },
            c10::AliasAnalysisKind::CONSERVATIVE));
    }
    return true;
  }();
  (void)declared;
}

/// Whether LibTorch knows everything of a module but its streams and events, which are classes of
/// its CUDA library.
bool namesCudaClass(const Status &status) {
  return status.message().find("torch.classes.cuda") != std::string::npos ||
         status.message().find("cuda::") != std::string::npos;
}

} // namespace

Result<torch::jit::Module> loadTorchScript(const std::string &path) {
  // A missing file, a folder, an empty file.
  CGC_TRY(MappedFile::open(path).status());
  std::string kind = describeForeignFile(path);
  if (!kind.empty() && kind != kTorchScriptFile)
    return Status(Code::InvalidFile,
                  path + ": this is " + kind +
                      "; cgc reads a TorchScript module: export one with " +
                      "scripts/export_openclip.py or torch.jit.trace(...).save(...)");
  if (!kind.empty()) {
    Status sound;
    const Status read = guarded(Code::InvalidFile, [&] {
      sound = checkArchive(path);
      return Status::ok();
    });
    if (read.code() == Code::InvalidFile)
      sound = Status(Code::InvalidFile, "the zip is damaged or cut short (" + read.message() +
                                            "); export or copy the file again");
    else if (!read.isOk())
      sound = read;
    if (!sound.isOk())
      return sound.withContext(path);
  }
  torch::jit::Module module;
  Status status = guarded(Code::InvalidFile, [&] {
    declareCudaOps();
    module = torch::jit::load(path, c10::Device(c10::kCPU));
    restoreNumbers(module);
    return Status::ok();
  });
  if (status.code() == Code::InvalidFile && namesCudaClass(status))
    return Status(Code::Unsupported, ir::explain(path + ": the model has CUDA streams or events (" +
                                                     status.message() + ")",
                                                 ir::Cause::DefaultStream) +
                                         "; " + ir::textOf(ir::Cause::DefaultStream).fix.str());
  if (status.code() == Code::InvalidFile)
    return Status(Code::InvalidFile,
                  path + ": LibTorch cannot read this as TorchScript (" + status.message() +
                      "); it may be damaged or cut short: export or copy it again");
  CGC_TRY(status);
  return module;
}

} // namespace cgc::frontend
