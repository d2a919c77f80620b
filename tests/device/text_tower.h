// A small CLIP text tower in the form after the passes, and its plan.
#pragma once

#include "backend/backend.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "runtime/exec/gpu.h"
#include "tests/conformance/cuda_fixture.h"
#include "tests/conformance/element_bytes.h"

#include <random>

namespace cgc::test {

inline constexpr int64_t kVocabulary = 512, kContext = 24, kWidth = 128, kEmbedding = 64;
inline constexpr int64_t kBatches[] = {1, 2, 4};

inline std::string type(const std::string &dtype, std::initializer_list<int64_t> sizes) {
  std::string text = dtype + "[";
  for (const int64_t size : sizes)
    text += (text.ends_with("[") ? "" : ",") + std::to_string(size);
  return text + "]@cuda";
}

/// The parameters of the tower and, in `gets`, the nodes that read them.
inline std::string parameters(std::string &gets) {
  std::string text;
  const auto add = [&](const std::string &name, const std::string &type) {
    text += "param @" + name + " : " + type + "\n";
    gets += "%" + name + " = get_attr @" + name + " : " + type + "\n";
  };
  const auto addLinear = [&](const std::string &name, int64_t features, int64_t depth) {
    add("w" + name, type("f16", {features, depth}));
    add("b" + name, type("f16", {features}));
  };
  add("table", type("f16", {kVocabulary, kWidth}));
  add("positions", type("f16", {kContext, kWidth}));
  for (const std::string layer : {"0", "1"}) {
    addLinear("qkv" + layer, 3 * kWidth, kWidth);
    addLinear("out" + layer, kWidth, kWidth);
    addLinear("fc1" + layer, 4 * kWidth, kWidth);
    addLinear("fc2" + layer, kWidth, 4 * kWidth);
  }
  add("gain", type("f16", {kWidth}));
  add("shift", type("f16", {kWidth}));
  add("projection", type("f16", {kEmbedding, kWidth}));
  return text;
}

/// The graph for this many texts.
inline std::string graphOf(int64_t batch, const std::string &gets) {
  const auto rows = [&](int64_t columns) { return type("f16", {batch, kContext, columns}); };
  const std::string strides =
      "[" + std::to_string(kContext * 3 * kWidth) + "," + std::to_string(3 * kWidth);
  const std::string statistics = ", " + type("f32", {batch * kContext, kWidth / 64, 2});
  std::string text =
      "graph @text" + std::to_string(batch) + "(%text: " + type("i64", {batch, kContext}) +
      ") {\n" + gets +
      "%x0, %sx0 = cgc.embedding(%text, %table, %positions) {row_statistics=true} : " +
      rows(kWidth) + statistics + "\n";
  for (const std::string l : {"0", "1"}) {
    text += "%qkv" + l + " = cgc.norm_linear(%x" + l + ", %wqkv" + l + ", %bqkv" + l + ", %sx" + l +
            ") {eps=1e-05, activation=\"none\"} : " + rows(3 * kWidth) + "\n";
    for (const int part : {0, 1, 2}) {
      const std::string name = "%" + std::string(1, "qkv"[part]) + l,
                        batches = std::to_string(batch),
                        dtype = "f16[" + batches + "," + std::to_string(kContext);
      text += name + "a = aten.slice(%qkv" + l + ") {dim=2, start=" + std::to_string(part * 128) +
              ", end=" + std::to_string(part * 128 + 128) + "} : " + dtype + ",128]" + strides +
              ",1]@cuda\n" + name + "b = aten.view(" + name + "a) {size=[" + batches +
              ", 24, 2, 64]} : " + dtype + ",2,64]" + strides + ",64,1]@cuda\n" + name +
              " = aten.transpose(" + name + "b) {dim0=1, dim1=2} : f16[" + batches +
              ",2,24,64][9216,64,384,1]@cuda\n";
    }
    const std::string next = l == "0" ? "1" : "2";
    text += "%a" + l + " = cgc.attention(%q" + l + ", %k" + l + ", %v" + l +
            ") {is_causal=true, scale=0.125} : " + rows(kWidth) + "\n%y" + l + ", %sy" + l +
            " = cgc.linear(%a" + l + ", %wout" + l + ", %bout" + l + ", %x" + l +
            ") {row_statistics=true} : " + rows(kWidth) + statistics + "\n%h" + l +
            " = cgc.norm_linear(%y" + l + ", %wfc1" + l + ", %bfc1" + l + ", %sy" + l +
            ") {eps=1e-05, activation=\"gelu\"} : " + rows(4 * kWidth) + "\n%x" + next + ", %sx" +
            next + " = cgc.linear(%h" + l + ", %wfc2" + l + ", %bfc2" + l + ", %y" + l +
            ") {row_statistics=true} : " + rows(kWidth) + statistics + "\n";
  }
  return text + "%i = aten.argmax(%text) {dim=1} : " + type("i64", {batch}) +
         "\n%r = cgc.rows(%x2, %i) : " + type("f16", {batch, kWidth}) +
         "\n%n = aten.layer_norm(%r, %gain, %shift) {normalized_shape=[128]} : " +
         type("f16", {batch, kWidth}) +
         "\n%p = cgc.linear(%n, %projection) {activation=\"none\"} : " +
         type("f16", {batch, kEmbedding}) +
         "\n%f = cgc.normalize(%p) {eps=1e-12} : " + type("f16", {batch, kEmbedding}) +
         "\noutput %f\n}\n";
}

/// Entry "main" with a bucket for each batch. Random weights.
inline Result<SamplePlan> textTower(backend::Arch arch, unsigned seed = 0) {
  std::string gets, text = "module @m {\n" + parameters(gets);
  for (const int64_t batch : kBatches)
    text += graphOf(batch, gets);
  ir::Diagnostics diagnostics;
  const auto module = ir::parseModule(text + "}", "test", diagnostics);
  if (!module || !ir::verify(*module, diagnostics))
    return Status(Code::Failed, diagnostics.render());
  for (const ir::Parameter &parameter : module->parameters()) {
    std::vector<double> values;
    for (const float v : randomFloats(parameter.type.numElements(), seed++))
      values.push_back((v - 0.5) * 0.05);
    module->setParameterData(
        parameter.name,
        ir::TensorData::copyOf(parameter.type, encode(parameter.type.dtype, values)));
  }
  std::vector<backend::EntryBucket> buckets;
  for (const auto &graph : module->graphs())
    buckets.push_back({"main", graph.get()});
  CGC_ASSIGN_OR_RETURN(backend::CompiledPlan compiled,
                       backend::lower(buckets, {DeviceKind::Cuda, arch}, diagnostics));
  SamplePlan sample;
  sample.plan = std::move(compiled.plan);
  for (const auto &weight : compiled.weights)
    sample.weights.emplace_back(weight->bytes().begin(), weight->bytes().end());
  return sample;
}

inline std::vector<int64_t> randomIds(int64_t batch, std::mt19937 &random) {
  std::vector<int64_t> ids(batch * kContext);
  for (int64_t &id : ids)
    id = int64_t(random() % kVocabulary);
  return ids;
}

/// The features of texts of kContext ids each, in f16. `runner` is a Context or a Session.
template <class Runner> std::vector<std::byte> features(Runner &runner, std::vector<int64_t> ids) {
  const int64_t batch = int64_t(ids.size()) / kContext;
  const std::vector<int64_t> inSizes = {batch, kContext}, outSizes = {batch, kEmbedding};
  std::vector<std::byte> y(batch * kEmbedding * 2);
  const TensorView in{ids.data(), DType::I64, DeviceKind::Cpu, inSizes, {}},
      out{y.data(), DType::F16, DeviceKind::Cpu, outSizes, {}};
  const Status status = runner.run("main", {&in, 1}, {&out, 1});
  EXPECT_TRUE(status.isOk()) << status.message();
  return y;
}

/// The architecture of this machine's GPU.
inline backend::Arch archHere() {
  const Result<Gpu> gpu = findGpu(0);
  return gpu.isOk() && checkGpu(*gpu, kHopper).isOk() ? backend::Arch::Sm90a : backend::Arch::Sm80;
}

} // namespace cgc::test
