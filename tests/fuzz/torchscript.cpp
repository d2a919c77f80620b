// Fuzz target: TorchScript archives, by cgc's reader of zips and its importer. What LibTorch loads
// becomes IR that prints as text which reads back the same.
#include "frontend/archive.h"
#include "frontend/frontend.h"
#include "frontend/guard.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "runtime/base/file.h"
#include "runtime/base/zip.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/require.h"

#include <torch/csrc/jit/serialization/import.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <new>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" void __sanitizer_set_death_callback(void (*callback)());

using namespace cgc;

// LibTorch's reader of pickles reserves what a length in the file says. AddressSanitizer's operator
// new ends the process where the standard's throws.
void *operator new(size_t size) {
  constexpr size_t kMost = size_t(1) << 30;
  void *const data = size <= kMost ? std::malloc(size) : nullptr;
  if (!data)
    throw std::bad_alloc();
  return data;
}
void operator delete(void *data) noexcept {
  std::free(data);
}
void operator delete(void *data, size_t) noexcept {
  std::free(data);
}

namespace {

/// Whether LibTorch's own loader comes to an end. It takes sizes of tensors from the file without
/// looking at how many bytes they have, and compares constants while it loads: that ends a process,
/// here a child.
bool libtorchSurvives(const std::string &path) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM})
      std::signal(signal, SIG_DFL);
    __sanitizer_set_death_callback(nullptr);
    ::alarm(10);
    ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
    try {
      (void)torch::jit::load(path, c10::Device(c10::kCPU));
    } catch (...) {
    }
    ::_exit(0);
  }
  CGC_REQUIRE(child > 0, "no child process");
  int status = 0;
  while (::waitpid(child, &status, 0) != child)
    CGC_REQUIRE(errno == EINTR, "the child process is lost"); // libFuzzer's own alarm.
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Reads every byte of every parameter.
uint64_t hashOf(const ir::Module &module) {
  uint64_t hash = 0;
  for (const ir::Parameter &parameter : module.parameters())
    if (parameter.data)
      hash ^= hash64({parameter.data->bytes().data(), parameter.data->bytes().size()});
  for (const auto &submodule : module.submodules())
    hash += hashOf(*submodule);
  return hash;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto entries = zipEntries(bytes);
  if (entries)
    for (const ZipEntry &entry : *entries)
      if (const auto stored = storedBytes(bytes, entry))
        CGC_REQUIRE(stored->data() >= bytes.data() &&
                        stored->data() + stored->size() <= bytes.data() + bytes.size(),
                    "bytes of an entry that are not the archive's");
  const fuzz::MemoryFile file(data, size);
  const Status sound =
      frontend::guarded(Code::InvalidFile, [&] { return frontend::checkArchive(file.path()); });
  if (sound.isOk() && !libtorchSurvives(file.path()))
    return 0;
  const Result<std::unique_ptr<ir::Module>> module = frontend::importTorchScript(file.path());
  if (!module.isOk()) {
    CGC_REQUIRE(!module.status().message().empty(), "a refusal without a word");
    return 0;
  }
  CGC_REQUIRE(sound.isOk(), sound.message());
  volatile uint64_t hash = hashOf(**module);
  (void)hash;
  ir::Diagnostics diagnostics;
  CGC_REQUIRE(ir::verify(**module, diagnostics), diagnostics.render());
  const Status roundTrip = ir::checkRoundTrip(**module);
  CGC_REQUIRE(roundTrip.isOk(), roundTrip.message());
  return 0;
}
