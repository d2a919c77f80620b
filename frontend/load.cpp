// Load: torch::jit::load behind checks that give better messages than its own.
#include "frontend/load.h"

#include "frontend/archive.h"
#include "frontend/guard.h"
#include "frontend/numbers.h"
#include "runtime/base/file.h"

#include <torch/csrc/jit/serialization/import.h>

namespace cgc::frontend {

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
    Status sound = guarded(Code::InvalidFile, [&] { return checkArchive(path); });
    if (!sound.isOk())
      return sound.withContext(path);
  }
  torch::jit::Module module;
  Status status = guarded(Code::InvalidFile, [&] {
    module = torch::jit::load(path, c10::Device(c10::kCPU));
    restoreNumbers(module);
    return Status::ok();
  });
  if (status.code() == Code::InvalidFile)
    return Status(Code::InvalidFile,
                  path + ": LibTorch cannot read this as TorchScript (" + status.message() +
                      "); it may be damaged or cut short: export or copy it again");
  CGC_TRY(status);
  return module;
}

} // namespace cgc::frontend
