// Entry: the one symbol that libcgc_frontend exports.
#include "frontend/frontend.h"

extern "C" __attribute__((visibility("default"))) const cgc::frontend::Api *
cgcFrontend(uint64_t abi) {
  static constexpr cgc::frontend::Api api = {
      .import = cgc::frontend::importTorchScript,
      .loadReference = cgc::frontend::loadReference,
      .loadPeers = cgc::frontend::loadPeers,
      .loadHostModules = cgc::frontend::loadHostModules,
      .loadTrainerPeer = cgc::frontend::loadTrainerPeer,
  };
  return abi == cgc::frontend::kFrontendAbi ? &api : nullptr;
}
