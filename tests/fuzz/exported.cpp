// Fuzz target: archives of torch.export. A program that is read is IR that prints as text which
// parses back to the same module.
#include "frontend/exported/exported.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/require.h"

using namespace cgc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const fuzz::MemoryFile file(data, size);
  for (const auto purpose : {frontend::ImportFor::Inference, frontend::ImportFor::Training}) {
    const Result<exported::ExportedModule> imported =
        exported::importExported({file.path()}, purpose);
    if (!imported.isOk()) {
      CGC_REQUIRE(!imported.status().message().empty(), "an error without a message");
      continue;
    }
    ir::Diagnostics diagnostics;
    CGC_REQUIRE(ir::verify(*imported->module, diagnostics), diagnostics.render());
    const Status roundTrip = ir::checkRoundTrip(*imported->module);
    CGC_REQUIRE(roundTrip.isOk(), roundTrip.message());
  }
  return 0;
}
