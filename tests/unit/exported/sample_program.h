// SampleProgram: a small exported program as the members of its archive, which a test changes.
#pragma once

#include "tests/unit/exported/archive_writer.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <map>
#include <string>

namespace cgc::test {

/// forward(x) = linear(x * sym_size(x, 0), weight, bias), with x: f32[b, 2] and b from 1 to 8. The
/// linear runs in the module "head" of the class Linear; the multiplication in the root.
struct SampleProgram {
  nlohmann::json program, weights, constants;
  std::map<std::string, std::string> files; ///< Members beside the three above.

  SampleProgram();
  static nlohmann::json tensorArg(const std::string &name) {
    return {{"as_tensor", {{"name", name}}}};
  }
  static nlohmann::json meta(const nlohmann::json &sizes, const nlohmann::json &strides,
                             int64_t offset = 0, int dtype = 7) {
    return {{"dtype", dtype},
            {"sizes", sizes},
            {"requires_grad", true},
            {"device", {{"type", "cpu"}, {"index", nullptr}}},
            {"strides", strides},
            {"storage_offset", {{"as_int", offset}}},
            {"layout", 7}};
  }
  static nlohmann::json ints(const std::vector<int64_t> &values) {
    nlohmann::json list = nlohmann::json::array();
    for (int64_t value : values)
      list.push_back({{"as_int", value}});
    return list;
  }
  static nlohmann::json node(const std::string &target, const nlohmann::json &inputs,
                             const nlohmann::json &output, const std::string &modules,
                             int line = 12) {
    return {{"target", target},
            {"inputs", inputs},
            {"outputs", nlohmann::json::array({output})},
            {"metadata",
             {{"nn_module_stack", modules},
              {"stack_trace", "File \"/home/me/model.py\", line " + std::to_string(line) +
                                  ", in forward\n  return self.head(x)\n  File "
                                  "\"/v/site-packages/torch/nn/modules/linear.py\", line 1, in "
                                  "forward\n    return F.linear()"}}}};
  }
  static nlohmann::json input(const std::string &name, const nlohmann::json &arg) {
    return {{"name", name}, {"arg", arg}, {"kind", 1}};
  }
  nlohmann::json &nodes() { return program["graph_module"]["graph"]["nodes"]; }

  /// The bytes of the archive.
  std::string zip() const {
    std::vector<std::pair<std::string, std::string>> members = {
        {"data/weights/model_weights_config.json", weights.dump()},
        {"data/constants/model_constants_config.json", constants.dump()},
        {"models/model.json", program.dump()}};
    members.insert(members.end(), files.begin(), files.end());
    return zipOf(members);
  }
};

inline std::string floats(const std::vector<float> &values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline SampleProgram::SampleProgram() {
  using nlohmann::json;
  const json batch = {
      {"as_expr",
       {{"expr_str", "Symbol('s0', positive=True, integer=True)"}, {"hint", {{"as_int", 3}}}}}};
  const json two = {{"as_int", 2}}, one = {{"as_int", 1}};
  const json spec =
      json::array({1, {{"type", nullptr}, {"context", nullptr}, {"children_spec", json::array()}}});
  const std::string root = "L__self__,,__main__.Net";
  program = {
      {"schema_version", {{"major", 8}, {"minor", 17}}},
      {"torch_version", "2.11.0"},
      {"range_constraints", {{"s0", {{"min_val", 1}, {"max_val", 8}}}}},
      {"graph_module",
       {{"graph",
         {{"nodes",
           {node("torch.ops.aten.sym_size.int",
                 {input("self", tensorArg("x")), input("dim", {{"as_int", 0}})},
                 {{"as_sym_int", {{"as_name", "size"}}}},
                 "_empty_nn_module_stack_from_metadata_hook,_empty,_empty"),
            node("torch.ops.aten.mul.Tensor",
                 {input("self", tensorArg("x")),
                  input("other", {{"as_sym_int", {{"as_name", "size"}}}})},
                 tensorArg("mul"), root),
            node("torch.ops.aten.linear.default",
                 {input("input", tensorArg("mul")), input("weight", tensorArg("p_w")),
                  input("bias", tensorArg("p_b"))},
                 tensorArg("linear"), root + ";L__self__head,head,torch.nn.modules.linear.Linear",
                 20)}},
          {"tensor_values", {{"x", meta({batch, two}, {two, one})}}}}},
        {"signature",
         {{"input_specs",
           {{{"parameter", {{"arg", {{"name", "p_w"}}}, {"parameter_name", "head.weight"}}}},
            {{"parameter", {{"arg", {{"name", "p_b"}}}, {"parameter_name", "head.bias"}}}},
            {{"user_input", {{"arg", tensorArg("x")}}}}}},
          {"output_specs", json::array({{{"user_output", {{"arg", tensorArg("linear")}}}}})}}},
        {"module_call_graph",
         json::array({{{"fqn", ""}, {"signature", {{"out_spec", spec.dump()}}}}})}}}};
  // One storage: the weight is transposed in it, and the bias follows.
  const auto payload = [](json tensorMeta) {
    return json{{"path_name", "weight_0"},
                {"is_param", true},
                {"use_pickle", false},
                {"tensor_meta", std::move(tensorMeta)}};
  };
  weights = {{"config",
              {{"head.weight", payload(meta(ints({3, 2}), ints({1, 3})))},
               {"head.bias", payload(meta(ints({3}), ints({1}), 6))}}}};
  constants = {{"config", json::object()}};
  files = {{"data/weights/weight_0", floats({1, 2, 3, 4, 5, 6, 7, 8, 9})},
           {"archive_format", "pt2"},
           {"archive_version", "0"},
           {"byteorder", "little"}};
}

} // namespace cgc::test
