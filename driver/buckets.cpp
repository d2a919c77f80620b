// Buckets: chooses the methods and input shapes to compile.
#include "driver/buckets.h"

#include "driver/entry_groups.h"
#include "ir/text/text.h"
#include "runtime/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace cgc::driver {

namespace {

const InputSpec *findSpec(const std::vector<InputSpec> &specs, std::string_view name) {
  const auto found = std::ranges::find(specs, name, &InputSpec::name);
  return found == specs.end() ? nullptr : &*found;
}

std::vector<std::string> inputNames(const ir::Graph &method) {
  std::vector<std::string> names;
  for (const ir::Value *input : method.inputs())
    names.push_back(input->name());
  return names;
}

/// The specs of the method's inputs, in its order, without inputs that keep their defaults. Usage,
/// naming the missing inputs, if one has neither a spec nor a default.
Result<std::vector<InputSpec>> specsOf(const ir::Graph &method,
                                       const std::vector<InputSpec> &inputs) {
  std::vector<InputSpec> chosen;
  std::vector<std::string> missing;
  for (const ir::Value *input : method.inputs()) {
    const InputSpec *spec = findSpec(inputs, input->name());
    if (spec && isTensorInput(*input))
      chosen.push_back(*spec);
    else if (!input->node()->defaultValue())
      missing.push_back(input->name());
  }
  if (missing.empty() && !chosen.empty())
    return chosen;
  if (missing.empty())
    return Status(Code::Usage,
                  fmt::format("none of the inputs of method {} is given", describeMethod(method)));
  return Status(Code::Usage,
                fmt::format("method {} has no type for {}; add {}=DTYPE[SIZES]",
                            describeMethod(method), fmt::join(missing, ", "), missing[0]));
}

/// Usage unless every name in `inputs` is a tensor input of some method.
Status checkNames(const ir::Module &root, const std::vector<InputSpec> &inputs) {
  for (const InputSpec &spec : inputs) {
    const ir::Value *flag = nullptr;
    bool known = false;
    for (const auto &method : root.graphs())
      for (const ir::Value *input : method->inputs())
        if (input->name() == spec.name) {
          known = known || isTensorInput(*input);
          flag = input;
        }
    if (!flag)
      return Status(Code::Usage, fmt::format("no method of the model has an input '{}'; it has {}",
                                             spec.name, describeMethods(root)));
    if (!known)
      return Status(Code::Usage,
                    fmt::format("input '{}' is no tensor: it stays at its default, {}", spec.name,
                                ir::argText(*flag->node()->defaultValue())));
  }
  return Status::ok();
}

Result<std::vector<const ir::Graph *>> chooseMethods(const ir::Module &root,
                                                     const std::vector<InputSpec> &inputs,
                                                     const std::vector<std::string> &entries) {
  for (const std::string &entry : entries)
    if (!root.findGraph(entry))
      return Status(Code::Usage, fmt::format("the model has no method '{}'; it has {}", entry,
                                             describeMethods(root)));
  std::vector<const ir::Graph *> methods;
  for (const auto &method : root.graphs()) {
    const bool wanted = entries.empty() ? specsOf(*method, inputs).isOk()
                                        : std::ranges::count(entries, method->name()) > 0;
    if (wanted)
      methods.push_back(method.get());
  }
  if (methods.empty())
    return Status(Code::Usage, fmt::format("give a type NAME=DTYPE[SIZES] for every input of at "
                                           "least one method; the model has {}",
                                           describeMethods(root)));
  return methods;
}

Result<BucketSpec> makeBucket(const ir::Graph &method, std::vector<InputSpec> inputs,
                              std::optional<int64_t> batch) {
  for (InputSpec &input : inputs) {
    if (!batch)
      break;
    if (input.sizes.empty())
      return Status(
          Code::Usage,
          fmt::format("a batch size replaces dimension 0, but input '{}' has none", input.name));
    input.sizes[0] = *batch;
    if (!tensorBytes(input.dtype, input.sizes))
      return Status(Code::Usage,
                    fmt::format("batch size {}: input '{}' gets too large", *batch, input.name));
  }
  return BucketSpec{method.name(), std::move(inputs)};
}

} // namespace

std::string describeMethod(const ir::Graph &method) {
  auto names = inputNames(method);
  for (size_t i = 0; i < names.size(); ++i)
    if (const auto defaults = method.inputs()[i]->node()->args(); !defaults.empty())
      names[i] += " = " + ir::argText(defaults[0]);
  return fmt::format("{}({})", method.name(), fmt::join(names, ", "));
}

std::string describeMethods(const ir::Module &root) {
  std::vector<std::string> methods;
  for (const auto &method : root.graphs())
    methods.push_back(describeMethod(*method));
  return methods.empty() ? "no methods" : fmt::format("{}", fmt::join(methods, ", "));
}

std::vector<ir::Type> typesOf(const ir::Graph &method, const BucketSpec &bucket) {
  std::vector<ir::Type> types;
  for (const ir::Value *input : method.inputs()) {
    const InputSpec *spec = findSpec(bucket.inputs, input->name());
    types.push_back(spec ? ir::Type(ir::TensorType::dense(spec->dtype, spec->sizes)) : ir::Type());
  }
  return types;
}

Result<std::vector<BucketSpec>> chooseBuckets(const ir::Module &root,
                                              const std::vector<InputSpec> &inputs,
                                              const std::vector<int64_t> &batches,
                                              const std::vector<std::string> &entries) {
  CGC_TRY(checkNames(root, inputs));
  CGC_ASSIGN_OR_RETURN(const auto methods, chooseMethods(root, inputs, entries));
  std::vector<std::optional<int64_t>> wanted(batches.begin(), batches.end());
  if (wanted.empty())
    wanted.push_back(std::nullopt);
  std::vector<BucketSpec> buckets;
  for (const ir::Graph *method : methods) {
    CGC_ASSIGN_OR_RETURN(const auto specs, specsOf(*method, inputs));
    for (const auto &batch : wanted) {
      CGC_ASSIGN_OR_RETURN(BucketSpec bucket, makeBucket(*method, specs, batch));
      buckets.push_back(std::move(bucket));
    }
  }
  return buckets;
}

Status checkShapes(const std::vector<BucketSpec> &buckets, const ir::ShapesOfMethods &shapes) {
  for (const BucketSpec &bucket : buckets) {
    const auto ofMethod = shapes.find(bucket.entry);
    if (ofMethod == shapes.end())
      continue;
    std::vector<ir::GivenInput> given;
    for (const InputSpec &input : bucket.inputs)
      given.push_back({input.name, input.dtype, input.sizes});
    CGC_TRY(ir::checkInputs(ofMethod->second, given));
  }
  return Status::ok();
}

} // namespace cgc::driver
