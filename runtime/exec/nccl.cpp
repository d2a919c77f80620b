// NCCL through dlopen.
#include "runtime/exec/nccl.h"

#include "runtime/base/printable.h"
#include "runtime/exec/library_path.h"

#include <algorithm>
#include <dlfcn.h>

namespace cgc {
namespace {

/// NCCL_VERSION_CODE of 2.19.0, the oldest that cgc takes.
constexpr int kOldestNccl = 21900;

/// The version of a NCCL_VERSION_CODE as "2.28.9". Those before 2.9 have one digit less.
std::string ncclVersionText(int code) {
  const int major = code < 10000 ? code / 1000 : code / 10000;
  const int minor = code < 10000 ? code / 100 % 10 : code / 100 % 100;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(code % 100);
}

} // namespace

Result<Nccl> Nccl::open(const std::string &path) {
  const std::string next =
      "; install NCCL 2.19 or newer (the package nvidia-nccl-cu13, which comes "
      "with PyTorch, has it), put its folder into LD_LIBRARY_PATH, or say "
      "where it is";
  const Result<void *> library = openLibrary(kNcclLibrary, path);
  if (!library.isOk())
    return Status(Code::Device,
                  "several ranks need NCCL, and " + library.status().message() + next);
  const std::string opened = std::string("the library that was opened as ") + kNcclLibrary;
  Nccl nccl;
#define X(NAME, ...)                                                                               \
  nccl.NAME = reinterpret_cast<decltype(nccl.NAME)>(dlsym(*library, #NAME));                       \
  if (!nccl.NAME)                                                                                  \
    return Status(Code::Device, opened + " has no function " #NAME + next);
  CGC_NCCL_FUNCTIONS(X)
#undef X
  int version = 0;
  CGC_TRY(nccl.status(nccl.ncclGetVersion(&version), nullptr, "NCCL does not tell its version"));
  if (version < kOldestNccl)
    return Status(Code::Device, opened + " is of version " + ncclVersionText(version) + next);
  return nccl;
}

Status Nccl::status(nccl::Code code, nccl::Comm comm, const std::string &what) const {
  if (code == nccl::Code::Success)
    return Status::ok();
  std::string text = ncclGetErrorString(code);
  if (const char *last = ncclGetLastError(comm); last && *last) {
    std::string line = last;
    std::ranges::replace(line, '\n', ' ');
    text += ": " + printable(line, 400);
  }
  return {Code::Device, what + ": " + text + "; NCCL prints more with NCCL_DEBUG=INFO"};
}

} // namespace cgc
