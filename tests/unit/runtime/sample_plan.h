// Small plans for tests: handwritten ones, and random ones that are valid by construction.
#pragma once

#include "runtime/plan/plan.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace cgc::test {

/// A plan with the bytes of its weights.
struct SamplePlan {
  PlanData plan;
  std::vector<std::vector<std::byte>> weights;

  std::vector<std::span<const std::byte>> weightSpans() const {
    return {weights.begin(), weights.end()};
  }
};

inline TensorRef dense(BufferKind buffer, uint32_t index, uint64_t offset, DType dtype,
                       std::vector<int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;)
    strides[i - 1] = strides[i] * sizes[i];
  return {{buffer, index, offset}, dtype, std::move(sizes), std::move(strides)};
}

inline TensorId id(uint32_t index) {
  return TensorId(index);
}

inline std::vector<std::byte> floatBytes(const std::vector<float> &values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// A plan with two entries. "main" computes y = -(x) * 1 + w through the arena, in buckets of 1 and
/// 2 rows of 4. "fill" sets 4 bytes to 7 and does not use its weight.
inline SamplePlan samplePlan() {
  SamplePlan sample;
  PlanData &plan = sample.plan;
  plan.target = DeviceKind::Cpu;
  plan.producer = "test";
  plan.precision = DType::F32;
  plan.locations = {{"model.py", 12, "visual.ln"}, {"model.py", 13, ""}};
  plan.weights = {{.name = "w", .dtype = DType::F32, .sizes = {4}},
                  {.name = "unused", .dtype = DType::U8, .sizes = {3}, .isComputed = true}};
  sample.weights = {floatBytes({1, 2, 3, 4}), std::vector<std::byte>(3, std::byte{9})};

  Entry main{.name = "main", .buckets = {}};
  for (int64_t rows : {1, 2}) {
    Bucket bucket;
    bucket.inputs = {{.name = "x", .dtype = DType::F32, .sizes = {rows, 4}, .batchDim = 0}};
    bucket.outputs = {{.name = "y", .dtype = DType::F32, .sizes = {rows, 4}, .batchDim = 0}};
    bucket.expectedMicros = 2.5 * rows;
    bucket.arenaBytes = 512;
    bucket.tensors = {dense(BufferKind::Input, 0, 0, DType::F32, {rows, 4}),
                      dense(BufferKind::Arena, 0, 0, DType::F32, {rows, 4}),
                      dense(BufferKind::Weight, 0, 0, DType::F32, {4}),
                      dense(BufferKind::Arena, 0, 256, DType::F32, {rows, 4}),
                      dense(BufferKind::Output, 0, 0, DType::F32, {rows, 4})};
    AtenCall neg{.op = "aten::neg", .overload = "out", .args = {id(0)}, .outputs = {id(1)}};
    neg.writesOut = true;
    AtenCall add{.op = "aten::add",
                 .overload = "Tensor",
                 .args = {id(1), id(2), int64_t(1)},
                 .outputs = {id(3)}};
    bucket.records = {{neg, LocationId(0)}, {add, LocationId(1)}, {Memcpy{id(3), id(4)}}};
    main.buckets.push_back(bucket);
  }
  Bucket fill;
  fill.outputs = {{.name = "bytes", .dtype = DType::U8, .sizes = {4}}};
  fill.tensors = {dense(BufferKind::Output, 0, 0, DType::U8, {4})};
  fill.records = {{Memset{id(0), 7}}};
  main.rows = {.independent = true};
  const BatchRows none{.op = "aten.fill", .reason = "it has no rows", .location = LocationId(1)};
  plan.entries = {main, {.name = "fill", .buckets = {fill}, .rows = none}};
  return sample;
}

/// A plan with target cuda that contains every kind of record and argument.
inline SamplePlan cudaSamplePlan() {
  SamplePlan sample = samplePlan();
  PlanData &plan = sample.plan;
  plan.target = DeviceKind::Cuda;
  plan.gpu = {"Some GPU", 7, true};
  plan.tf32 = true;
  for (Bucket &bucket : plan.entries[0].buckets) {
    bucket.isMeasured = true;
    KernelLaunch kernel{.kernel = "some_kernel",
                        .abiHash = 0xfedcba9876543210u,
                        .grid = {1, 2, 3},
                        .block = {32, 4, 2},
                        .sharedBytes = 1024,
                        .reads = {id(1), kNoTensor},
                        .writes = {id(3)},
                        .ints = {-1, 7},
                        .floats = {-0.0, 1e-5}};
    LibraryCall library{.library = "some_library",
                        .function = "some_function",
                        .reads = {id(1), id(2)},
                        .writes = {id(3)},
                        .ints = {1},
                        .floats = {0.5},
                        .algorithm = {std::byte{1}, std::byte{0}}};
    AtenCall everything{.op = "aten::some_op",
                        .overload = "",
                        .args = {NoneArg{}, id(1), std::vector{id(2), kNoTensor}, int64_t(-3), -0.0,
                                 true, std::string("tanh \"x\"\n"), DType::BF16, DeviceArg{},
                                 std::vector<int64_t>{1, -2}, std::vector<double>{0.25, -0.0},
                                 std::vector<TensorId>{}, std::vector<int64_t>{}, std::string()},
                        .outputs = {id(3), id(1)}};
    bucket.records.insert(bucket.records.begin() + 2,
                          {{kernel, LocationId(1)},
                           {library},
                           {everything, LocationId(0)},
                           {HostCall{"visual.ln", "forward", {id(1)}, {id(3)}}, LocationId(0)}});
  }
  return sample;
}

/// A plan whose entry "main" computes y = op(x), both f32[2,4], by the op library `library`.
inline SamplePlan opLibraryPlan(DeviceKind target, OpLibraryId library, std::string op) {
  Bucket bucket;
  bucket.inputs = {{.name = "x", .dtype = DType::F32, .sizes = {2, 4}}};
  bucket.outputs = {{.name = "y", .dtype = DType::F32, .sizes = {2, 4}}};
  bucket.tensors = {dense(BufferKind::Input, 0, 0, DType::F32, {2, 4}),
                    dense(BufferKind::Output, 0, 0, DType::F32, {2, 4})};
  LibraryCall call{.library = library.name, .function = std::move(op)};
  call.reads = {id(0)};
  call.writes = {id(1)};
  bucket.records = {{call, LocationId(0)}};
  SamplePlan sample;
  sample.plan.target = target;
  sample.plan.producer = "test";
  sample.plan.locations = {{"model.py", 12, "mlp.act"}};
  sample.plan.entries = {{.name = "main", .buckets = {bucket}}};
  sample.plan.opLibraries = {std::move(library)};
  return sample;
}

/// A random valid plan with target cpu: a chain of records over slots that do not overlap.
inline SamplePlan randomPlan(unsigned seed) {
  std::mt19937 random(seed);
  const auto upTo = [&](uint32_t n) {
    return std::uniform_int_distribution<uint32_t>(0, n)(random);
  };
  const auto sizes = [&] {
    std::vector<int64_t> s(upTo(4));
    for (int64_t &size : s)
      size = upTo(3); // May be 0: empty tensors are valid.
    return s;
  };
  const auto dtype = [&] { return DType(upTo(kNumDTypes - 1)); };
  SamplePlan sample;
  PlanData &plan = sample.plan;
  plan.producer = std::string(upTo(5), 'p');
  if (int precision = upTo(4); precision < 4)
    plan.precision = DType(precision);
  for (uint32_t i = 0, n = upTo(5); i < n; ++i) {
    plan.weights.push_back({.name = "w" + std::to_string(i), .dtype = dtype(), .sizes = sizes()});
    auto &bytes =
        sample.weights.emplace_back(*tensorBytes(plan.weights[i].dtype, plan.weights[i].sizes));
    for (std::byte &b : bytes)
      b = std::byte(upTo(255));
  }
  for (uint32_t i = 0, n = upTo(3); i < n; ++i) {
    plan.states.push_back({"s" + std::to_string(i), StateRole(upTo(3)), dtype(), sizes()});
    if (State &state = plan.states.back(); !plan.weights.empty() && upTo(1)) {
      state.initial = upTo(plan.weights.size() - 1);
      state.dtype = plan.weights[state.initial].dtype;
      state.sizes = plan.weights[state.initial].sizes;
    }
  }
  for (uint32_t i = 0, n = upTo(3); i < n; ++i)
    plan.locations.push_back({"f" + std::to_string(i), upTo(1000), std::string(upTo(2), 'm')});
  for (uint32_t e = 0, entries = 1 + upTo(2); e < entries; ++e) {
    Bucket bucket;
    for (uint32_t i = 0, n = upTo(3); i < n; ++i) {
      bucket.inputs.push_back({"in" + std::to_string(i), dtype(), sizes()});
      IoTensor &input = bucket.inputs.back();
      if (!isFloating(input.dtype) && input.dtype != DType::Bool && !input.sizes.empty() &&
          std::ranges::find(input.sizes, 0) == input.sizes.end())
        input.indexBounds = {{.end = 1 + upTo(100),
                              .sizes = {input.sizes.back()},
                              .strides = {1},
                              .least = -int64_t(upTo(100)),
                              .exempt = upTo(1) == 1
                                            ? std::optional<int64_t>(-int64_t(upTo(1)) * 100)
                                            : std::nullopt}};
      bucket.tensors.push_back(
          dense(BufferKind::Input, i, 0, bucket.inputs[i].dtype, bucket.inputs[i].sizes));
    }
    for (uint32_t i = 0; i < plan.weights.size(); ++i)
      bucket.tensors.push_back(
          dense(BufferKind::Weight, i, 0, plan.weights[i].dtype, plan.weights[i].sizes));
    for (uint32_t i = 0; i < plan.states.size(); ++i)
      bucket.tensors.push_back(
          dense(BufferKind::State, i, 0, plan.states[i].dtype, plan.states[i].sizes));
    for (uint32_t i = 0, n = 1 + upTo(2); i < n; ++i)
      bucket.outputs.push_back({"out" + std::to_string(i), dtype(), sizes()});
    const uint32_t inner = upTo(8), all = inner + bucket.outputs.size();
    for (uint32_t i = 0; i < all; ++i) {
      AtenCall call;
      call.op = "aten::op" + std::to_string(upTo(3));
      call.overload = upTo(1) ? "out" : "";
      call.writesOut = upTo(1);
      const uint32_t readable = bucket.tensors.size();
      for (uint32_t a = 0, n = upTo(4); a < n; ++a)
        switch (upTo(4)) {
        case 0:
          call.args.push_back(int64_t(upTo(9)) - 5);
          break;
        case 1:
          call.args.push_back(double(upTo(9)) / 3);
          break;
        case 2:
          call.args.push_back(NoneArg{});
          break;
        case 3:
          call.args.push_back(std::string(upTo(4), 's'));
          break;
        default:
          if (readable > 0)
            call.args.push_back(id(upTo(readable - 1)));
        }
      if (i < inner) {
        const DType type = dtype();
        TensorRef t = dense(BufferKind::Arena, 0, bucket.arenaBytes, type, sizes());
        bucket.arenaBytes += (*tensorBytes(type, t.sizes) + 255) / 256 * 256;
        bucket.tensors.push_back(t);
      } else {
        const IoTensor &output = bucket.outputs[i - inner];
        bucket.tensors.push_back(
            dense(BufferKind::Output, i - inner, 0, output.dtype, output.sizes));
      }
      call.outputs = {id(readable)};
      LaunchRecord record{call};
      if (!plan.locations.empty() && upTo(1))
        record.location = LocationId(upTo(plan.locations.size() - 1));
      bucket.records.push_back(record);
    }
    plan.entries.push_back({"entry" + std::to_string(e), {bucket}});
  }
  return sample;
}

} // namespace cgc::test
