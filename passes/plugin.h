// PassPlugin: how a library adds passes and substitutions to cgc (`--pass-plugin`). docs/plugins.md
// says how to build one.
#pragma once

#include "passes/pipeline.h"

#include "llvm/Config/llvm-config.h"

#include <cstdint>
#include <string_view>

namespace cgc::passes {

/// Changes whenever a header that a plug-in includes does in a way that a built plug-in can see.
inline constexpr uint32_t kPassPluginAbi = 1;

/// FNV-1a of what else a built plug-in has taken from the headers: LLVM and the numbers of ops.
inline constexpr uint64_t kPassPluginBuild = [] {
  constexpr std::string_view text = LLVM_VERSION_STRING
#define CGC_OP(Enum, name) "," name
#include "ir/ops.def"
      ;
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text)
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
