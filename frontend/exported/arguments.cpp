// Arguments: the unions, types of tensors and trees of outputs in torch.export's schema
// (torch/_export/serde/schema.py), major version 8.
#include "frontend/exported/json.h"

#include "runtime/base/printable.h"

#include <limits>

namespace cgc::exported {
namespace {

constexpr unsigned kMaxArgumentDepth = 16;
constexpr int64_t kStrided = 7;

struct DTypeRow {
  int64_t number;
  std::optional<DType> dtype;
  const char *name;
};
constexpr DTypeRow kDTypes[] = {
    {1, DType::U8, "uint8"},
    {2, DType::I8, "int8"},
    {3, DType::I16, "int16"},
    {4, DType::I32, "int32"},
    {5, DType::I64, "int64"},
    {6, DType::F16, "float16"},
    {7, DType::F32, "float32"},
    {8, DType::F64, "float64"},
    {9, std::nullopt, "complex32"},
    {10, std::nullopt, "complex64"},
    {11, std::nullopt, "complex128"},
    {12, DType::Bool, "bool"},
    {13, DType::BF16, "bfloat16"},
    {28, std::nullopt, "uint16"},
    {29, std::nullopt, "float8_e4m3fn"},
    {30, std::nullopt, "float8_e5m2"},
    {31, std::nullopt, "float8_e4m3fnuz"},
    {32, std::nullopt, "float8_e5m2fnuz"},
};

Argument constant(ir::Arg arg) {
  return {std::move(arg)};
}

Argument refused(std::string reason) {
  return {Argument::Refused{std::move(reason)}};
}

/// JSON has no number for these, and torch writes them as text.
double parseFloat(const Json &json) {
  if (!json.is_string())
    return json.get<double>();
  const auto text = json.get<std::string>();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "Infinity")
    return kInfinity;
  if (text == "-Infinity")
    return -kInfinity;
  if (text == "NaN")
    return std::numeric_limits<double>::quiet_NaN();
  throw Malformed{"'" + printable(text) + "' is no number"};
}

int64_t parseInt(const Json &json) {
  if (!json.is_number_integer())
    throw Malformed{"a number is not an integer"};
  return json.get<int64_t>();
}

Argument tensor(const Json &json) {
  return {Argument::Name{json.at("name").get<std::string>(), true}};
}

template <class Parse> Argument list(const Json &json, Parse &&parse) {
  if (!json.is_array())
    throw Malformed{"a list is none"};
  Argument::List elements;
  for (const Json &element : json)
    elements.push_back(parse(element));
  return {std::move(elements)};
}

Argument dtype(const Json &json) {
  const SchemaDType type = schemaDType(parseInt(json));
  return type.dtype ? constant(ir::Arg(*type.dtype))
                    : refused("cgc has no dtype " + type.name +
                              "; convert this part of the model to a floating or integer dtype");
}

Argument device(const Json &json) {
  const auto type = json.at("type").get<std::string>();
  const std::optional<DeviceKind> kind = parseDevice(type);
  return kind ? constant(ir::Arg(*kind))
              : refused("cgc has no device '" + printable(type) +
                        "'; export the model on the CPU or on a GPU");
}

/// A number that may be a value: {"as_name": …} or {"as_int": …}.
Argument symbolic(const Json &json, unsigned depth) {
  const auto [kind, value] = unionOf(json);
  if (kind == "as_name")
    return {Argument::Name{value.get<std::string>(), false}};
  return parseArgument(json, depth);
}

std::optional<ir::LinearSize> size(const Json &json) {
  const auto [kind, value] = unionOf(json);
  if (kind == "as_int")
    return ir::LinearSize{"", 0, parseInt(value)};
  if (kind != "as_expr")
    throw Malformed{"a size is '" + printable(kind) + "'"};
  return parseSize(value.at("expr_str").get<std::string>());
}

std::optional<int64_t> hint(const Json &json) {
  const auto [kind, value] = unionOf(json);
  if (kind == "as_int")
    return parseInt(value);
  const auto found = value.find("hint");
  if (found == value.end() || found->is_null())
    return std::nullopt;
  const auto [hintKind, hintValue] = unionOf(*found);
  return hintKind == "as_int" ? std::optional(parseInt(hintValue)) : std::nullopt;
}

/// Returns the keys that `context` lists, if it lists one for each of `count` elements. torch
/// writes a context as JSON or as text with JSON in it.
std::vector<std::string> keysOf(const Json &context, size_t count) {
  Json keys = context;
  if (keys.is_string())
    keys = Json::parse(keys.get<std::string>(), nullptr, /*allow_exceptions=*/false);
  if (!keys.is_array() || keys.size() != count)
    return {};
  std::vector<std::string> names;
  for (const Json &key : keys) {
    if (!key.is_string())
      return {};
    names.push_back(key.get<std::string>());
  }
  return names;
}

ValueTree tree(const Json &json, unsigned depth) {
  if (depth > kMaxArgumentDepth)
    throw Malformed{"the result of the program is nested too deep"};
  ValueTree result;
  if (json.at("type").is_null())
    return result;
  result.isLeaf = false;
  for (const Json &child : json.at("children_spec"))
    result.elements.push_back(tree(child, depth + 1));
  result.keys = keysOf(json.at("context"), result.elements.size());
  return result;
}

} // namespace

std::pair<std::string, const Json &> unionOf(const Json &json) {
  if (json.is_object())
    for (const auto &[name, value] : json.items())
      if (!value.is_null())
        return {name, value};
  throw Malformed{"a value has no kind"};
}

SchemaDType schemaDType(int64_t number) {
  for (const DTypeRow &row : kDTypes)
    if (row.number == number)
      return {row.dtype, row.name};
  return {std::nullopt, "number " + std::to_string(number)};
}

Argument parseArgument(const Json &json, unsigned depth) {
  if (depth > kMaxArgumentDepth)
    throw Malformed{"an argument is nested too deep"};
  const auto [kind, value] = unionOf(json);
  const auto element = [&](const Json &each) { return symbolic(each, depth + 1); };
  const auto optionalTensor = [&](const Json &each) { return parseArgument(each, depth + 1); };
  if (kind == "as_none")
    return constant(ir::Arg());
  if (kind == "as_tensor")
    return tensor(value);
  if (kind == "as_tensors")
    return list(value, tensor);
  if (kind == "as_optional_tensor")
    return optionalTensor(value);
  if (kind == "as_optional_tensors")
    return list(value, optionalTensor);
  if (kind == "as_int")
    return constant(ir::Arg(parseInt(value)));
  if (kind == "as_ints")
    return list(value, [](const Json &each) { return constant(ir::Arg(parseInt(each))); });
  if (kind == "as_float")
    return constant(ir::Arg(parseFloat(value)));
  if (kind == "as_floats")
    return list(value, [](const Json &each) { return constant(ir::Arg(parseFloat(each))); });
  if (kind == "as_bool")
    return constant(ir::Arg(value.get<bool>()));
  if (kind == "as_bools")
    return list(value, [](const Json &each) { return constant(ir::Arg(each.get<bool>())); });
  if (kind == "as_string")
    return constant(ir::Arg(value.get<std::string>()));
  if (kind == "as_strings")
    return list(value, [](const Json &each) { return constant(ir::Arg(each.get<std::string>())); });
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool")
    return symbolic(value, depth + 1);
  if (kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools")
    return list(value, element);
  if (kind == "as_scalar_type")
    return dtype(value);
  if (kind == "as_device")
    return device(value);
  if (kind == "as_memory_format" || kind == "as_layout")
    return constant(ir::Arg(parseInt(value)));
  return refused("cgc does not support an argument of the kind '" + printable(kind) + "'");
}

TensorMeta parseTensorMeta(const Json &json) {
  TensorMeta meta;
  const SchemaDType type = schemaDType(parseInt(json.at("dtype")));
  meta.dtype = type.dtype;
  meta.dtypeName = type.name;
  meta.isStrided = parseInt(json.at("layout")) == kStrided;
  meta.requiresGrad = json.at("requires_grad").get<bool>();
  for (const Json &each : json.at("sizes")) {
    meta.sizes.push_back(size(each));
    meta.hints.push_back(hint(each));
  }
  for (const Json &each : json.at("strides"))
    meta.strides.push_back(size(each));
  meta.offset = size(json.at("storage_offset"));
  return meta;
}

ValueTree parseTree(const std::string &text) {
  // [version, tree]
  return tree(Json::parse(text).at(1), 0);
}

} // namespace cgc::exported
