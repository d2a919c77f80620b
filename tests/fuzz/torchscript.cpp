// Fuzz target: TorchScript archives, read by cgc's zip reader and importer. If LibTorch loads a
// module, it is imported as IR that prints as text which parses back to the same module.
#include "frontend/archive.h"
#include "frontend/frontend.h"
#include "frontend/guard.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "runtime/base/file.h"
#include "runtime/base/zip.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/require.h"

#include <cstdlib>
#include <new>

using namespace cgc;

// Replaces operator new, because LibTorch's unpickler allocates as many bytes as a length in the
// file says. AddressSanitizer's operator new would end the process for such a size; this one
// throws.
void *operator new(size_t size) {
  constexpr size_t kMost = size_t(1) << 26; // Zeroing a gigabyte would take seconds.
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
                    "an entry's bytes lie outside the archive");
  const fuzz::MemoryFile file(data, size);
  const Status sound =
      frontend::guarded(Code::InvalidFile, [&] { return frontend::checkArchive(file.path()); });
  const Result<std::unique_ptr<ir::Module>> module = frontend::importTorchScript(file.path());
  if (!module.isOk()) {
    CGC_REQUIRE(!module.status().message().empty(), "an error without a message");
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
