// Output names: reads extra/cgc.json of the archive and checks it against the methods' types.
#include "frontend/output_names.h"

#include <ATen/core/jit_type.h>
#include <caffe2/serialize/inline_container.h>
#include <nlohmann/json.hpp>

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <optional>
#include <set>

namespace cgc::frontend {
namespace {

using Json = nlohmann::json;

constexpr const char *kRecord = "extra/cgc.json";
constexpr size_t kMaxOutputNameBytes = 128;

Status refused(const std::string &why) {
  return {Code::InvalidFile, std::string(kRecord) + ": " + why};
}

bool isTensor(const c10::TypePtr &type) {
  if (auto optional = type->cast<c10::OptionalType>())
    return isTensor(optional->getElementType());
  return type->kind() == c10::TypeKind::TensorType;
}

/// Returns the number of outputs of a method that returns a tensor or a tuple of tensors; nullopt
/// for any other method.
std::optional<size_t> countOutputs(const c10::TypePtr &type) {
  if (isTensor(type))
    return 1;
  auto tuple = type->cast<c10::TupleType>();
  if (!tuple || tuple->elements().empty() || !llvm::all_of(tuple->elements(), isTensor))
    return std::nullopt;
  return tuple->elements().size();
}

bool isName(const Json &name) {
  const auto *text = name.get_ptr<const std::string *>();
  return text && !text->empty() && text->size() <= kMaxOutputNameBytes &&
         llvm::all_of(
             *text, [](char c) { return llvm::isAlnum(c) || llvm::StringRef("_.-").contains(c); });
}

/// Returns the names of the outputs of `method`, from `list`.
Result<std::vector<std::string>> namesOf(const std::string &method, const Json &list,
                                         const torch::jit::Module &module) {
  const auto found = module.find_method(method);
  if (!found) {
    std::string known;
    for (const torch::jit::Method &other : module.get_methods())
      known += (known.empty() ? "" : ", ") + other.name();
    return refused("the model has no method '" + method + "'; it has " + known);
  }
  const c10::TypePtr type = found->function().getSchema().returns().at(0).type();
  if (type->kind() == c10::TypeKind::DictType)
    return refused("'" + method +
                   "' returns a dict, whose keys name its outputs; leave the method out");
  const std::optional<size_t> count = countOutputs(type);
  if (!count)
    return refused("'" + method + "' returns " + type->annotation_str() +
                   "; only the outputs of a tensor or of a tuple of tensors can be named here");
  if (!list.is_array() || !llvm::all_of(list, isName))
    return refused("the names of the outputs of '" + method +
                   "' must be a list of strings, each of 1 to " +
                   std::to_string(kMaxOutputNameBytes) + " letters, digits, '_', '.' and '-'");
  if (list.size() != *count)
    return refused("'" + method + "' returns " + std::to_string(*count) + " outputs, not the " +
                   std::to_string(list.size()) + " that are named");
  std::set<std::string> seen;
  for (const Json &name : list)
    if (!seen.insert(name).second)
      return refused("two outputs of '" + method + "' are named '" + std::string(name) + "'");
  return list.get<std::vector<std::string>>();
}

} // namespace

Result<OutputNames> readOutputNames(const std::string &path, const torch::jit::Module &module) {
  caffe2::serialize::PyTorchStreamReader reader(path);
  if (!reader.hasRecord(kRecord))
    return OutputNames();
  const auto [data, size] = reader.getRecord(kRecord);
  const auto *text = static_cast<const char *>(data.get());
  const Json json = Json::parse(text, text + size, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.size() != 1 || !json.contains("outputs") ||
      !json["outputs"].is_object())
    return refused("expected a JSON object {\"outputs\": {\"forward\": [\"name\", ...]}} and no "
                   "other key; export the file again");
  OutputNames names;
  for (const auto &[method, list] : json["outputs"].items()) {
    CGC_ASSIGN_OR_RETURN(names[method], namesOf(method, list, module));
  }
  return names;
}

} // namespace cgc::frontend
