// PassPlugin: how a library adds passes and substitutions to cgc (`--pass-plugin`). docs/plugins.md
// says how to build one.
#pragma once

#include "passes/headers_hash.h"
#include "passes/pipeline.h"

#include "llvm/Config/llvm-config.h"

#include <cstdint>
#include <string_view>

namespace cgc::passes {

/// Changes when PassPlugin does.
inline constexpr uint32_t kPassPluginAbi = 1;

/// FNV-1a of what a built plug-in has taken in: LLVM's version and cgc's headers, any of which may
/// hold a layout or a number that it relies on.
inline constexpr uint64_t kPassPluginBuild = [] {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : std::string_view(LLVM_VERSION_STRING " " CGC_HEADERS_HASH))
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}();

/// What a plug-in says of itself. The first member stays the first.
struct PassPlugin {
  uint32_t abi = kPassPluginAbi;
  const char *name = nullptr; ///< For messages.
  /// Called once for each pipeline; may throw.
  void (*registerIn)(PipelineBuilder &builder) = nullptr;
  uint64_t build = kPassPluginBuild; ///< Left as it is.
};

inline constexpr const char *kPassPluginSymbol = "cgcPassPlugin";

} // namespace cgc::passes

/// The one entry of a plug-in: defined by the plug-in, called by cgc. The result lives as long as
/// the library.
extern "C" [[gnu::visibility("default")]] const cgc::passes::PassPlugin *cgcPassPlugin();
