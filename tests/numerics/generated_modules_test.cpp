// Modules that generated_modules.py makes: none ends in an internal error, and what compiles equals
// LibTorch. The environment variables CGC_GENERATED_MODULES and CGC_GENERATED_SEED ask for other
// modules than the sample (docs/fuzzing.md).
#include "driver/compile.h"
#include "frontend/frontend.h"
#include "runtime/exec/engine.h"
#include "tests/numerics/lowered_graph.h"
#include "tests/numerics/test_models.h"
#include "tests/paths.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

namespace cgc {
namespace {

struct GeneratedInput {
  driver::InputSpec spec;
  at::Tensor values;
  TensorView view() const {
    return {values.data_ptr(), spec.dtype, DeviceKind::Cpu, spec.sizes, {}};
  }
};

/// "x=f32[2,6,4]", with values that are valid indices of anything if they are integers.
GeneratedInput parseInput(const std::string &text) {
  const size_t equals = text.find('='), bracket = text.find('[');
  GeneratedInput input;
  input.spec.name = text.substr(0, equals);
  input.spec.dtype = *parseDType(text.substr(equals + 1, bracket - equals - 1));
  std::istringstream sizes(text.substr(bracket + 1));
  for (int64_t size = 0; sizes >> size; sizes.ignore())
    input.spec.sizes.push_back(size);
  at::Generator random = at::detail::createCPUGenerator(3);
  input.values =
      test::randomTensor(ir::TensorType::dense(input.spec.dtype, input.spec.sizes), 3, random);
  return input;
}

enum class Ending { Equal, Refused, InternalError, Wrong };

struct Outcome {
  Ending ending;
  std::string text = {};
};

/// Whether a refusal is one of the model, and no message about cgc's own code.
Outcome refusal(const Status &status) {
  const std::string &text = status.message();
  const bool isInternal = (status.code() != Code::Unsupported && status.code() != Code::Usage) ||
                          text.find("bug") != std::string::npos ||
                          text.find("nternal") != std::string::npos;
  return {isInternal ? Ending::InternalError : Ending::Refused, text};
}

at::Tensor tensorOf(const TensorView &view) {
  return at::from_blob(const_cast<void *>(static_cast<const void *>(view.data)),
                       {view.sizes.data(), view.sizes.size()}, test::torchType(view.dtype))
      .clone();
}

class GeneratedModules : public testing::Test {
protected:
  static Outcome check(const std::string &path, const std::vector<GeneratedInput> &inputs) {
    auto root = frontend::importTorchScript(path);
    if (!root.isOk())
      return refusal(root.status());
    driver::CompileOptions options;
    for (const GeneratedInput &input : inputs)
      options.inputs.push_back(input.spec);
    options.entries = {"forward"};
    options.target = DeviceKind::Cpu;
    options.libraryFolder = kLibraries;
    ir::Diagnostics diagnostics;
    auto compiled = driver::compile(**root, options, diagnostics);
    if (!compiled.isOk())
      return refusal(driver::withDiagnostics(compiled.status(), diagnostics));
    std::vector<std::vector<std::byte>> weights;
    for (const auto &weight : compiled->weights)
      weights.emplace_back(weight->bytes().begin(), weight->bytes().end());
    auto plan = Plan::fromMemory(std::move(compiled->plan), std::move(weights));
    if (!plan.isOk())
      return {Ending::InternalError, plan.status().message()};
    return compare(path, *plan, inputs);
  }

  static Outcome compare(const std::string &path, const Plan &plan,
                         const std::vector<GeneratedInput> &inputs) {
    std::map<std::string, TensorView> byName;
    std::vector<TensorView> all, used;
    std::vector<std::string> names;
    for (const GeneratedInput &input : inputs) {
      byName[input.spec.name] = input.view();
      all.push_back(input.view());
      names.push_back(input.spec.name);
    }
    const Bucket &bucket = plan.data().entries[0].buckets[0];
    for (const IoTensor &input : bucket.inputs)
      used.push_back(byName.at(input.name));
    std::vector<std::vector<std::byte>> results;
    std::vector<TensorView> outputs;
    for (const IoTensor &output : bucket.outputs) {
      results.emplace_back(*tensorBytes(output.dtype, output.sizes) + 1);
      outputs.push_back({results.back().data(), output.dtype, DeviceKind::Cpu, output.sizes, {}});
    }
    auto reference = frontend::loadReference(path, DeviceKind::Cpu, std::nullopt);
    if (!reference.isOk())
      return {Ending::InternalError, reference.status().message()};
    const auto expected = (*reference)->run("forward", all, names);
    auto engine = Engine::create(plan, {.executor = {}, .device = 0, .providerPath = kLibraries});
    if (!engine.isOk())
      return {Ending::InternalError, engine.status().message()};
    auto context = Context::create(*engine);
    const Status ran = context.isOk() ? context->run("forward", used, outputs) : context.status();
    if (!ran.isOk() || !expected.isOk()) // Both refuse, such as an index out of range.
      return ran.isOk() == expected.isOk()
                 ? Outcome{Ending::Refused, ran.message()}
                 : Outcome{Ending::Wrong,
                           "cgc: " + ran.message() + "; LibTorch: " + expected.status().message()};
    if (expected->size() != outputs.size())
      return {Ending::Wrong, "the number of outputs"};
    for (size_t i = 0; i < outputs.size(); ++i) {
      const frontend::HostTensor &want = (*expected)[i];
      if (want.dtype != outputs[i].dtype || !std::ranges::equal(want.sizes, outputs[i].sizes))
        return {Ending::Wrong, "dtype or sizes of output " + std::to_string(i)};
      const at::Tensor got = tensorOf(outputs[i]),
                       wanted = tensorOf({const_cast<std::byte *>(want.bytes.data()),
                                          want.dtype,
                                          DeviceKind::Cpu,
                                          want.sizes,
                                          {}});
      // Rounding differs where an op is another one, and grows in what follows.
      const double tolerance = isFloating(want.dtype) ? 1e-3 : 0;
      if (!at::allclose(got.to(at::kDouble), wanted.to(at::kDouble), tolerance, tolerance,
                        /*equal_nan=*/true))
        return {Ending::Wrong, "output " + std::to_string(i)};
    }
    return {Ending::Equal};
  }

  inline static const std::string kLibraries = test::buildDir() / "lib";
};

TEST_F(GeneratedModules, NoneEndsInAnInternalErrorOrAnotherResult) {
  const auto number = [](const char *variable, int otherwise) {
    const char *text = std::getenv(variable);
    return text ? std::atoi(text) : otherwise;
  };
  const int count = number("CGC_GENERATED_MODULES", 150), seed = number("CGC_GENERATED_SEED", 1);
  const std::string folder = test::generatedModules(count, seed);
  std::ifstream index(folder + "/index.txt");
  std::map<Ending, int> endings;
  std::string line;
  while (std::getline(index, line)) {
    std::istringstream words(line);
    std::string name, kind, word;
    words >> name >> kind;
    std::vector<GeneratedInput> inputs;
    while (words >> word)
      inputs.push_back(parseInput(word));
    const Outcome outcome = check(folder + "/" + name + ".pt", inputs);
    ++endings[outcome.ending];
    if (outcome.ending == Ending::InternalError || outcome.ending == Ending::Wrong)
      ADD_FAILURE() << folder << "/" << name << ".py, " << kind << ": "
                    << (outcome.ending == Ending::Wrong ? "another result: " : "internal error: ")
                    << outcome.text;
  }
  const int all = endings[Ending::Equal] + endings[Ending::Refused];
  std::cout << endings[Ending::Equal] << " equal, " << endings[Ending::Refused] << " refused, "
            << endings[Ending::InternalError] << " internal errors, " << endings[Ending::Wrong]
            << " wrong\n";
  EXPECT_GE(all, count * 9 / 10);
  // 22 % of the sample. A frontend or a pass that refuses more finds nothing here.
  EXPECT_LE(endings[Ending::Refused], all * 3 / 10);
}

} // namespace
} // namespace cgc
