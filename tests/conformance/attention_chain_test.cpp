// Chains of GEMMs and attention_resident_kv, as in the layers of a tower, with and without
// programmatic edges. Each kernel starts while the previous one still runs, and both use the same
// memory.
#include "runtime/kernels/attention/attention_resident_kv.h"
#include "tests/conformance/gemm_numbers.h"

namespace cgc::test {
namespace {

/// Sizes of a batch of images with 257 tokens each.
struct Heads {
  int64_t batch, heads = 2, tokens = 257;
  int64_t rows() const { return batch * tokens; }
  int64_t width() const { return heads * 64; }
};

class AttentionChains : public HopperGemmTest {
protected:
  /// x -> qkv = x p^T + bias -> a = attention of qkv -> x = a q^T + x, three times in the same
  /// memory. GEMMs use this tile, with grids for this many SMs.
  static SamplePlan chainOf(const GemmTile &tile, DType dtype, const Heads &of,
                            uint32_t multiprocessors) {
    const int64_t rows = of.rows(), width = of.width(), packed = 3 * width;
    SamplePlan sample;
    PlanData &plan = sample.plan;
    plan.target = DeviceKind::Cuda;
    plan.weights = {{.name = "p", .dtype = dtype, .sizes = {packed, width}},
                    {.name = "q", .dtype = dtype, .sizes = {width, width}},
                    {.name = "bias", .dtype = dtype, .sizes = {packed}}};
    sample.weights = {encode(dtype, numbers(dtype, packed * width, 1, 0.1)),
                      encode(dtype, numbers(dtype, width * width, 2, 0.05)),
                      encode(dtype, numbers(dtype, packed, 3, 0.1))};
    const uint64_t narrow = *alignUp(rows * width * 2, kBufferAlignment),
                   wide = *alignUp(rows * packed * 2, kBufferAlignment);
    const auto head = [&](uint64_t offset, int64_t pitch) {
      TensorRef tensor =
          dense(BufferKind::Arena, 0, offset, dtype, {of.batch, of.heads, of.tokens, 64});
      tensor.strides = {of.tokens * pitch, 64, pitch, 1};
      return tensor;
    };
    const uint64_t attended = narrow + wide, part = uint64_t(width) * 2;
    Bucket bucket;
    bucket.inputs = {{"x", dtype, {rows, width}}};
    bucket.outputs = {{"y", dtype, {rows, width}}};
    bucket.arenaBytes = attended + narrow;
    bucket.tensors = {dense(BufferKind::Input, 0, 0, dtype, {rows, width}),
                      dense(BufferKind::Output, 0, 0, dtype, {rows, width}),
                      dense(BufferKind::Arena, 0, 0, dtype, {rows, width}),
                      dense(BufferKind::Arena, 0, narrow, dtype, {rows, packed}),
                      head(narrow, packed),
                      head(narrow + part, packed),
                      head(narrow + 2 * part, packed),
                      head(attended, width),
                      dense(BufferKind::Arena, 0, attended, dtype, {rows, width}),
                      dense(BufferKind::Weight, 0, 0, dtype, {packed, width}),
                      dense(BufferKind::Weight, 1, 0, dtype, {width, width}),
                      dense(BufferKind::Weight, 2, 0, dtype, {packed})};
    const auto gemm = [&](TensorId x, TensorId w, TensorId bias, TensorId residual, TensorId y,
                          int64_t features) {
      KernelLaunch launch = recordOf("gemm", tile, dtype, rows, features, width, multiprocessors);
      launch.reads = {x, w, bias, residual};
      launch.writes = {y, kNoTensor};
      bucket.records.push_back({launch});
    };
    const auto attention = [&] {
      const ResidentKvShape shape{residentKvTiles(of.tokens), 4, 2};
      KernelLaunch launch = launchOfKernel(named("attention_resident_kv", dtype) + "_272");
      launch.grid[0] =
          uint32_t(std::min<int64_t>(shape.items(of.batch * of.heads, of.tokens), multiprocessors));
      launch.block[0] = uint32_t(shape.groups * 128);
      launch.sharedBytes = shape.sharedBytes(of.tokens, of.tokens);
      launch.reads = {id(4), id(5), id(6)};
      launch.writes = {id(7)};
      launch.ints = {of.batch, of.heads, of.tokens, of.tokens, 0, shape.tiles, shape.stages};
      launch.floats = {0.125};
      bucket.records.push_back({launch});
    };
    bucket.records.push_back({Memcpy{id(0), id(2)}});
    for (int round = 0; round < 3; ++round) {
      gemm(id(2), id(9), id(11), kNoTensor, id(3), packed);
      attention();
      gemm(id(8), id(10), kNoTensor, id(2), id(2), width);
    }
    bucket.records.push_back({Memcpy{id(2), id(1)}});
    plan.entries = {{"main", {bucket}}};
    return sample;
  }
};
CGC_ON_GPU_EXECUTORS(AttentionChains);

TEST_P(AttentionChains, AreBitEqualWithAndWithoutProgrammaticEdges) {
  for (const DType dtype : kHalves)
    for (const GemmTile &tile : gemmTiles())
      // One image, and enough images that some SMs of an H200 have two items of attention.
      for (const int64_t batch : {1, 70}) {
        if (!tile.takes(128) || (batch > 1 && !tile.persistent))
          continue;
        SCOPED_TRACE(kernelOf("gemm", tile, dtype) + " batch=" + std::to_string(batch));
        expectSameWithProgrammaticEdges(chainOf(tile, dtype, {batch}, 132));
        if (HasFatalFailure())
          return;
      }
}

} // namespace
} // namespace cgc::test
