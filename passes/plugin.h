// PassPlugin: the interface of a library that adds passes and substitutions to cgc
// (`--pass-plugin`). docs/plugins.md says how to build one.
#pragma once

#include "passes/headers_hash.h"
#include "passes/pipeline.h"

#include "llvm/Config/llvm-config.h"

#include <cstdint>
#include <string_view>

namespace cgc::passes {

/// Increment when PassPlugin changes.
inline constexpr uint32_t kPassPluginAbi = 1;

/// FNV-1a hash of the versions that a plug-in was built with: LLVM's version and cgc's headers. Any
/// header may define a layout or a constant that the plug-in depends on.
inline constexpr uint64_t kPassPluginBuild = [] {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : std::string_view(LLVM_VERSION_STRING " " CGC_HEADERS_HASH))
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}();

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
