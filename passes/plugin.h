// PassPlugin: the interface of a library that adds passes and substitutions to cgc
// (`--pass-plugin`). docs/plugins.md says how to build one.
#pragma once

#include "passes/headers_hash.h"
#include "passes/pipeline.h"
#include "runtime/base/fnv1a.h"

#include "llvm/Config/llvm-config.h"

#include <cstdint>

namespace cgc::passes {

/// Increment when PassPlugin changes.
inline constexpr uint32_t kPassPluginAbi = 1;

/// Hash of the versions that a plug-in was built with: LLVM's version and cgc's headers. Any
/// header may define a layout or a constant that the plug-in depends on.
inline constexpr uint64_t kPassPluginBuild = fnv1a(LLVM_VERSION_STRING " " CGC_HEADERS_HASH);

/// Description of a plug-in. The first member must stay first.
struct PassPlugin {
  uint32_t abi = kPassPluginAbi;
  const char *name = nullptr; ///< For messages.
  /// Registers the passes and substitutions. Called once for each pipeline; may throw.
  void (*registerIn)(PipelineBuilder &builder) = nullptr;
  uint64_t build = kPassPluginBuild; ///< Do not set.
};

inline constexpr const char *kPassPluginSymbol = "cgcPassPlugin";

} // namespace cgc::passes

/// The single entry point of a plug-in: defined by the plug-in, called by cgc. The result must stay
/// valid as long as the library is loaded.
extern "C" [[gnu::visibility("default")]] const cgc::passes::PassPlugin *cgcPassPlugin();
