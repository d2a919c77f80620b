// Load: torch::jit::load, preceded by checks with better error messages.
#include "frontend/load.h"

#include "frontend/archive.h"
#include "frontend/cuda_stand_ins.h"
#include "frontend/guard.h"
#include "runtime/base/file.h"
#include "runtime/base/libtorch.h"
#include "runtime/script/numbers.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/thread.h"

#include <torch/csrc/jit/serialization/import.h>

namespace cgc::frontend {
namespace {

/// Returns true if LibTorch failed because its CUDA library has not registered an op or a class.
bool namesCuda(const Status &status) {
  return status.message().find("torch.classes.cuda") != std::string::npos ||
         status.message().find("cuda::") != std::string::npos;
}

/// Returns the op or class of another library ("torchvision::nms") that prevents LibTorch from
/// reading a module; empty if that is not the cause.
llvm::StringRef foreignName(const Status &status) {
  llvm::StringRef message = status.message();
  if (message.consume_front("Unknown builtin op: "))
    return message.rtrim('.');
  if (message.consume_front("Tried to instantiate class '"))
    return message.split('\'').first;
  return "";
}

/// LibTorch compiles a method when another that it compiles calls it, some 4 KiB of stack deeper.
/// This is room for kMostMethods. Untouched memory of a stack costs nothing.
constexpr unsigned kStackBytes = kMostMethods * (16u << 10);

/// Calls `function` on a thread with a stack of kStackBytes, and waits for it.
template <class Function> Status withLargeStack(const Function &function) {
  Status status;
  llvm::thread thread(std::optional<unsigned>(kStackBytes), [&] { status = function(); });
  thread.join();
  return status;
}

} // namespace

Result<torch::jit::Module> loadTorchScript(const std::string &path) {
  // Reports a missing file, a folder, or an empty file.
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
    if (read.message().find("upgrade PyTorch") != std::string::npos)
      sound = Status(Code::InvalidFile,
                     std::string("a newer PyTorch wrote this file than LibTorch ") +
                         kLibTorchVersion + " can read; export the model with an older PyTorch");
    else if (read.code() == Code::InvalidFile)
      sound = Status(Code::InvalidFile, "the zip is damaged or cut short (" + read.message() +
                                            "); export or copy the file again");
    else if (!read.isOk())
      sound = read;
    if (!sound.isOk())
      return sound.withContext(path);
  }
  torch::jit::Module module;
  const auto load = [&] {
    return withLargeStack([&] {
      return guarded(Code::InvalidFile, [&] {
        registerCudaOpStubs();
        module = torch::jit::load(path, c10::Device(c10::kCPU));
        script::restoreNumbers(module);
        return Status::ok();
      });
    });
  };
  Status status = load();
  if (status.code() == Code::InvalidFile && namesCuda(status)) {
    CGC_TRY(guarded(Code::Failed, [] {
      registerCudaClassStubs();
      return Status::ok();
    }));
    status = load();
  }
  if (llvm::StringRef name = foreignName(status); !name.empty())
    return Status(Code::Unsupported,
                  path + ": the model uses '" + name.str() +
                      "', an op or class of another library than LibTorch, without which the model "
                      "cannot be read: take it out before the export; what else cannot be compiled "
                      "is listed then");
  if (status.code() == Code::InvalidFile)
    return Status(Code::InvalidFile,
                  path + ": LibTorch cannot read this as TorchScript (" + status.message() +
                      "); it may be damaged or cut short: export or copy it again");
  CGC_TRY(status);
  return module;
}

} // namespace cgc::frontend
