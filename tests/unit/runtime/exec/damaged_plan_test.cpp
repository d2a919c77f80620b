// Plans with changed metadata and matching checksums: each is refused, or is bound, runs, and
// accesses only its own memory.
#include "runtime/exec/engine.h"
#include "runtime/exec/requirements.h"
#include "tests/unit/runtime/damaged_plan.h"
#include "tests/unit/runtime/fake_provider.h"

#include <gmock/gmock.h>

namespace cgc::test {
namespace {

/// Calls `visit` with the address of each element of `tensor`, which begins at `base`.
template <class Visit>
void forEachElement(const TensorRef &tensor, void *base, const Visit &visit) {
  uint64_t elements = 1;
  for (int64_t size : tensor.sizes)
    elements *= uint64_t(size);
  for (uint64_t i = 0; i < elements; ++i) {
    uint64_t rest = i, at = 0;
    for (size_t d = tensor.sizes.size(); d-- > 0; rest /= uint64_t(tensor.sizes[d]))
      at += rest % uint64_t(tensor.sizes[d]) * uint64_t(tensor.strides[d]);
    visit(static_cast<std::byte *>(base) + at * dtypeSize(tensor.dtype));
  }
}

/// Reads every byte of its arguments; its outputs depend on all of them.
Status touchAll(const FakeCall &call, void *) {
  std::byte all{};
  size_t next = 0;
  for (const AtenArg &arg : call.call.args)
    if (const auto *id = std::get_if<TensorId>(&arg)) {
      const TensorRef &tensor = call.bucket.tensors[uint32_t(*id)];
      forEachElement(tensor, call.arguments[next++], [&](std::byte *element) {
        for (size_t b = 0; b < dtypeSize(tensor.dtype); ++b)
          all |= element[b];
      });
    }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.outputs[i])
      continue;
    const TensorRef &tensor = call.bucket.tensors[uint32_t(call.call.outputs[i])];
    forEachElement(tensor, call.outputs[i], [&](std::byte *element) {
      std::memset(element, int(all), dtypeSize(tensor.dtype));
    });
  }
  return Status::ok();
}

/// The same as a function of the host.
Status touchAllViews(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                     void *) {
  std::byte all{};
  for (const TensorView &view : inputs)
    for (uint64_t i = 0; i < *tensorBytes(view.dtype, view.sizes); ++i)
      all |= static_cast<const std::byte *>(view.data)[i];
  for (const TensorView &view : outputs)
    std::memset(view.data, int(all), *tensorBytes(view.dtype, view.sizes));
  return Status::ok();
}

class SealedPlan : public DamagedPlan {
protected:
  SealedPlan() {
    for (const char *op : {"aten::neg", "aten::add"})
      provider_.ops[op] = touchAll;
  }

  /// Binds `plan` and runs each bucket on zeros. Both Ok and an error are acceptable.
  Status run(const Plan &plan) {
    EngineOptions options;
    options.provider = &provider_;
    options.memoryLimit = 64 << 20;
    for (const auto &[name, location] : requirementsOf(plan.data()).hostFunctions)
      options.hostFunctions.push_back({name, touchAllViews});
    CGC_ASSIGN_OR_RETURN(const Engine engine, Engine::create(plan, options));
    CGC_ASSIGN_OR_RETURN(Context context, Context::create(engine));
    for (const Entry &entry : plan.data().entries)
      for (const Bucket &bucket : entry.buckets) {
        std::vector<std::vector<std::byte>> memory;
        const auto views = [&](const std::vector<IoTensor> &list) {
          std::vector<TensorView> views;
          for (const IoTensor &io : list) {
            memory.emplace_back(*tensorBytes(io.dtype, io.sizes));
            views.push_back({memory.back().data(), io.dtype, DeviceKind::Cpu, io.sizes, {}});
          }
          return views;
        };
        const std::vector<TensorView> in = views(bucket.inputs), out = views(bucket.outputs);
        CGC_TRY(context.run(entry.name, in, out));
      }
    return Status::ok();
  }

  /// Flips bits of each byte of the metadata, and runs each plan that is not refused. Returns how
  /// many ran.
  size_t runDamaged() {
    const std::string metadata = this->metadata();
    size_t refused = 0, failed = 0, ran = 0;
    for (size_t i = 0; i < metadata.size(); ++i)
      for (const unsigned flip : {0x01, 0x04, 0x80, 0xff}) {
        SCOPED_TRACE("byte " + std::to_string(i) + " xor " + std::to_string(flip));
        std::string changed = metadata;
        changed[i] ^= static_cast<char>(flip);
        pokeMetadata(changed);
        const Result<Plan> plan = Plan::load(path_);
        if (!plan.isOk()) {
          EXPECT_EQ(plan.status().code(), Code::InvalidFile) << plan.status().message();
          ++refused;
          continue;
        }
        EXPECT_FALSE(toText(plan->data()).empty());
        const Status status = run(*plan);
        EXPECT_NE(status.code(), Code::Failed) << status.message();
        ++(status.isOk() ? ran : failed);
      }
    EXPECT_GT(refused, metadata.size());
    EXPECT_GT(failed, 0u); // Unknown op names, and arenas above the limit.
    return ran;
  }

  FakeProvider provider_;
};

/// A plan whose first record is a host call.
class SealedHostPlan : public SealedPlan {
protected:
  SamplePlan undamaged() const override {
    SamplePlan sample = samplePlan();
    for (Bucket &bucket : sample.plan.entries[0].buckets)
      bucket.records[0].op = HostCall{"visual.ln", "forward", {id(0)}, {id(1)}};
    return sample;
  }
};

TEST_F(SealedHostPlan, IsRefusedOrBoundAndRun) {
  EXPECT_GT(runDamaged(), 100u);
}

TEST_F(SealedPlan, IsRefusedOrBoundAndRun) {
  EXPECT_GT(runDamaged(), 100u); // Changes of names and of numbers that do not matter.
}

} // namespace
} // namespace cgc::test
