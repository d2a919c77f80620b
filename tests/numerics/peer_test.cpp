// Peers: `cgc bench` times what it reports: the file's own ops, or those of a frozen and optimized
// module.
#include "frontend/frontend.h"
#include "tests/numerics/test_models.h"

#include <ATen/record_function.h>

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace cgc::frontend {
namespace {

/// Counts how often each op runs on this thread while the object exists.
class OpCounts {
public:
  OpCounts() : guard_(true) {
    counts().clear();
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(
        [](const at::RecordFunction &op) -> std::unique_ptr<at::ObserverContext> {
          ++counts()[op.name()];
          return nullptr;
        }));
  }
  ~OpCounts() { at::removeCallback(handle_); }
  int of(const std::string &op) const { return counts()[op]; }

private:
  static std::map<std::string, int> &counts() {
    thread_local std::map<std::string, int> all;
    return all;
  }
  at::RecordFunctionGuard guard_;
  at::CallbackHandle handle_;
};

/// Returns the count of `op` in the third run, the first one that the JIT has optimized.
int runsOf(const std::string &op, PeerKind kind) {
  auto peers = loadPeers(test::smallModel("twice_the_same"), DeviceKind::Cpu, std::nullopt, false);
  EXPECT_TRUE(peers.isOk()) << peers.status().message();
  std::vector<float> values(3 * 4, 0.5f);
  const std::vector<int64_t> sizes = {3, 4};
  const TensorView inputs[] = {{values.data(), DType::F32, DeviceKind::Cpu, sizes, {}}};
  auto peer = (*peers)->prepare(kind, "forward", inputs);
  EXPECT_TRUE(peer.isOk()) << peer.status().message();
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE((*peer)->run(false).isOk());
  const OpCounts counts;
  EXPECT_TRUE((*peer)->run(false).isOk());
  return counts.of(op);
}

TEST(Peer, EagerRunsTheOpsOfTheFile) {
  EXPECT_EQ(runsOf("aten::dropout", PeerKind::Eager), 1);
  EXPECT_EQ(runsOf("aten::exp", PeerKind::Eager), 2);
}

TEST(Peer, FrozenIsInEvaluationModeAndOptimized) {
  EXPECT_EQ(runsOf("aten::dropout", PeerKind::Frozen), 0);
  EXPECT_EQ(runsOf("aten::exp", PeerKind::Frozen), 1);
}

} // namespace
} // namespace cgc::frontend
