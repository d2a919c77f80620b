// sgd, adam, ema, square_sums, gradient_norm, uniform and dropout: against double precision, and
// the numbers of the last two bit by bit.
#include "runtime/base/philox.h"
#include "runtime/kernels/optimizer/gradient_norm.h"
#include "runtime/kernels/random/uniform.h"
#include "tests/conformance/kernel_fixture.h"

namespace cgc::test {
namespace {

HostTensor number(DType dtype, double value) {
  return withValues(emptyTensor(dtype, {}), {value});
}

/// The numbers of a step.
struct Step {
  double lr = 0.0625;
  int64_t number = 3;
  std::optional<double> scale = {};
  std::optional<bool> skip = {};
};

/// Sizes and offsets, in elements, of the tensors of groups: less than a vector, vectors with a
/// rest, chunks with a rest, and tensors that are not aligned.
struct GroupLayout {
  std::vector<int64_t> sizes;
  uint64_t offset = 0;
};
const std::vector<GroupLayout> kLayouts = {{{}},        {{3}},     {{33, 21}},
                                           {{5000}, 1}, {{20000}}, {{4096}}};

class Optimizer : public KernelTest {
protected:
  /// The groups of one launch; the tensors of a group are those that it reads. The gradient is
  /// tensor 1 of a group.
  using Groups = std::vector<std::vector<HostTensor>>;

  static Groups groupsOf(const std::vector<GroupLayout> &layouts, size_t tensors) {
    Groups groups;
    unsigned seed = 1;
    for (const GroupLayout &layout : layouts) {
      std::vector<HostTensor> &group = groups.emplace_back();
      for (size_t i = 0; i < tensors; ++i) {
        HostTensor tensor =
            withRandom(emptyTensor(DType::F32, layout.sizes, {}, layout.offset), seed++);
        if (i == 3) { // A mean of squares.
          std::vector<double> values = decodeAll(DType::F32, tensor.bytes);
          for (double &value : values)
            value = std::abs(value);
          tensor = withValues(tensor, values);
        }
        group.push_back(std::move(tensor));
      }
    }
    return groups;
  }

  /// Launches an optimizer with a grid of `blocks`. Returns the results of the groups in turn, each
  /// with its copy last if `copy` is given.
  std::vector<HostTensor> step(const std::string &kernel, const Groups &groups, const Step &step,
                               int64_t flag, std::vector<double> floats, uint64_t blocks = 3,
                               std::optional<DType> copy = {}) {
    Launch l{.kernel = kernel,
             .blocks = blocks,
             .threads = kGroupThreads,
             .reads = {number(DType::F32, step.lr), number(DType::I64, double(step.number)),
                       step.scale ? std::optional(number(DType::F32, *step.scale)) : std::nullopt,
                       step.skip ? std::optional(number(DType::Bool, *step.skip)) : std::nullopt},
             .writes = {},
             .ints = {flag},
             .floats = std::move(floats)};
    const Kernel &row = *findKernel(kernel);
    for (const std::vector<HostTensor> &group : groups) {
      const auto write = [&](std::optional<DType> dtype) {
        if (dtype)
          l.writes.push_back(
              emptyTensor(*dtype, group[0].sizes, group[0].strides, group[0].offset));
        else
          l.absentWrites.push_back(l.writes.size() + l.absentWrites.size());
      };
      for (size_t i = 0; i < row.groupReads(); ++i) {
        l.reads.push_back(i < group.size() ? std::optional(group[i]) : std::nullopt);
        if (i != 1)
          write(i < group.size() ? std::optional(DType::F32) : std::nullopt);
      }
      write(copy);
    }
    return launch(l);
  }

  /// Expects the results of each group to be `expected(group, i, list)`, of element `i` of list 0
  /// (the parameters) and so on.
  template <class F>
  static void expectResults(const std::vector<HostTensor> &results, const Groups &groups,
                            F expected) {
    const size_t lists = results.size() / groups.size();
    for (size_t g = 0; g < groups.size(); ++g)
      for (size_t list = 0; list < lists; ++list) {
        SCOPED_TRACE("group " + std::to_string(g) + ", list " + std::to_string(list));
        expectNear(
            results[g * lists + list], [&](uint64_t i) { return expected(groups[g], i, list); },
            1e-6, 1e-6);
      }
  }
};
CGC_ON_ALL_EXECUTORS(Optimizer);

struct SgdOptions {
  double momentum = 0, dampening = 0, weightDecay = 0;
  bool isNesterov = false;
};

/// The new parameter and momentum of element `i`.
std::array<double, 2> sgd(const std::vector<HostTensor> &group, uint64_t i, const Step &step,
                          const SgdOptions &o) {
  double g = group[1].at(i) * step.scale.value_or(1) + o.weightDecay * group[0].at(i), m = 0;
  if (o.momentum != 0) {
    m = step.number == 1 ? g : o.momentum * group[2].at(i) + (1 - o.dampening) * g;
    g = o.isNesterov ? g + o.momentum * m : m;
  }
  return {group[0].at(i) - step.lr * g, m};
}

TEST_P(Optimizer, Sgd) {
  const Groups groups = groupsOf(kLayouts, 3);
  for (const int64_t first : {1, 2})
    for (const SgdOptions &o : {SgdOptions{0.9, 0.25, 0.125, false}, {0.9, 0, 0, true}}) {
      const Step numbers{.number = first, .scale = 0.5, .skip = false};
      expectResults(
          step("sgd_f32", groups, numbers, o.isNesterov, {o.momentum, o.dampening, o.weightDecay}),
          groups, [&](const auto &group, uint64_t i, size_t list) {
            return sgd(group, i, numbers, o)[list];
          });
    }
}

TEST_P(Optimizer, SgdWithoutMomentum) {
  for (const GroupLayout &layout : kLayouts) {
    const Groups groups = groupsOf({layout}, 2);
    for (const SgdOptions &o : {SgdOptions{}, {0, 0, 0.125, false}})
      expectResults(
          step("sgd_f32", groups, {}, 0, {0, 0, o.weightDecay}, 1), groups,
          [&](const auto &group, uint64_t i, size_t list) { return sgd(group, i, {}, o)[list]; });
  }
}

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-3, weightDecay = 0;
  bool isDecoupled = false;
};

/// The new parameter and moments of element `i`.
std::array<double, 3> adam(const std::vector<HostTensor> &group, uint64_t i, const Step &step,
                           const AdamOptions &o) {
  double p = group[0].at(i), g = group[1].at(i) * step.scale.value_or(1);
  if (o.isDecoupled)
    p *= 1 - step.lr * o.weightDecay;
  else
    g += o.weightDecay * p;
  const double m = o.beta1 * group[2].at(i) + (1 - o.beta1) * g,
               v = o.beta2 * group[3].at(i) + (1 - o.beta2) * g * g,
               bias1 = 1 - std::pow(o.beta1, double(step.number)),
               bias2 = 1 - std::pow(o.beta2, double(step.number));
  return {p - step.lr / bias1 * m / (std::sqrt(v) / std::sqrt(bias2) + o.eps), m, v};
}

TEST_P(Optimizer, Adam) {
  const Groups groups = groupsOf(kLayouts, 4);
  for (const AdamOptions &o :
       {AdamOptions{}, {0.25, 0.5, 1e-2, 0.125, false}, {0.9, 0.95, 1e-3, 0.125, true}})
    for (const Step &numbers :
         {Step{}, {.number = 1, .scale = 0.5}, {.number = 100000, .skip = false}})
      for (const uint64_t blocks : {1, 7})
        expectResults(step("adam_f32", groups, numbers, o.isDecoupled,
                           {o.beta1, o.beta2, o.eps, o.weightDecay}, blocks),
                      groups, [&](const auto &group, uint64_t i, size_t list) {
                        return adam(group, i, numbers, o)[list];
                      });
}

/// The most groups of a launch, each in a chunk of its own.
TEST_P(Optimizer, SgdOf256Groups) {
  std::vector<GroupLayout> layouts;
  for (int64_t i = 0; i < int64_t(kMaxTensorGroups); ++i)
    layouts.push_back({{i % 37 + 1}, uint64_t(i % 2)});
  const Groups groups = groupsOf(layouts, 3);
  const SgdOptions options{.momentum = 0.9};
  expectResults(
      step("sgd_f32", groups, {}, 0, {0.9, 0, 0}, 100), groups,
      [&](const auto &group, uint64_t i, size_t list) { return sgd(group, i, {}, options)[list]; });
}

/// A skipped step writes the old values, though the gradients are not finite.
TEST_P(Optimizer, SkippedStep) {
  const Step skipped{.skip = true};
  for (const size_t tensors : {3, 4}) {
    Groups groups = groupsOf(kLayouts, tensors);
    for (std::vector<HostTensor> &group : groups)
      group[1] = withValues(group[1], std::vector<double>(group[1].bytes.size() / 4, INFINITY));
    const auto results = tensors == 3 ? step("sgd_f32", groups, skipped, 0, {0.9, 0, 0})
                                      : step("adam_f32", groups, skipped, 0, {0.9, 0.999, 1e-8, 0});
    for (size_t g = 0; g < groups.size(); ++g)
      for (size_t list = 0; list + 1 < tensors; ++list)
        expectEqual(results[g * (tensors - 1) + list],
                    [&](uint64_t i) { return groups[g][list == 0 ? 0 : list + 1].at(i); });
  }
}

TEST_P(Optimizer, Ema) {
  const Groups groups = groupsOf(kLayouts, 2);
  for (const double decay : {0.25, 0.999})
    for (const std::optional<bool> skip : {std::optional<bool>(), {false}, {true}}) {
      Launch l{.kernel = "ema_f32",
               .blocks = 3,
               .threads = kGroupThreads,
               .reads = {skip ? std::optional(number(DType::Bool, *skip)) : std::nullopt},
               .writes = {},
               .floats = {decay}};
      for (const std::vector<HostTensor> &group : groups) {
        l.reads.insert(l.reads.end(), group.begin(), group.end());
        l.writes.push_back(emptyTensor(DType::F32, group[0].sizes, {}, group[0].offset));
      }
      expectResults(launch(l), groups, [&](const auto &group, uint64_t i, size_t) {
        const double average = group[0].at(i);
        return skip.value_or(false) ? average : decay * average + (1 - decay) * group[1].at(i);
      });
    }
}

/// The copies are the new parameters, or the old ones in a skipped step, rounded.
TEST_P(Optimizer, WritesCopies) {
  for (const size_t tensors : {2, 3, 4})
    for (const DType dtype : {DType::F16, DType::BF16})
      for (const bool skips : {false, true}) {
        const Groups groups = groupsOf(kLayouts, tensors);
        const Step numbers{.skip = skips};
        const auto results =
            tensors == 4
                ? step("adam_f32", groups, numbers, 0, {0.9, 0.999, 1e-3, 0}, 3, dtype)
                : step("sgd_f32", groups, numbers, 0, {tensors == 3 ? 0.9 : 0, 0, 0}, 3, dtype);
        ASSERT_EQ(results.size(), groups.size() * tensors);
        for (size_t g = 0; g < groups.size(); ++g) {
          const HostTensor &parameter = results[g * tensors],
                           &copy = results[g * tensors + tensors - 1];
          const HostTensor rounded =
              withValues(emptyTensor(dtype, parameter.sizes, parameter.strides, parameter.offset),
                         decodeAll(DType::F32, parameter.bytes));
          expectEqual(copy, [&](uint64_t i) { return rounded.at(i); });
        }
      }
}

/// The parameter is overwritten; a skipped step leaves it.
TEST_P(Optimizer, OverwritesTheParameter) {
  for (const GroupLayout &layout : kLayouts)
    for (const bool skips : {false, true}) {
      const std::vector<HostTensor> group = groupsOf({layout}, 2)[0];
      const HostTensor result =
          launch({.kernel = "sgd_f32",
                  .blocks = 1,
                  .threads = kGroupThreads,
                  .reads = {number(DType::F32, 0.0625), number(DType::I64, 1), std::nullopt,
                            number(DType::Bool, skips), group[0], group[1], std::nullopt},
                  .writes = {emptyTensor(DType::F32, layout.sizes, {}, layout.offset)},
                  .ints = {0},
                  .floats = {0, 0, 0},
                  .overwritten = 4})[0];
      expectNear(
          result,
          [&](uint64_t i) { return group[0].at(i) - (skips ? 0 : 0.0625 * group[1].at(i)); }, 1e-6,
          1e-6);
    }
}

TEST_P(Optimizer, GradientNorm) {
  const Groups groups = groupsOf(kLayouts, 1);
  uint64_t chunks = 0;
  double squares = 0;
  Launch sums{.kernel = "square_sums_f32",
              .blocks = 2,
              .threads = kGroupThreads,
              .reads = {},
              .writes = {}};
  std::vector<double> expected;
  for (const std::vector<HostTensor> &group : groups) {
    sums.reads.emplace_back(group[0]);
    for (uint64_t i = 0; i < group[0].elements(); ++i) {
      if (i % kGroupChunk == 0)
        expected.push_back(0);
      expected.back() += group[0].at(i) * group[0].at(i);
      squares += group[0].at(i) * group[0].at(i);
    }
    chunks += groupChunks(group[0].elements());
  }
  sums.writes = {emptyTensor(DType::F32, {int64_t(chunks)})};
  const HostTensor parts = launch(sums)[0];
  expectNear(parts, [&](uint64_t i) { return expected[i]; }, 1e-6);
  const HostTensor norm = launch({.kernel = "gradient_norm_f32",
                                  .blocks = 1,
                                  .threads = kNormThreads,
                                  .reads = {parts},
                                  .writes = {emptyTensor(DType::F32, {})}})[0];
  expectNear(norm, [&](uint64_t) { return std::sqrt(squares); }, 1e-6);
}

/// More sums than threads, and none that is finite.
TEST_P(Optimizer, GradientNormOfManySums) {
  const auto norm = [&](const HostTensor &sums) {
    return launch({.kernel = "gradient_norm_f32",
                   .blocks = 1,
                   .threads = kNormThreads,
                   .reads = {sums},
                   .writes = {emptyTensor(DType::F32, {})}})[0];
  };
  std::vector<double> values(5000, 4);
  expectNear(
      norm(withValues(emptyTensor(DType::F32, {5000}), values)),
      [](uint64_t) { return std::sqrt(20000.0); }, 1e-6);
  values[4321] = INFINITY;
  expectNear(norm(withValues(emptyTensor(DType::F32, {5000}), values)),
             [](uint64_t) { return INFINITY; });
  values[17] = NAN;
  expectNear(norm(withValues(emptyTensor(DType::F32, {5000}), values)),
             [](uint64_t) { return NAN; });
}

TEST_P(Optimizer, Uniform) {
  // A double represents these seeds and offsets.
  for (const double seed : {0.0, -3.0, 0x1.23456789abcp+50})
    for (const GroupLayout &layout : {GroupLayout{{}}, {{7}}, {{33, 21}}, {{2051}, 1}})
      for (const double offset : {1.0, 0x1p40})
        for (const int64_t stream : {int64_t{0}, int64_t{0xfffffff1}}) {
          const HostTensor y = emptyTensor(DType::F32, layout.sizes, {}, layout.offset);
          const HostTensor result =
              launch({.kernel = "uniform_f32",
                      .blocks = uniformBlocks(y.elements()),
                      .threads = kUniformThreads,
                      .reads = {number(DType::I64, seed), number(DType::I64, offset)},
                      .writes = {y},
                      .ints = {stream}})[0];
          expectEqual(result, [&](uint64_t i) {
            const PhiloxWords words =
                uniformWords(uint32_t(i / 4), uint32_t(stream), int64_t(seed), int64_t(offset));
            return double(uniformNumber(words.words[i % 4]));
          });
        }
}

TEST_P(Optimizer, Dropout) {
  for (const auto &[name, dtype] : {std::pair("dropout_f32", DType::F32),
                                    {"dropout_f16", DType::F16},
                                    {"dropout_bf16", DType::BF16}})
    for (const GroupLayout &layout : {GroupLayout{{}}, {{7}}, {{33, 21}}, {{2051}, 1}, {{4096}}})
      for (const double p : {0.0, 0.3, 0.75}) {
        constexpr int64_t kSeed = -3, kOffset = int64_t{1} << 40, kStream = 0xfffffff1;
        const HostTensor x = withRandom(emptyTensor(dtype, layout.sizes, {}, layout.offset), 1);
        const HostTensor result =
            launch({.kernel = name,
                    .blocks = uniformBlocks(x.elements()),
                    .threads = kUniformThreads,
                    .reads = {number(DType::I64, kSeed), number(DType::I64, kOffset), x},
                    .writes = {emptyTensor(dtype, layout.sizes, {}, layout.offset)},
                    .ints = {kStream},
                    .floats = {p}})[0];
        const auto drops = [&](uint64_t i) {
          const PhiloxWords words = uniformWords(uint32_t(i / 4), kStream, kSeed, kOffset);
          return uniformNumber(words.words[i % 4]) < float(p);
        };
        // The factor is rounded too.
        expectNear(result, [&](uint64_t i) { return drops(i) ? 0 : x.at(i) / (1 - p); }, 1e-7);
      }
}

} // namespace
} // namespace cgc::test
