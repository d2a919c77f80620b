// PassPlugin: how a library adds passes and substitutions to cgc (`--pass-plugin`). docs/plugins.md
// says how to build one.
#pragma once

#include "passes/pipeline.h"

#include <cstdint>

namespace cgc::passes {

/// Changes whenever a header that a plug-in includes does in a way that a built plug-in can see.
inline constexpr uint32_t kPassPluginAbi = 1;

/// What a plug-in says of itself. The first member stays the first.
struct PassPlugin {
  uint32_t abi = kPassPluginAbi;
  const char *name = nullptr; ///< For messages.
  /// Called once for each pipeline; may throw.
  void (*registerIn)(PipelineBuilder &builder) = nullptr;
};

inline constexpr const char *kPassPluginSymbol = "cgcPassPlugin";

} // namespace cgc::passes

/// The one entry of a plug-in: defined by the plug-in, called by cgc. The result lives as long as
/// the library.
extern "C" [[gnu::visibility("default")]] const cgc::passes::PassPlugin *cgcPassPlugin();
