// Fixture of tests of single kernels: tensors of any dtype and strides, and launches with results
// between guard bands.
#pragma once

#include "runtime/base/checked.h"
#include "runtime/exec/gpu.h"
#include "tests/conformance/cuda_fixture.h"
#include "tests/conformance/element_bytes.h"
#include "tests/conformance/keep_plan.h"

#include <cmath>
#include <numeric>

namespace cgc::test {

inline constexpr DType kFloats[] = {DType::F32, DType::F16, DType::BF16};

/// Half a unit in the last place, relative to the value.
inline double rounding(DType dtype) {
  return dtype == DType::F32 ? 0x1p-24 : dtype == DType::F16 ? 0x1p-11 : 0x1p-8;
}
/// The spacing of subnormal numbers.
inline double smallest(DType dtype) {
  return dtype == DType::F16 ? 0x1p-24 : 0;
}

/// A tensor on the host: its memory and its layout in it.
struct HostTensor {
  DType dtype = DType::F32;
  std::vector<int64_t> sizes, strides;
  uint64_t offset = 0;          ///< Offset of the first element, in elements.
  std::vector<std::byte> bytes; ///< The memory.

  /// The offset from the first element, in elements, of element `i` in row-major order of `shape`,
  /// to which the tensor broadcasts.
  uint64_t place(uint64_t i, const std::vector<int64_t> &shape) const {
    uint64_t at = offset;
    for (size_t d = shape.size(); d-- > 0; i /= shape[d]) {
      if (d + sizes.size() < shape.size())
        continue;
      if (const size_t own = d + sizes.size() - shape.size(); sizes[own] != 1)
        at += i % shape[d] * strides[own];
    }
    return at;
  }
  double at(uint64_t i, const std::vector<int64_t> &shape) const {
    return decode(dtype, bytes.data(), place(i, shape));
  }
  double at(uint64_t i) const { return at(i, sizes); }
  uint64_t elements() const {
    return std::accumulate(sizes.begin(), sizes.end(), uint64_t(1), std::multiplies());
  }
};

/// A tensor without values, `offset` elements into its memory. Dense without `strides`.
inline HostTensor emptyTensor(DType dtype, std::vector<int64_t> sizes,
                              std::vector<int64_t> strides = {}, uint64_t offset = 0) {
  if (strides.empty())
    strides = dense(BufferKind::Arena, 0, 0, dtype, sizes).strides;
  HostTensor tensor{dtype, std::move(sizes), std::move(strides), offset, {}};
  uint64_t extent = offset + 1;
  for (size_t d = 0; d < tensor.sizes.size(); ++d)
    extent += (tensor.sizes[d] - 1) * tensor.strides[d];
  tensor.bytes.resize(extent * dtypeSize(dtype));
  return tensor;
}
/// An optional result that a launch leaves out.
inline HostTensor absentTensor() {
  return {.sizes = {0}, .strides = {1}, .bytes = {}};
}
/// The tensor with these values in its memory.
inline HostTensor withValues(HostTensor tensor, const std::vector<double> &values) {
  tensor.bytes = encode(tensor.dtype, values);
  return tensor;
}
/// The tensor with the elements of `values` in row-major order, and NaN in the rest of its memory.
inline HostTensor withElements(HostTensor tensor, const std::vector<double> &values) {
  std::vector<double> memory(tensor.bytes.size() / dtypeSize(tensor.dtype), NAN);
  for (uint64_t i = 0; i < values.size(); ++i)
    memory[tensor.place(i, tensor.sizes)] = values[i];
  tensor.bytes = encode(tensor.dtype, memory);
  return tensor;
}
/// The tensor with random values in all of its memory.
inline HostTensor withRandom(HostTensor tensor, unsigned seed) {
  const auto floats = randomFloats(tensor.bytes.size() / dtypeSize(tensor.dtype), seed);
  return withValues(std::move(tensor), {floats.begin(), floats.end()});
}

/// Expects integers to be equal, and floats to differ in the L2 norm by a few roundings of the
/// launch's least precise result: row statistics in f32 are those of 16-bit elements. Functions
/// in f32 differ by more than roundings. An element has to be finite in both or in neither. The
/// tests bound the error of each element.
inline void expectAgreement(const std::vector<HostTensor> &results,
                            const std::vector<HostTensor> &references) {
  double tolerance = 1e-4;
  for (const HostTensor &result : results)
    if (isFloating(result.dtype))
      tolerance = std::max(tolerance, 8 * rounding(result.dtype));
  for (size_t w = 0; w < results.size(); ++w) {
    const HostTensor &result = results[w], &reference = references[w];
    double squares = 0, differences = 0;
    for (uint64_t i = 0; i < result.elements(); ++i) {
      const double got = result.at(i), want = reference.at(i);
      if (!isFloating(result.dtype)) {
        ASSERT_EQ(got, want) << "element " << i << " of result " << w;
        continue;
      }
      ASSERT_EQ(std::isfinite(got), std::isfinite(want))
          << "element " << i << " of result " << w << " is " << got << ", and the reference's "
          << want;
      if (std::isfinite(want)) {
        squares += want * want;
        differences += (got - want) * (got - want);
      }
    }
    EXPECT_LE(std::sqrt(differences), tolerance * (1 + std::sqrt(squares)))
        << "result " << w << " and the reference's";
  }
}

class KernelTest : public ExecutorTest {
protected:
  struct Launch {
    std::string kernel;
    uint64_t blocks;
    uint32_t threads;
    std::vector<std::optional<HostTensor>> reads;
    std::vector<HostTensor>
        writes; ///< Give the layout of results. Optional ones may be absent, the last ones missing.
    std::vector<int64_t> ints = {};
    std::vector<double> floats = {};
    uint32_t blocksY = 1, blocksZ = 1, sharedBytes = 0;
    uint64_t constantReads = 0; ///< Bit i: reads[i] is a weight.
    /// The indices, in ascending order, of optional writes that are missing before others.
    std::vector<size_t> absentWrites = {};
    /// Index of the read that has the memory of writes[0] and its layout, which the kernel
    /// overwrites.
    std::optional<size_t> overwritten = {};
  };

  /// Runs the kernel and returns its results. Their memory and bands before and after it are filled
  /// with kGuardByte; every byte outside the elements has to keep this value. The results of
  /// the stream executor are also compared with those of the kernel's reference.
  std::vector<HostTensor> launch(const Launch &launch) {
    SCOPED_TRACE(launch.kernel);
    std::vector<HostTensor> results = launchOn(GetParam(), launch);
    if (GetParam() == ExecutorKind::Stream)
      expectAgreement(results, launchReference(launch));
    return results;
  }
  /// The results of the kernel's reference.
  std::vector<HostTensor> launchReference(const Launch &launch) {
    return launchOn(ExecutorKind::Reference, launch);
  }

private:
  std::vector<HostTensor> launchOn(ExecutorKind executor, const Launch &launch) {
    SamplePlan sample;
    sample.plan.target = DeviceKind::Cuda;
    Bucket bucket;
    KernelLaunch record = launchOfKernel(launch.kernel);
    record.grid[0] = static_cast<uint32_t>(launch.blocks);
    record.grid[1] = launch.blocksY;
    record.grid[2] = launch.blocksZ;
    record.sharedBytes = launch.sharedBytes;
    record.block[0] = launch.threads;
    record.ints = launch.ints;
    record.floats = launch.floats;
    const auto add = [&](const HostTensor &tensor, BufferKind kind, uint32_t index,
                         uint64_t begin) {
      bucket.tensors.push_back({{kind, index, begin + tensor.offset * dtypeSize(tensor.dtype)},
                                tensor.dtype,
                                tensor.sizes,
                                tensor.strides});
      return TensorId(bucket.tensors.size() - 1);
    };
    std::vector<std::vector<std::byte>> inputs;
    std::vector<TensorView> inputViews;
    std::vector<std::vector<int64_t>> inputSizes;
    for (size_t i = 0; i < launch.reads.size(); ++i) {
      const std::optional<HostTensor> &read = launch.reads[i];
      if (!read) {
        record.reads.push_back(kNoTensor);
        continue;
      }
      if (launch.constantReads >> i & 1) {
        const auto index = static_cast<uint32_t>(sample.weights.size());
        sample.plan.weights.push_back(
            {.name = "w" + std::to_string(index),
             .dtype = read->dtype,
             .sizes = {int64_t(read->bytes.size() / dtypeSize(read->dtype))}});
        sample.weights.push_back(read->bytes);
        record.reads.push_back(add(*read, BufferKind::Weight, index, 0));
        continue;
      }
      const auto index = static_cast<uint32_t>(inputs.size());
      inputSizes.push_back({int64_t(read->bytes.size() / dtypeSize(read->dtype))});
      bucket.inputs.push_back({"x" + std::to_string(index), read->dtype, inputSizes.back()});
      record.reads.push_back(add(*read, BufferKind::Input, index, 0));
      inputs.push_back(read->bytes);
    }
    std::vector<uint64_t> begins;
    uint64_t total = kGuard;
    for (const HostTensor &write : launch.writes) {
      begins.push_back(total);
      if (write.bytes.empty()) {
        record.writes.push_back(kNoTensor);
        continue;
      }
      record.writes.push_back(add(write, BufferKind::Arena, 0, total));
      total = *alignUp(total + write.bytes.size(), kBufferAlignment) + kGuard;
    }
    for (const size_t i : launch.absentWrites)
      record.writes.insert(record.writes.begin() + ptrdiff_t(i), kNoTensor);
    record.writes.resize(std::max(record.writes.size(), findKernel(launch.kernel)->writes),
                         kNoTensor);
    const std::vector<int64_t> arenaSizes = {int64_t(total)};
    bucket.arenaBytes = total;
    bucket.outputs = {{"arena", DType::U8, arenaSizes}};
    const HostTensor whole = emptyTensor(DType::U8, arenaSizes);
    const TensorId arenaId = add(whole, BufferKind::Arena, 0, 0),
                   outputId = add(whole, BufferKind::Output, 0, 0);
    bucket.records = {{Memset{arenaId, kGuardByte}}};
    if (launch.overwritten) {
      TensorId &read = record.reads[*launch.overwritten];
      bucket.records.push_back({Memcpy{read, record.writes[0]}});
      read = record.writes[0];
    }
    bucket.records.push_back({record});
    bucket.records.push_back({Memcpy{arenaId, outputId}});
    sample.plan.entries = {{"main", {bucket}}};

    keepPlan(sample);
    load(sample, executor);
    if (HasFatalFailure())
      throw std::runtime_error("the plan cannot be loaded");
    Context context = this->context(executor);
    for (size_t i = 0; i < inputs.size(); ++i)
      inputViews.push_back(
          {inputs[i].data(), bucket.inputs[i].dtype, DeviceKind::Cpu, inputSizes[i], {}});
    std::vector<std::byte> arena(total);
    const TensorView out{arena.data(), DType::U8, DeviceKind::Cpu, arenaSizes, {}};
    const Status status = context.run("main", inputViews, {&out, 1});
    if (!status.isOk())
      throw std::runtime_error(status.message());

    std::vector<bool> isElement(total);
    std::vector<HostTensor> results = launch.writes;
    for (size_t w = 0; w < results.size(); ++w) {
      HostTensor &result = results[w];
      std::copy_n(arena.begin() + begins[w], result.bytes.size(), result.bytes.begin());
      const size_t size = dtypeSize(result.dtype);
      for (uint64_t i = 0; i < result.elements(); ++i)
        std::fill_n(isElement.begin() + begins[w] + result.place(i, result.sizes) * size, size,
                    true);
    }
    for (uint64_t i = 0; i < total; ++i)
      if (!isElement[i] && arena[i] != std::byte{kGuardByte}) {
        ADD_FAILURE() << "byte " << i << " of " << total
                      << " was written, which is no element of a result";
        break;
      }
    return results;
  }

protected:
  /// Expects each element i of `result`, in row-major order, to be `expected(i)` up to one
  /// rounding, a relative error of `ofValue` and an absolute one of `absolute`.
  template <class F>
  static void expectNear(const HostTensor &result, F expected, double ofValue = 0,
                         double absolute = 0) {
    for (uint64_t i = 0; i < result.elements(); ++i) {
      const double want = expected(i), got = result.at(i);
      if (std::isnan(want) ? std::isnan(got) : got == want)
        continue;
      const double tolerance =
          (rounding(result.dtype) + ofValue) * std::abs(want) + absolute + smallest(result.dtype);
      ASSERT_NEAR(got, want, tolerance) << "element " << i << " of " << dtypeName(result.dtype);
    }
  }
  template <class F> static void expectEqual(const HostTensor &result, F expected) {
    for (uint64_t i = 0; i < result.elements(); ++i)
      ASSERT_EQ(result.at(i), expected(i)) << "element " << i << " of " << dtypeName(result.dtype);
  }

  /// Skips if the GPU cannot run kernels with these traits. The reference runs all.
  void skipUnlessGpuRuns(unsigned traits) {
    if (isReference() || IsSkipped())
      return;
    const Result<Gpu> gpu = findGpu(0);
    ASSERT_TRUE(gpu.isOk()) << gpu.status().message();
    if (const Status status = checkGpu(*gpu, traits); !status.isOk())
      GTEST_SKIP() << status.message();
  }

  static constexpr uint8_t kGuardByte = 0xab;

private:
  static constexpr uint64_t kGuard = 512;
};

inline std::string named(const std::string &kernel, DType dtype) {
  return kernel + "_" + std::string(dtypeName(dtype));
}

} // namespace cgc::test
