// Times the tiles of gemm_f16 that fit each shape of the ViT-L-14 towers: a chain of GEMMs, each
// with weights of its own, in one captured graph, with plain and with programmatic edges. Checks
// each result against a plain kernel. Prints one line for each tile and shape.
#include "runtime/kernels/device/device_kernels.h"
#include "runtime/kernels/gemm/gemm.h"
#include "runtime/kernels/pointwise/activation.h"

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

void check(cudaError_t error, const char *what) {
  if (error == cudaSuccess)
    return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

__global__ void fillRandom(__half *p, size_t n, float scale, unsigned seed) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n;
       i += size_t(gridDim.x) * blockDim.x) {
    unsigned h = unsigned(i) * 2654435761u + seed;
    h ^= h >> 16, h *= 0x85ebca6bu, h ^= h >> 13, h *= 0xc2b2ae35u, h ^= h >> 16;
    p[i] = __float2half((float(h & 0xffffff) / 0x800000 - 1) * scale);
  }
}

__device__ float activated(float v, int kind) {
  return kind == int(cgc::Activation::Gelu) ? 0.5f * v * (1 + erff(v * 0.70710678f)) : v;
}

/// Adds |y - reference|^2 to errors[0] and |reference|^2 to errors[1] over all results. `kind` is
/// an Activation.
__global__ void compare(const __half *x, const __half *w, const __half *bias,
                        const __half *residual, const __half *y, int m, int n, int k, int kind,
                        double *errors) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < (long long)m * n;
       i += (long long)gridDim.x * blockDim.x) {
    const int row = i / n, column = i % n;
    float sum = 0;
    for (int j = 0; j < k; ++j)
      sum += __half2float(x[(long long)row * k + j]) * __half2float(w[(long long)column * k + j]);
    sum += __half2float(bias[column]);
    float want = activated(sum, kind);
    if (residual)
      want += __half2float(residual[i]);
    const double d = double(__half2float(y[i])) - want;
    atomicAdd(errors, isfinite(d) ? d * d : 1e30);
    atomicAdd(errors + 1, double(want) * want);
  }
}

struct Shape {
  const char *name;
  int64_t m, n, k;
  bool gelu, residual;
};

constexpr Shape kShapes[] = {
    {"text:1 qkv", 77, 2304, 768, false, false},
    {"text:1 proj", 77, 768, 768, false, true},
    {"text:1 fc1", 77, 3072, 768, true, false},
    {"text:1 fc2", 77, 768, 3072, false, true},
    {"image:1 qkv", 257, 3072, 1024, false, false},
    {"image:1 proj", 257, 1024, 1024, false, true},
    {"image:1 fc1", 257, 4096, 1024, true, false},
    {"image:1 fc2", 257, 1024, 4096, false, true},
    {"text:16 qkv", 1232, 2304, 768, false, false},
    {"text:16 proj", 1232, 768, 768, false, true},
    {"text:16 fc1", 1232, 3072, 768, true, false},
    {"text:16 fc2", 1232, 768, 3072, false, true},
    {"image:8 qkv", 2056, 3072, 1024, false, false},
    {"image:8 proj", 2056, 1024, 1024, false, true},
    {"image:8 fc1", 2056, 4096, 1024, true, false},
    {"image:8 fc2", 2056, 1024, 4096, false, true},
    {"image:64 qkv", 16448, 3072, 1024, false, false},
    {"image:64 proj", 16448, 1024, 1024, false, true},
    {"image:64 fc1", 16448, 4096, 1024, true, false},
    {"image:64 fc2", 16448, 1024, 4096, false, true},
    {"pooled:1 fc1", 1, 4096, 1024, true, false},
    {"pooled:16 fc2", 16, 768, 3072, false, true},
};

cgc::OperandView view(const void *data, const std::vector<int64_t> &sizes) {
  return {cgc::DType::F16, sizes, {}, cgc::alignmentOf(reinterpret_cast<uintptr_t>(data))};
}

} // namespace

int main(int argc, char **argv) {
  const std::string filter = argc > 1 ? argv[1] : "";
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  double *errors;
  CHECK(cudaMallocManaged(&errors, 16));
  for (const Shape &shape : kShapes) {
    if (std::string(shape.name).find(filter) == std::string::npos)
      continue;
    const auto [name, m, n, k, gelu, residual] = shape;
    const int layers = m > 4096 ? 6 : 24;
    const auto make = [&](int64_t elements, float scale) {
      __half *p;
      CHECK(cudaMalloc(&p, elements * 2));
      fillRandom<<<1024, 256, 0, stream>>>(p, elements, scale, unsigned(elements));
      return p;
    };
    __half *x = make(m * k, 1), *w = make(n * k * layers, 1 / std::sqrt(float(k))),
           *bias = make(n, 1), *more = make(m * n, 1), *y = make(m * n, 1);
    struct Line {
      double best;
      std::string text;
    };
    std::vector<Line> lines;
    for (const cgc::GemmTile &tile : cgc::gemmTiles())
      for (const uint32_t memory : {cgc::kGemmMaxSharedBytes / 2, cgc::kGemmMaxSharedBytes}) {
        const uint32_t steps = uint32_t(((k + 63) / 64 + tile.splitK - 1) / tile.splitK);
        const uint32_t stages =
            tile.stagesIn(memory, std::min(std::max(steps, 2u), cgc::kGemmMaxStages));
        if (stages < 2 || (memory == cgc::kGemmMaxSharedBytes &&
                           tile.sharedBytes(stages) <= cgc::kGemmMaxSharedBytes / 2))
          continue;
        const cgc::Kernel &kernel = cgc::GemmKernel{cgc::DType::F16, &tile}.row();
        // Skips tiles that fit the shape badly.
        const std::array<uint32_t, 3> grid = tile.grid(m, n, 132);
        const double blocks = double(grid[0]) * grid[1];
        const double waste = double((m + tile.tileM - 1) / tile.tileM * tile.tileM) / m;
        if ((m > 16 && waste > 1.5) || (m <= 16 && tile.tileM > 32) || blocks < 8 ||
            (m > 300 && tile.tileM < 88) || (m > 3000 && tile.tileM < 112) ||
            (m > 600 && tile.splitK > 2))
          continue;
        const uint32_t block[3] = {tile.threads(), 1, 1};
        const std::vector<int64_t> xs = {m, k}, ws = {n, k}, bs = {n}, ys = {m, n};
        const std::vector<int64_t> ints = {
            m, n, k, int64_t(gelu ? cgc::Activation::Gelu : cgc::Activation::None), /*gates=*/0};
        const auto prepare = [&](const void *function) {
          CHECK(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     int(tile.sharedBytes(stages))));
        };
        const cgc::DeviceKernel &device = cgc::deviceKernel(kernel);
        prepare(device.function());
        std::vector<cgc::KernelParameters> parameters;
        for (int l = 0; l < layers; ++l) {
          void *const readFrom[] = {x, w + n * k * l, bias, residual ? more : nullptr};
          void *const writeTo[] = {y, nullptr}; // No row statistics.
          const cgc::OperandView reads[] = {view(readFrom[0], xs), view(readFrom[1], ws),
                                            view(readFrom[2], bs), view(readFrom[3], ys)};
          const cgc::OperandView writes[] = {view(writeTo[0], ys), {}};
          const cgc::LaunchView launch{grid, block, tile.sharedBytes(stages), reads, writes,
                                       ints, {}};
          auto bound = [&]() -> cgc::Result<cgc::KernelParameters> {
            CGC_TRY(kernel.check(launch));
            return device.bind(launch, {readFrom, writeTo, 0b0110});
          }();
          if (!bound.isOk()) {
            std::fprintf(stderr, "%s\n", bound.status().message().c_str());
            return 1;
          }
          parameters.push_back(*std::move(bound));
        }
        const cgc::KernelParameters::TailLaunch tail = parameters[0].tail;
        if (tail.function)
          prepare(tail.function);
        const auto launch = [&](int layer, bool programmatic) {
          cudaLaunchAttribute attribute;
          attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
          attribute.val.programmaticStreamSerializationAllowed = 1;
          cudaLaunchConfig_t config = {};
          config.gridDim = dim3(grid[0] - tail.blocks, grid[1]);
          config.blockDim = dim3(block[0]);
          config.dynamicSmemBytes = tile.sharedBytes(stages);
          config.stream = stream;
          config.attrs = &attribute;
          config.numAttrs = programmatic;
          void *argument = parameters[layer].data();
          CHECK(cudaLaunchKernelExC(&config, device.function(), &argument));
          if (!tail.function)
            return;
          config.gridDim = dim3(tail.blocks);
          config.numAttrs = 1;
          CHECK(cudaLaunchKernelExC(&config, tail.function, &argument));
        };
        CHECK(cudaMemsetAsync(y, 0xff, m * n * 2, stream));
        launch(0, false);
        CHECK(cudaStreamSynchronize(stream));
        errors[0] = errors[1] = 0;
        compare<<<1024, 256, 0, stream>>>(x, w, bias, residual ? more : nullptr, y, m, n, k,
                                          ints[3], errors);
        CHECK(cudaStreamSynchronize(stream));
        const double error = std::sqrt(errors[0] / errors[1]);
        double micros[2];
        for (int programmatic = 0; programmatic < 2; ++programmatic) {
          cudaGraph_t graph;
          cudaGraphExec_t exec;
          CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
          for (int l = 0; l < layers; ++l)
            launch(l, programmatic && l > 0);
          CHECK(cudaStreamEndCapture(stream, &graph));
          CHECK(cudaGraphInstantiate(&exec, graph, 0));
          std::vector<double> samples;
          for (int i = 0; i < 8; ++i) {
            const auto start = std::chrono::steady_clock::now();
            const int runs = m > 4096 ? 2 : 8;
            for (int r = 0; r < runs; ++r)
              CHECK(cudaGraphLaunch(exec, stream));
            CHECK(cudaStreamSynchronize(stream));
            if (i > 0)
              samples.push_back(std::chrono::duration<double, std::micro>(
                                    std::chrono::steady_clock::now() - start)
                                    .count() /
                                runs / layers);
          }
          std::nth_element(samples.begin(), samples.begin() + 3, samples.end());
          micros[programmatic] = samples[3];
          CHECK(cudaGraphExecDestroy(exec));
          CHECK(cudaGraphDestroy(graph));
        }
        char text[200];
        const double best = std::min(micros[0], micros[1]);
        std::snprintf(text, sizeof(text),
                      "%-14s %-9s %2u stages %4.0f blocks  plain %7.2f us  programmatic %7.2f us  "
                      "%4.0f TFLOP/s  error %.1e%s",
                      name, std::string(tile.name).c_str(), stages, blocks, micros[0], micros[1],
                      2e-6 * m * n * k / best, error, error < 1e-3 ? "" : "  WRONG");
        lines.push_back({best, text});
      }
    std::sort(lines.begin(), lines.end(),
              [](const Line &a, const Line &b) { return a.best < b.best; });
    for (const Line &line : lines)
      std::puts(line.text.c_str());
    std::fflush(stdout);
    for (__half *p : {x, w, bias, more, y})
      CHECK(cudaFree(p));
  }
  return 0;
}
