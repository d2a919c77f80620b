// Optimizers: several steps of cgc.sgd and cgc.adam, lowered and run, against LibTorch's
// torch::optim. cgc.uniform against Philox in plain C++.
#include "runtime/base/philox.h"
#include "tests/numerics/lowered_graph.h"

#include <ATen/ATen.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include <cstring>

namespace cgc::test {
namespace {

using Tensors = std::vector<at::Tensor>;

/// A target and the executor that runs its plans here.
struct Runner {
  std::string name;
  DeviceKind target;
  ExecutorKind executor;
};

std::vector<Runner> runnersHere() {
  std::vector<Runner> runners = {{"Cpu", DeviceKind::Cpu, ExecutorKind::Stream},
                                 {"Reference", DeviceKind::Cuda, ExecutorKind::Reference}};
  if (int devices = 0; cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0)
    runners.push_back({"Cuda", DeviceKind::Cuda, ExecutorKind::Graph});
  return runners;
}

/// An optimizer as an op and as LibTorch has it.
struct Rule {
  std::string name, op, options;
  unsigned moments; ///< The tensors that it keeps for each parameter.
  std::unique_ptr<torch::optim::Optimizer> (*make)(Tensors parameters);
};

constexpr double kLearningRate = 0x1p-6; // An f32 represents it.

std::unique_ptr<torch::optim::Optimizer> sgd(Tensors parameters, torch::optim::SGDOptions options) {
  return std::make_unique<torch::optim::SGD>(std::move(parameters), std::move(options));
}
std::unique_ptr<torch::optim::Optimizer> adam(Tensors parameters,
                                              torch::optim::AdamOptions options) {
  return std::make_unique<torch::optim::Adam>(std::move(parameters), std::move(options));
}

const Rule kRules[] = {
    {"Sgd", "cgc.sgd", "", 0,
     [](Tensors parameters) { return sgd(std::move(parameters), {kLearningRate}); }},
    {"SgdWithDecay", "cgc.sgd", "weight_decay=0.05", 0,
     [](Tensors parameters) {
       return sgd(std::move(parameters),
                  torch::optim::SGDOptions(kLearningRate).weight_decay(0.05));
     }},
    {"SgdWithMomentum", "cgc.sgd", "momentum=0.9, dampening=0.25, weight_decay=0.05", 1,
     [](Tensors parameters) {
       return sgd(std::move(parameters), torch::optim::SGDOptions(kLearningRate)
                                             .momentum(0.9)
                                             .dampening(0.25)
                                             .weight_decay(0.05));
     }},
    {"SgdWithNesterov", "cgc.sgd", "momentum=0.9, nesterov=true", 1,
     [](Tensors parameters) {
       return sgd(std::move(parameters),
                  torch::optim::SGDOptions(kLearningRate).momentum(0.9).nesterov(true));
     }},
    {"Adam", "cgc.adam", "", 2,
     [](Tensors parameters) { return adam(std::move(parameters), {kLearningRate}); }},
    {"AdamWithDecay", "cgc.adam", "beta1=0.85, beta2=0.98, eps=1e-06, weight_decay=0.05", 2,
     [](Tensors parameters) {
       return adam(std::move(parameters), torch::optim::AdamOptions(kLearningRate)
                                              .betas({0.85, 0.98})
                                              .eps(1e-6)
                                              .weight_decay(0.05));
     }},
    {"AdamW", "cgc.adam", "weight_decay=0.05, decoupled=true", 2,
     [](Tensors parameters) -> std::unique_ptr<torch::optim::Optimizer> {
       return std::make_unique<torch::optim::AdamW>(
           std::move(parameters), torch::optim::AdamWOptions(kLearningRate).weight_decay(0.05));
     }},
};

/// The sizes of the parameters.
const std::vector<std::vector<int64_t>> kSizes = {{7, 5}, {}, {130}};

/// "f32[7,5]".
std::string typeText(const std::string &dtype, const std::vector<int64_t> &sizes) {
  std::string text;
  for (const int64_t size : sizes)
    text += (text.empty() ? "" : ",") + std::to_string(size);
  return dtype + "[" + text + "]";
}

/// A graph @g of one step. Inputs: the lists of parameters, gradients and each moment, lr, step,
/// scale and skip.
std::string updateText(const Rule &rule, const std::string &dtype) {
  std::string inputs, types, results;
  std::vector<std::string> lists(2 + rule.moments);
  for (size_t list = 0; list < lists.size(); ++list)
    for (size_t i = 0; i < kSizes.size(); ++i) {
      const std::string name = "%x" + std::to_string(list) + "_" + std::to_string(i);
      lists[list] += (i == 0 ? "" : ", ") + name;
      inputs += name + ": " + typeText(dtype, kSizes[i]) + ", ";
      if (list == 1) // There is no result for a gradient.
        continue;
      const bool isFirst = types.empty();
      types += (isFirst ? "" : ", ") + typeText(dtype, kSizes[i]);
      results += (isFirst ? "%r" : ", %r") + std::to_string(list) + "_" + std::to_string(i);
    }
  std::string arguments = "[" + lists[0] + "], [" + lists[1] + "], ";
  for (size_t list = 2; list < lists.size(); ++list)
    arguments += "[" + lists[list] + "], ";
  if (rule.moments == 0)
    arguments += "[], ";
  return "graph @g(" + inputs + "%lr: f32[], %n: i64[], %s: f32[], %k: bool[]) {\n  " + results +
         " = " + rule.op + "(" + arguments + "%lr, %n, %s, %k)" +
         (rule.options.empty() ? "" : " {" + rule.options + "}") + " : " + types + "\n  output " +
         results + "\n}";
}

using OptimizerCase = std::tuple<Rule, std::string, Runner>;
class Optimizers : public testing::TestWithParam<OptimizerCase> {};

TEST_P(Optimizers, EqualLibTorch) {
  const auto &[rule, dtypeName, runner] = GetParam();
  const at::ScalarType dtype = dtypeName == "f64" ? at::kDouble : at::kFloat;
  LoweredGraph graph(updateText(rule, dtypeName), 3, runner.target, runner.executor);
  ASSERT_TRUE(graph.isOk());
  // Random tensors of the right sizes: parameters, then gradients.
  const Tensors random = graph.randomInputs("g");
  const size_t count = kSizes.size();
  Tensors parameters, expected, moments;
  for (size_t i = 0; i < count; ++i) {
    parameters.push_back(random[i]);
    expected.push_back(random[i].clone());
  }
  for (size_t i = 0; i < rule.moments * count; ++i)
    moments.push_back(at::zeros_like(parameters[i % count]));
  const auto optimizer = rule.make(expected);
  constexpr double kScale = 0.5;
  int64_t step = 1;
  for (int run = 0; run < 6; ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    const bool skips = run == 2;
    Tensors inputs = parameters;
    for (size_t i = 0; i < count; ++i) {
      const at::Tensor gradient = at::cos(random[count + i] * (run + 1.0));
      inputs.push_back(skips ? gradient / 0 : gradient);
      expected[i].mutable_grad() = gradient * kScale;
    }
    inputs.insert(inputs.end(), moments.begin(), moments.end());
    inputs.push_back(at::scalar_tensor(kLearningRate, at::kFloat));
    inputs.push_back(at::scalar_tensor(step, at::kLong));
    inputs.push_back(at::scalar_tensor(kScale, at::kFloat));
    inputs.push_back(at::scalar_tensor(skips, at::kBool));
    auto results = graph.run("g", inputs);
    ASSERT_TRUE(results) << results.status().message();
    if (!skips) {
      optimizer->step();
      ++step;
    }
    parameters.assign(results->begin(), results->begin() + count);
    moments.assign(results->begin() + count, results->end());
    const double tolerance = dtype == at::kDouble ? 1e-12 : 2e-6;
    for (size_t i = 0; i < count; ++i)
      EXPECT_TRUE(at::allclose(parameters[i], expected[i], tolerance, tolerance / 10))
          << "parameter " << i << ": " << parameters[i] << "\nexpected\n"
          << expected[i];
  }
}

INSTANTIATE_TEST_SUITE_P(All, Optimizers,
                         testing::Combine(testing::ValuesIn(kRules), testing::Values("f32", "f64"),
                                          testing::ValuesIn(runnersHere())),
                         [](const auto &info) {
                           return std::get<0>(info.param).name + "_" + std::get<1>(info.param) +
                                  "_" + std::get<2>(info.param).name;
                         });

class Uniform : public testing::TestWithParam<Runner> {};

TEST_P(Uniform, EqualsPhiloxBitByBit) {
  constexpr int64_t kElements = 1027; // The last block is not full.
  for (const uint32_t stream : {0u, 7u, 0xdeadbeefu}) {
    LoweredGraph graph("graph @g(%s: i64[], %o: i64[]) {\n  %0 = cgc.uniform(%s, %o) "
                       "{size=[13, 79], stream=" +
                           std::to_string(stream) + "} : f32[13,79]\n  output %0\n}",
                       3, GetParam().target, GetParam().executor);
    ASSERT_TRUE(graph.isOk());
    for (const int64_t seed : {int64_t{0}, int64_t{-2}, int64_t{0x123456789abcdef}})
      for (const int64_t offset : {int64_t{0}, int64_t{5} << 32, int64_t{-1}}) {
        auto results = graph.run(
            "g", {at::scalar_tensor(seed, at::kLong), at::scalar_tensor(offset, at::kLong)});
        ASSERT_TRUE(results) << results.status().message();
        const auto *numbers = static_cast<const float *>((*results)[0].data_ptr());
        for (int64_t i = 0; i < kElements; ++i) {
          const PhiloxWords words = uniformWords(uint32_t(i / 4), stream, seed, offset);
          ASSERT_EQ(numbers[i], uniformNumber(words.words[i % 4]))
              << "element " << i << ", stream " << stream << ", seed " << seed << ", offset "
              << offset;
        }
      }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Uniform, testing::ValuesIn(runnersHere()),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace cgc::test
