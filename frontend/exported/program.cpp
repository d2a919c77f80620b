// parseProgram, parsePayloads: torch.export's schema (torch/_export/serde/schema.py) as C++ types.
#include "frontend/exported/program.h"

#include "frontend/exported/json.h"
#include "frontend/exported/nodes.h"
#include "runtime/base/printable.h"

namespace cgc::exported {
namespace {

/// The version of the schema. Minor versions add fields, which a reader may ignore.
constexpr int64_t kMajor = 8;

Argument parseConstantInput(const Json &json) {
  const auto [kind, value] = unionOf(json);
  // A constant has the kinds of an argument.
  Json argument = Json::object();
  argument[kind] = value;
  return parseArgument(argument);
}

InputSpec parseInput(const Json &json) {
  const auto [kind, spec] = unionOf(json);
  InputSpec input;
  if (kind == "user_input") {
    input.argument = parseArgument(spec.at("arg"));
    if (const auto *value = std::get_if<Argument::Name>(&input.argument.value))
      input.name = value->name;
    return input;
  }
  if (kind == "constant_input") {
    input.kind = InputSpec::Kind::Constant;
    input.target = spec.at("name").get<std::string>();
    input.argument = parseConstantInput(spec.at("value"));
    return input;
  }
  const char *target = kind == "parameter"         ? "parameter_name"
                       : kind == "buffer"          ? "buffer_name"
                       : kind == "tensor_constant" ? "tensor_constant_name"
                                                   : nullptr;
  if (!target)
    throw Malformed{"the program has an input of the kind '" + printable(kind) +
                    "', which cgc does not support; export a model of tensors alone"};
  input.kind = InputSpec::Kind::Tensor;
  input.argument = {Argument::Name{spec.at("arg").at("name").get<std::string>(), true}};
  input.target = input.place = spec.at(target).get<std::string>();
  input.isConstant = kind == "tensor_constant";
  return input;
}

OutputSpec parseOutput(const Json &json) {
  const auto [kind, spec] = unionOf(json);
  OutputSpec output;
  if (kind == "user_output") {
    output.argument = parseArgument(spec.at("arg"));
    return output;
  }
  if (kind != "buffer_mutation" && kind != "loss_output")
    throw Malformed{"the program has an output of the kind '" + printable(kind) +
                    "', which cgc does not support; export the model by torch.export.export, "
                    "without other changes of the program"};
  output.argument = {Argument::Name{spec.at("arg").at("name").get<std::string>(), true}};
  if (kind == "buffer_mutation") {
    output.kind = OutputSpec::Kind::BufferMutation;
    output.target = spec.at("buffer_name").get<std::string>();
  }
  return output;
}

std::optional<int64_t> parseEnd(const Json &range, const char *name) {
  const Json &end = range.at(name);
  return end.is_number_integer() ? std::optional(end.get<int64_t>()) : std::nullopt;
}

/// Appends a name for each leaf of an argument: that of the argument, or none within a tuple or
/// dict.
void appendNames(const ValueTree &argument, const std::string &name,
                 std::vector<std::string> &names) {
  if (argument.isLeaf)
    names.push_back(name);
  for (const ValueTree &element : argument.elements)
    appendNames(element, "", names);
}

/// Gives arguments their names in the model, which differ from torch's in case alone. Arguments in
/// tuples and dicts keep torch's.
void nameInputs(const Json &signature, std::vector<InputSpec> &inputs) {
  const auto spec = signature.find("in_spec"), given = signature.find("forward_arg_names");
  if (spec == signature.end() || given == signature.end() || !given->is_array())
    return;
  const ValueTree tree = parseTree(spec->get<std::string>()); // (positional, by name)
  if (tree.elements.size() != 2)
    return;
  const ValueTree &positional = tree.elements[0], &named = tree.elements[1];
  std::vector<std::string> names;
  for (size_t i = 0; i < positional.elements.size(); ++i)
    appendNames(positional.elements[i], i < given->size() ? (*given)[i].get<std::string>() : "",
                names);
  for (size_t i = 0; i < named.elements.size(); ++i)
    appendNames(named.elements[i], i < named.keys.size() ? named.keys[i] : "", names);
  size_t next = 0;
  for (InputSpec &input : inputs) {
    if (input.kind == InputSpec::Kind::Tensor)
      continue;
    if (next < names.size() && llvm::StringRef(names[next]).equals_insensitive(input.name))
      input.name = names[next];
    ++next;
  }
}

void checkVersion(const Json &json) {
  const Json &version = json.at("schema_version");
  const auto major = version.at("major").get<int64_t>(), minor = version.at("minor").get<int64_t>();
  if (major == kMajor)
    return;
  const std::string torch = json.value("torch_version", "an unknown version");
  throw Malformed{"the program has version " + std::to_string(major) + "." + std::to_string(minor) +
                  " of torch.export's schema (torch " + printable(torch) +
                  "), and cgc reads versions " + std::to_string(kMajor) +
                  ".0 and later with this major number; export the model with torch 2.11"};
}

Program parse(const Json &json) {
  checkVersion(json);
  Program program;
  const Json &module = json.at("graph_module"), &graph = module.at("graph");
  NodeParser nodes(program.nodes);
  nodes.parse(graph);
  for (const auto &[name, meta] : graph.at("tensor_values").items())
    program.tensors[name] = parseTensorMeta(meta);
  for (const Json &input : module.at("signature").at("input_specs"))
    program.inputs.push_back(parseInput(input));
  for (const Json &output : module.at("signature").at("output_specs")) {
    program.outputs.push_back(parseOutput(output));
    program.outputs.back().argument = nodes.resolve(program.outputs.back().argument);
  }
  for (const auto &[symbol, range] : json.at("range_constraints").items())
    program.ranges[symbol] = {parseEnd(range, "min_val"), parseEnd(range, "max_val")};
  if (const auto guards = json.find("guards_code"); guards != json.end() && guards->is_array())
    for (const Json &guard : *guards)
      program.guards.push_back(guard.get<std::string>());
  // Entry 0 is the program itself.
  for (const Json &call : module.at("module_call_graph"))
    if (const Json &signature = call.at("signature");
        call.at("fqn").get<std::string>().empty() && !signature.is_null()) {
      program.outputTree = parseTree(signature.at("out_spec").get<std::string>());
      nameInputs(signature, program.inputs);
    }
  return program;
}

} // namespace

Result<Program> parseProgram(std::string_view text) {
  Program program;
  CGC_TRY(parseJson(text, [&](const Json &json) { program = parse(json); }));
  return program;
}

Result<std::vector<Payload>> parsePayloads(std::string_view text) {
  std::vector<Payload> payloads;
  CGC_TRY(parseJson(text, [&](const Json &json) {
    for (const auto &[name, entry] : json.at("config").items()) {
      Payload payload{name, entry.at("path_name").get<std::string>(),
                      entry.at("is_param").get<bool>(), entry.at("use_pickle").get<bool>(),
                      std::nullopt};
      if (const Json &meta = entry.at("tensor_meta"); !meta.is_null())
        payload.meta = parseTensorMeta(meta);
      payloads.push_back(std::move(payload));
    }
  }));
  return payloads;
}

} // namespace cgc::exported
