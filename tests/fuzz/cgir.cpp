// Fuzz target: IR text. A module that the parser accepts is refused by the verifier or prints as
// text that parses back to the same module.
#include "ir/text/dot.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "tests/fuzz/require.h"

using namespace cgc::ir;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  Diagnostics diagnostics;
  const std::unique_ptr<Module> module = parseModule(text, "input", diagnostics);
  CGC_REQUIRE((module == nullptr) == diagnostics.hasErrors(), diagnostics.render());
  if (!module) {
    CGC_REQUIRE(!diagnostics.render().empty(), "an error without a message");
    return 0;
  }
  const cgc::Status roundTrip = checkRoundTrip(*module);
  CGC_REQUIRE(roundTrip.isOk(), roundTrip.message());
  Diagnostics found;
  const bool isGood = verify(*module, found);
  CGC_REQUIRE(isGood != found.hasErrors(), found.render());
  llvm::raw_null_ostream nowhere;
  for (const auto &graph : module->graphs())
    writeDot(nowhere, *graph);
  return 0;
}
