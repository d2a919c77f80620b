// shape_rules_grid: the argument combinations of each op. Each list includes empty, size-1 and
// non-contiguous tensors.
#include "shape_rules_grid.h"

namespace cgc::test {
namespace {

using ir::OpKind;
using Choices = std::vector<std::string>;

Choices operator+(Choices a, const Choices &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Choices kDTypes = {"f32", "f16", "bf16", "f64", "i64", "i32", "i16", "i8", "u8", "bool"};
const Choices kNumbers = {"true", "2", "2.5"};
const Choices kDims = {"-4", "-3", "-2", "-1", "0", "1", "2", "3"};
const Choices kBools = {"false", "true"};

/// Returns a tensor of each dtype with these sizes.
Choices each(const std::string &sizes) {
  Choices result;
  for (const std::string &dtype : kDTypes)
    result.push_back(dtype + sizes);
  return result;
}

/// One tensor for each kind of layout.
const Choices kLayouts = {"f32[]",
                          "f32[1]",
                          "f32[0]",
                          "f32[4]",
                          "f32[4][2]",
                          "f32[4][0]",
                          "f32[2,3]",
                          "f32[2,3][1,2]",
                          "f32[2,3][6,2]",
                          "f32[1,3][7,1]",
                          "f32[2,1]",
                          "f32[2,0]",
                          "f32[2,3,4]",
                          "f32[2,3,4][1,2,6]",
                          "f32[2,3,4][12,1,3]",
                          "f32[1,3,1]",
                          "f32[1,3,1][9,1,5]",
                          "f32[2,3,4][0,4,1]",
                          "f32[0,3,4]",
                          "f32[2,1,6][12,12,2]"};

/// Every dtype, as a tensor with a dimension and as one without.
const Choices kOperands = each("[2]") + each("[]");

/// Partners of kLayouts where arguments broadcast.
const Choices kBroadcast = {"f32[]",         "f32[1]",     "f32[3]",    "f32[0]",
                            "f32[2,3][1,2]", "f32[2,1,1]", "f32[1,3,4]"};

/// Returns `choices` with `dtype` in place of f32.
Choices as(const std::string &dtype, Choices choices) {
  for (std::string &choice : choices)
    choice.replace(0, 3, dtype);
  return choices;
}

std::vector<Grid> make() {
  std::vector<Grid> g;
  auto add = [&](OpKind op, std::string overload, std::vector<Choices> args,
                 Strictness strictness = Strictness::Exact, std::string reason = "",
                 int64_t fill = 1) {
    g.push_back(
        {op, "aten::" + std::move(overload), std::move(args), strictness, std::move(reason), fill});
  };

  // Creation
  const Choices starts = {"0", "2", "-3", "0.5", "7", "true"};
  const Choices ends = {"0", "5", "-4", "5.5", "7"};
  add(OpKind::Arange, "arange.start_step",
      {starts, ends, {"1", "2", "-1", "0", "-2.5"}, {"none", "f32", "f16", "i64", "i32", "bool"}});
  // LibTorch divides by zero if such a step is rounded for an integer dtype.
  add(OpKind::Arange, "arange.start_step", {starts, ends, {"0.3", "-0.7"}, {"none", "f32", "f64"}});
  add(OpKind::Full, "full",
      {{"[]", "[0]", "[2,3]", "[2,0,1]", "[-1]"}, {"0", "2.5", "true"}, Choices{"none"} + kDTypes});
  add(OpKind::FullLike, "full_like",
      {kLayouts + each("[2]"), {"0", "2.5", "true"}, {"none", "f16", "i64", "bool"}});

  // Views
  const Choices sizes = {"[]",      "[1]",     "[-1]",     "[0]",      "[2,3]",     "[3,2]",
                         "[6,-1]",  "[-1,3]",  "[1,1]",    "[2,-1,2]", "[2,1,3,1]", "[24]",
                         "[4,6]",   "[2,12]",  "[6,4]",    "[0,-1]",   "[0,7]",     "[-1,-1]",
                         "[-2,-3]", "[2,2,6]", "[1,3,1,1]"};
  add(OpKind::View, "view", {kLayouts, sizes}, Strictness::MayAccept, "cgc's view copies");
  add(OpKind::Reshape, "reshape", {kLayouts, sizes});
  add(OpKind::Permute, "permute",
      {kLayouts,
       {"[]", "[0]", "[-1]", "[1,0]", "[0,1]", "[2,0,1]", "[-1,0,1]", "[0,0,1]", "[0,3,1]"}});
  add(OpKind::Transpose, "transpose.int", {kLayouts, kDims, kDims});
  add(OpKind::Squeeze, "squeeze", {kLayouts, {"none"}});
  add(OpKind::Squeeze, "squeeze.dims",
      {kLayouts, {"[]", "[0]", "[-1]", "[1]", "[0,2]", "[0,0]", "[2]", "[3]"}});
  add(OpKind::Unsqueeze, "unsqueeze", {kLayouts, kDims + Choices{"-5", "4"}});
  add(OpKind::Flatten, "flatten.using_ints", {kLayouts, kDims, kDims});
  add(OpKind::Unflatten, "unflatten.int",
      {kLayouts, kDims, {"[]", "[2,-1]", "[1,1]", "[3,1]", "[2,2]", "[0,-1]", "[0,5]", "[-1]"}});
  add(OpKind::Expand, "expand",
      {kLayouts,
       {"[]", "[1]", "[4]", "[-1]", "[0]", "[5,4]", "[2,3]", "[2,-1]", "[3,2,3]", "[1,2,3]",
        "[1,1,2,3]", "[2,3,4]", "[-1,-1,-1]", "[-1,3,5]", "[-1,2,3]", "[2,0]", "[1,0,3,4]",
        "[-2]"}});
  const Choices bounds = {"none", "0", "1", "2", "-1", "-2", "100", "-100"};
  add(OpKind::Slice, "slice.Tensor",
      {kLayouts, {"-1", "0", "1", "3"}, bounds, bounds, {"1", "2", "5", "0", "-1"}});
  add(OpKind::Select, "select.int", {kLayouts, kDims, {"0", "1", "-1", "2", "-3", "5"}});
  add(OpKind::Chunk, "chunk", {kLayouts, {"1", "2", "3", "7", "0", "-1"}, {"-1", "0", "1", "3"}});
  add(OpKind::Split, "split.Tensor",
      {kLayouts, {"1", "2", "3", "7", "0", "-1"}, {"-1", "0", "1", "3"}});
  add(OpKind::Split, "split_with_sizes",
      {kLayouts,
       {"[]", "[2]", "[1,1]", "[2,1]", "[1,3]", "[0,2]", "[-1,3]", "[0]", "[0,0]"},
       {"-1", "0", "1"}});
  add(OpKind::Unbind, "unbind.int", {kLayouts, kDims});
  add(OpKind::Detach, "detach", {kLayouts});

  // Copies and casts
  add(OpKind::To, "to.dtype", {kLayouts + each("[2]"), kDTypes, {"none"}});
  add(OpKind::Contiguous, "contiguous", {kLayouts});
  add(OpKind::Clone, "clone", {kLayouts + each("[2]")});
  add(OpKind::Cat, "cat",
      {{"{}",
        "{f32[2,3]}",
        "{f32[2,3]; f32[2,3]}",
        "{f32[2,3]; f32[1,3]}",
        "{f32[2,3]; f32[2,1]}",
        "{f32[0]; f32[2,3]}",
        "{f32[2,3]; f32[0]}",
        "{f32[0]; f32[0]}",
        "{f32[]; f32[]}",
        "{f32[2,3]; i64[2,3]}",
        "{i64[2,3]; f16[2,3]}",
        "{f16[2,3]; bf16[2,3]}",
        "{i64[0]; f32[2,3]}",
        "{f32[2,3]; f32[2]}",
        "{f32[2,0]; f32[2,3]}",
        "{f32[2,3][1,2]; f32[2,3]}",
        "{u8[2]; i8[2]}",
        "{f32[2]; f32[0]; f32[3]}",
        "{f32[2,3,4]; f32[2,3,4]}",
        "{f32[2,3]; f32[2,3][1,2]}",
        "{f32[2,0]; f32[2,0]}",
        "{f32[0,3]; f32[2,3]; f32[2,3][8,2]}",
        "{f32[2,1]; f32[2,0,4]}"},
       kDims});
  add(OpKind::Stack, "stack",
      {{"{}", "{f32[2,3]}", "{f32[2,3]; f32[2,3]}", "{f32[2,3]; f32[1,3]}", "{f32[0]; f32[0]}",
        "{f32[]; f32[]}", "{f32[2,3]; i64[2,3]}", "{f16[2]; bf16[2]}", "{f32[2,3][1,2]; f32[2,3]}",
        "{bool[2]; i8[2]}", "{f32[1,3]; f32[1,3][7,1]}", "{f32[2,3]; f32[2,3][1,2]}",
        "{f32[2,0]; f32[2,0]}", "{f32[2,0]; f32[0,2]}", "{f32[0,3,1]; f32[0,3,1]; f32[0,3,1]}",
        "{f32[2,0]; i64[2,0]}"},
       kDims});

  // Pointwise arithmetic: every pair of dtypes, with and without dimensions, and numbers; and the
  // layouts with some partners that broadcast with them.
  auto binary = [&](OpKind op, const std::string &name, Choices extra = {},
                    const std::string &dtype = "f32") {
    std::vector<Choices> tensors = {kOperands, kOperands}, scalars = {kOperands, kNumbers},
                         layouts = {as(dtype, kLayouts), as(dtype, kBroadcast)};
    if (!extra.empty()) {
      tensors.push_back(extra);
      scalars.push_back(extra);
      layouts.push_back({extra.front()});
    }
    add(op, name + ".Tensor", tensors);
    add(op, name + ".Scalar", scalars);
    add(op, name + ".Tensor", layouts);
  };
  binary(OpKind::Add, "add", {"1", "2", "2.5", "true"});
  binary(OpKind::Sub, "sub", {"1", "2.5", "true"});
  binary(OpKind::Rsub, "rsub", {"1", "2.5", "true"});
  binary(OpKind::Mul, "mul");
  add(OpKind::Div, "div.Tensor", {kOperands, kOperands, {"none"}});
  add(OpKind::Div, "div.Scalar", {kOperands, kNumbers, {"none"}});
  add(OpKind::Div, "div.Tensor", {kLayouts, kBroadcast, {"none"}});
  add(OpKind::Div, "div.Tensor_mode", {kOperands, kOperands, {"\"trunc\"", "\"floor\"", "\"up\""}});
  add(OpKind::Div, "div.Scalar_mode", {kOperands, kNumbers, {"\"trunc\"", "\"floor\""}});
  add(OpKind::FloorDivide, "floor_divide", {kOperands, kOperands});
  add(OpKind::FloorDivide, "floor_divide", {kLayouts, kBroadcast});
  add(OpKind::FloorDivide, "floor_divide.Scalar", {kOperands, kNumbers});
  binary(OpKind::Remainder, "remainder");
  add(OpKind::Remainder, "remainder.Scalar_Tensor", {kNumbers, kOperands});
  add(OpKind::Pow, "pow.Tensor_Tensor", {kOperands, kOperands});
  add(OpKind::Pow, "pow.Tensor_Tensor", {kLayouts, kBroadcast});
  add(OpKind::Pow, "pow.Tensor_Scalar", {kOperands, kNumbers + Choices{"-1", "0", "1"}},
      Strictness::MayRefuse, "LibTorch takes bools to the power of true");
  add(OpKind::Pow, "pow.Scalar", {kNumbers, kOperands});
  add(OpKind::Maximum, "maximum", {kOperands, kOperands});
  add(OpKind::Maximum, "maximum", {kLayouts, kBroadcast});
  add(OpKind::Minimum, "minimum", {kOperands, kOperands});
  add(OpKind::Minimum, "minimum", {kLayouts, kBroadcast});
  add(OpKind::ClampMin, "clamp_min", {kOperands, kNumbers});
  add(OpKind::ClampMin, "clamp_min.Tensor", {kOperands, kOperands});
  add(OpKind::ClampMin, "clamp_min.Tensor", {kLayouts, kBroadcast});
  const Choices noneOrNumber = Choices{"none"} + kNumbers;
  add(OpKind::Clamp, "clamp", {kOperands, noneOrNumber, noneOrNumber});
  const Choices noneOrTensor = {"none", "f32[2]", "i64[]", "f64[]", "u8[2]"};
  add(OpKind::Clamp, "clamp.Tensor", {kOperands, noneOrTensor, noneOrTensor});
  add(OpKind::Clamp, "clamp.Tensor",
      {kLayouts, Choices{"none"} + kBroadcast, Choices{"none"} + kBroadcast});
  add(OpKind::Where, "where.self", {{"bool[2]", "bool[]", "f32[2]"}, kOperands, kOperands});
  add(OpKind::Where, "where.ScalarSelf", {{"bool[2]", "bool[]"}, kNumbers, kOperands});
  add(OpKind::Where, "where.ScalarOther", {{"bool[2]", "bool[]"}, kOperands, kNumbers});
  add(OpKind::Where, "where.Scalar", {{"bool[2]", "bool[]"}, kNumbers, kNumbers});
  add(OpKind::MaskedFill, "masked_fill.Scalar",
      {kOperands + kLayouts,
       {"bool[2]", "bool[]", "bool[3,1]", "bool[0]", "bool[2,3][1,2]", "f32[2]"},
       kNumbers});
  add(OpKind::MaskedFill, "masked_fill.Tensor",
      {kOperands, {"bool[2]", "bool[]"}, {"f32[]", "i64[]", "f32[1]", "f32[2]"}});
  add(OpKind::Add, "add.Tensor", {kLayouts, kLayouts, {"1"}});
  add(OpKind::Where, "where.self",
      {{"bool[2,1]", "bool[3]", "bool[0,1]", "bool[2,3][1,2]", "bool[]"}, kLayouts, kBroadcast});

  // Comparisons and logic
  binary(OpKind::Eq, "eq");
  binary(OpKind::Ne, "ne");
  binary(OpKind::Lt, "lt");
  binary(OpKind::Le, "le");
  binary(OpKind::Gt, "gt");
  binary(OpKind::Ge, "ge");
  add(OpKind::BitwiseNot, "bitwise_not", {kOperands});
  add(OpKind::BitwiseNot, "bitwise_not", {as("i64", kLayouts)});
  binary(OpKind::BitwiseAnd, "bitwise_and", {}, "i64");
  binary(OpKind::BitwiseOr, "bitwise_or", {}, "bool");

  // Pointwise functions
  const std::pair<OpKind, const char *> unary[] = {
      {OpKind::Abs, "abs"},   {OpKind::Neg, "neg"},         {OpKind::Exp, "exp"},
      {OpKind::Log, "log"},   {OpKind::Sqrt, "sqrt"},       {OpKind::Rsqrt, "rsqrt"},
      {OpKind::Sin, "sin"},   {OpKind::Cos, "cos"},         {OpKind::Erf, "erf"},
      {OpKind::Tanh, "tanh"}, {OpKind::Sigmoid, "sigmoid"}, {OpKind::Relu, "relu"},
      {OpKind::Silu, "silu"}};
  for (auto [op, name] : unary)
    add(op, name, {kOperands + kLayouts});
  add(OpKind::Gelu, "gelu", {kOperands + kLayouts, {"\"none\"", "\"tanh\"", "\"fast\""}});
  add(OpKind::Dropout, "dropout", {kOperands + kLayouts, {"0.0", "0.5", "1.5"}, {"false"}});
  add(OpKind::Dropout, "dropout", {kLayouts, {"0.5"}, {"true"}}, Strictness::MayRefuse,
      "inference only");

  // Reductions
  const Choices dims = {"none",  "[]",     "[0]",   "[-1]", "[1]",
                        "[0,1]", "[0,-1]", "[0,0]", "[2]",  "[3]"};
  const Choices reduced = kLayouts + kOperands;
  const Choices dtypes = {"none", "f32", "f16", "f64", "i64", "bool"};
  add(OpKind::Sum, "sum.dim_IntList", {reduced, dims, kBools, dtypes});
  add(OpKind::Mean, "mean.dim", {reduced, dims, kBools, dtypes});
  add(OpKind::Amax, "amax", {reduced, {"[]", "[0]", "[-1]", "[0,1]", "[0,0]", "[3]"}, kBools});
  add(OpKind::Argmax, "argmax", {reduced, Choices{"none"} + kDims, kBools});
  add(OpKind::Cumsum, "cumsum", {reduced, kDims, {"none", "f32", "f16", "i64"}});
  add(OpKind::Cumsum, "cumsum", {{"f32[4]", "i64[2,3]", "f32[0]"}, {"0"}, {"bool"}},
      Strictness::MayRefuse, "LibTorch takes a bool result for empty tensors only");
  add(OpKind::VectorNorm, "linalg_vector_norm",
      {reduced,
       {"2", "1", "0", "-1", "2.5", "inf"},
       dims,
       kBools,
       {"none", "f32", "f16", "f64", "i64"}});
  add(OpKind::Softmax, "softmax.int", {reduced, kDims, {"none", "f32", "f16", "f64"}});
  add(OpKind::Softmax, "softmax.int", {{"f32[4]", "i64[2,3]", "f32[0]"}, {"0"}, {"i64", "bool"}},
      Strictness::MayRefuse, "LibTorch takes an integer result for empty tensors only");

  // Placing
  add(OpKind::ConstantPad, "constant_pad_nd",
      {kLayouts + each("[2]"),
       {"[]", "[1,2]", "[0,0]", "[-1,0]", "[0,-3]", "[2,-5]", "[-1,3]", "[1,0,0,2]", "[-1,-1,1,1]",
        "[1]", "[1,2,3]", "[1,1,1,1,1,1]"},
       {"0", "2.5"}});
  add(OpKind::Roll, "roll",
      {kLayouts + each("[2]"),
       {"[]", "[0]", "[1]", "[-7]", "[1,2]"},
       {"[]", "[0]", "[-1]", "[2]", "[0,1]", "[1,1]"}});

  // Matrix products
  const Choices matrices = {"f32[]",         "f32[3]",     "f32[0]",   "f32[2,3]",   "f32[3,2]",
                            "f32[3,4][1,3]", "f32[0,3]",   "f32[3,0]", "f32[5,2,3]", "f32[1,3,2]",
                            "f32[4,1,3,2]",  "f32[5,3,1]", "f16[3,2]", "i64[3,2]",   "i64[2,3]",
                            "bool[3,2]",     "bool[2,3]",  "f32[1,3]", "f32[3,1]",   "f32[4,2]"};
  add(OpKind::Matmul, "matmul", {matrices, matrices});
  add(OpKind::Linear, "linear",
      {matrices, matrices, {"none", "f32[2]", "f32[3]", "f32[5]", "f16[3]"}}, Strictness::MayRefuse,
      "cgc takes no 3-d weight and no bias with a 1-d weight or that broadcasts");
  add(OpKind::Linear, "linear",
      {{"f32[2,3]", "f32[0,3]", "f32[2,0]", "f32[3]", "f32[4,2,3][1,4,8]"},
       {"f32[2,3]", "f32[0,3]", "f32[1,3]", "f32[2,0]"},
       {"f32[2][2]", "f32[2][0]", "f32[0]", "f32[2]"}});
  add(OpKind::Linear, "linear", {{"f32[2,3]", "f32[2,0]"}, {"f32[1,3]", "f32[1,0]"}, {"f32[1]"}});
  const Choices added = {"f32[]",      "f32[2]", "f32[2,2]", "f32[3,1]",
                         "f32[1,2,2]", "i64[2]", "f32[0]",   "f32[2,2][1,2]"};
  add(OpKind::Addmm, "addmm", {added, matrices, matrices, {"1", "2.5"}, {"1", "2.5"}});
  const Choices batches = {"f32[5,2,3]", "f32[5,3,2]", "f32[5,3,0]",        "f32[0,3,2]",
                           "f32[4,3,2]", "f32[3,2]",   "i64[5,3,2]",        "f32[5,2,3][6,1,2]",
                           "f32[5,1,3]", "f32[5,3,1]", "f32[5,3,2][6,1,3]", "f32[0,2,3]"};
  add(OpKind::Baddbmm, "baddbmm",
      {{"f32[]", "f32[2]", "f32[5,2,2]", "f32[5,1,1]", "f32[5,3,3]", "f32[0,3,3]", "i64[2]",
        "f32[5,2,2][4,1,2]"},
       batches,
       batches,
       {"1", "2.5"},
       {"1"}});

  // Neural-network layers
  add(OpKind::Conv2d, "conv2d",
      {{"f32[2,4,9,8]", "f32[4,9,8]", "f32[0,4,9,8]", "f32[2,4,2,2]", "f32[2,4,9,8][288,1,32,4]",
        "f32[2,3,9,8]", "f32[4,9]", "i64[2,4,9,8]", "f16[2,4,9,8]", "f32[1,4,9,8]"},
       {"f32[6,4,3,3]", "f32[6,4,1,1]", "f32[6,2,3,2]", "f32[4,1,3,3]", "f32[6,4,3]",
        "f32[6,4,3,3][36,1,12,4]", "f32[0,4,3,3]"},
       {"none", "f32[6]", "f32[4]"},
       {"[1,1]", "[2,3]", "[2]", "[0,1]"},
       {"[0,0]", "[1,2]", "[1]", "[-1,0]"},
       {"[1,1]", "[2,1]"},
       {"1", "2", "4", "0"}});
  add(OpKind::Conv2d, "conv2d",
      {{"f32[2,4,9,8]", "f32[0,4,9,8]", "f32[4,9,8]"},
       {"f32[6,4,3,3]", "f32[1,4,3,3]", "f32[0,4,3,3]"},
       {"f32[6][2]", "f32[6][0]", "f32[1]", "f32[0]"},
       {"[1,1]"},
       {"[0,0]"},
       {"[1,1]"},
       {"1"}});
  add(OpKind::LayerNorm, "layer_norm",
      {{"f32[2,5,8]", "f32[8]", "f32[0,8]", "f32[2,5,8][1,2,10]", "f32[]", "f16[2,8]", "i64[2,8]",
        "f32[2,0]", "f32[1,8]", "f32[2,1,8][8,8,1]"},
       {"[8]", "[5,8]", "[]", "[4]", "[0]"},
       {"none", "f32[8]", "f32[5,8]", "f16[8]"},
       {"none", "f32[8]", "f16[8]"},
       {"1e-05"}});
  const Choices affine = {"none",          "f32[8][2]", "f32[8][0]", "f32[1]",
                          "f32[5,8][1,5]", "f32[1,8]",  "f32[0]",    "f32[0,8]"};
  add(OpKind::LayerNorm, "layer_norm",
      {{"f32[2,5,8]", "f32[2,5,8][1,2,10]", "f32[2,1,8]", "f32[2,1]", "f32[2,0]", "f32[2,0,8]"},
       {"[8]", "[5,8]", "[1]", "[1,8]", "[0]", "[0,8]"},
       affine,
       affine,
       {"1e-05"}});
  const Choices channels = {"f32[4][2]", "f32[4][0]", "f32[1]", "f32[0]"};
  const Choices noneOrChannels = Choices{"none"} + channels;
  struct {
    Choices input, weight, bias, mean, variance;
    Strictness strictness = Strictness::Exact;
    const char *reason = "";
  } const batchNorms[] = {
      {{"f32[2,4,3,3]", "f32[2,4]", "f32[0,4,3]", "f32[4]", "f16[2,4]", "f32[2,3]",
        "f32[2,4,3,3][36,1,12,4]", "f32[1,4,1,3]"},
       {"none", "f32[4]", "f32[3]", "f16[4]"},
       {"none", "f32[4]"},
       {"none", "f32[4]"},
       {"f32[4]", "none", "f32[1]"},
       Strictness::MayRefuse,
       "LibTorch's CPU also takes f32 parameters for f16 input"},
      {{"f32[2,4,3]", "f32[2,1,3]", "f32[3,4][1,3]"},
       noneOrChannels,
       noneOrChannels,
       channels,
       channels},
      {{"f32[0,4]", "f32[2,0,3]", "f32[2,4,0]"},
       noneOrChannels,
       noneOrChannels,
       channels,
       channels,
       Strictness::MayRefuse,
       "LibTorch checks no parameters for an input without elements"},
  };
  for (const auto &b : batchNorms)
    add(OpKind::BatchNorm, "batch_norm",
        {b.input, b.weight, b.bias, b.mean, b.variance, {"false"}, {"0.1"}, {"1e-05"}},
        b.strictness, b.reason);
  const Choices floatImages = {
      "f32[2,4,9,8]", "f32[4,9,8]",   "f32[0,4,9,8]", "f32[2,4,9,8][288,1,32,4]",
      "f32[2,0,9,8]", "f32[2,4,0,8]", "f32[9,8]",     "f16[2,4,9,8]",
      "f32[1,4,9,8]"};
  const Choices images = floatImages + Choices{"i64[2,4,9,8]", "bool[2,4,9,8]"};
  const Choices kernels = {"[2,2]", "[3]", "[3,2]", "[0,1]", "[10,1]", "[]"};
  const Choices strides = {"[]", "[2,2]", "[3]", "[4,3]", "[0,1]"};
  const Choices paddings = {"[0,0]", "[1]", "[1,0]", "[2,2]", "[-1,0]"};
  add(OpKind::AvgPool2d, "avg_pool2d",
      {floatImages, kernels, strides, paddings, kBools, {"true"}, {"none", "3", "0"}});
  add(OpKind::AvgPool2d, "avg_pool2d",
      {{"i64[2,4,9,8]"}, {"[2,2]"}, {"[]"}, {"[0,0]"}, {"false"}, {"true"}, {"none"}},
      Strictness::MayRefuse, "LibTorch averages i64, on the CPU only");
  add(OpKind::MaxPool2d, "max_pool2d",
      {images, kernels, strides, paddings, {"[1,1]", "[2,1]", "[0,1]"}, kBools});
  add(OpKind::AdaptiveAvgPool2d, "adaptive_avg_pool2d",
      {images, {"[1,1]", "[7,7]", "[12,3]", "[0,1]", "[1]", "[-1,1]", "[]"}}, Strictness::MayRefuse,
      "LibTorch also takes a bare matrix or no rows for [1,1], and any dtype for no result");
  const Choices queries = {"f32[2,4,5,8]", "f32[5,8]", "f32[4,5,8]",  "f32[2,4,5,8][160,8,32,1]",
                           "i64[2,4,5,8]", "f32[8]",   "f32[0,4,5,8]"};
  const Choices keys = {"f32[2,4,7,8]", "f32[7,8]",     "f32[4,7,8]",   "f32[2,2,7,8]",
                        "f32[2,4,7,6]", "f16[2,4,7,8]", "f32[2,4,0,8]", "f32[0,4,7,8]"};
  const Choices values = {"f32[2,4,7,8]", "f32[7,3]",     "f32[2,2,7,8]",
                          "f16[2,4,7,8]", "f32[0,4,7,8]", "f32[4,7,8]"};
  const Choices masks = {"none", "f32[5,7]", "bool[5,7]", "f32[2,1,5,7]", "f16[5,7]", "f32[5,5]"};
  auto attention = [&](std::vector<Choices> args, Strictness strictness = Strictness::Exact,
                       std::string reason = "") {
    add(OpKind::Attention, "scaled_dot_product_attention", std::move(args), strictness,
        std::move(reason));
  };
  attention({queries, keys, values, masks, {"0.0"}, {"false"}, {"none", "0.5"}, kBools});
  attention({queries, keys, values, {"none"}, {"0.0"}, {"true"}, {"none"}, kBools});
  const Choices strided = {"f32[2,4,5,8][160,8,32,1]", "f32[2,1,5,8]", "f32[1,4,5,8]",
                           "f32[2,4,5,8][160,40,1,5]"};
  attention({strided + Choices{"f32[2,4,1,8]"},
             strided,
             strided,
             {"none"},
             {"0.0"},
             {"false"},
             {"none"},
             {"false"}});
  attention(
      {{"f32[2,4,5,8]", "f32[0,4,5,8]", "f32[2,4,0,8]", "f32[5,8]"},
       {"f32[2,4,7,8]", "f32[0,4,7,8]", "f32[7,8]"},
       {"f32[2,4,7,8]", "f32[0,4,7,8]", "f32[7,8]"},
       {"f32[5,7][1,5]", "bool[5,7][14,2]", "f32[2,4,5,7][7,0,14,1]", "bool[2,1,5,7][0,0,1,5]",
        "f32[5,1]", "bool[1,7]", "f32[0,4,5,7]", "bool[0,1,5,7]", "f32[5,0]", "bool[0,7]"},
       {"0.0"},
       {"false"},
       {"none"},
       {"false"}});
  // Separate, since LibTorch divides by zero for keys without values.
  attention({{"f32[2,4,5,8]", "f32[0,4,5,8]", "f32[2,4,0,8]"},
             {"f32[2,4,0,8]"},
             {"f32[2,4,0,8]"},
             {"f32[5,0]", "bool[2,4,5,0]", "f32[5,1]", "bool[1,7]", "f32[5,7]", "bool[0,0]"},
             {"0.0"},
             {"false"},
             {"none"},
             {"false"}});
  attention({queries,
             keys,
             {"f32[2,4,7,8]"},
             {"f32[5,7]", "bool[5,7]"},
             {"0.0"},
             {"true"},
             {"none"},
             {"false"}},
            Strictness::MayRefuse, "some of LibTorch's kernels take a mask with is_causal");
  attention({queries,
             keys,
             {"f32[2,4,7,8]"},
             {"bool[7]", "f32[]"},
             {"0.0"},
             {"false"},
             {"none"},
             {"false"}},
            Strictness::MayRefuse, "some of LibTorch's kernels take a mask of one dimension");
  attention({{"f16[2,4,5,8]", "bf16[2,4,5,8]"},
             {"f16[2,4,7,8]", "bf16[2,4,7,8]"},
             {"f16[2,4,7,8]", "bf16[2,4,7,8]"},
             {"none", "f16[5,7]", "bool[5,7]", "bf16[1,1,5,7]", "f32[5,7]"},
             {"0.0"},
             {"false"},
             {"none"},
             {"false"}},
            Strictness::MayRefuse, "LibTorch's CPU also takes an f32 mask for an f16 query");
  const Choices weights = {"f32[24,8]", "f32[8,24]"}, heads = {"2", "3"};
  add(OpKind::NativeMha, "_native_multi_head_attention",
      {{"f32[2,5,8]", "f32[0,5,8]", "f32[2,5,4]", "f32[5,8]", "f16[2,5,8]"},
       {"f32[2,5,8]", "f32[2,6,8]", "f32[0,5,8]"},
       {"f32[2,5,8]", "f32[0,5,8]"},
       {"8", "4"},
       heads,
       weights,
       {"f32[24]"},
       {"f32[8,8]"},
       {"f32[8]"},
       {"none"},
       kBools,
       kBools,
       {"none", "0"}});
  add(OpKind::NativeMha, "_native_multi_head_attention",
      {{"f32[2,5,8]"},
       {"f32[2,5,8]"},
       {"f32[2,5,8]"},
       {"8"},
       heads,
       weights,
       {"f32[24]"},
       {"f32[8,8]"},
       {"f32[8]"},
       {"f32[5,5]", "bool[2,5]", "bool[2,2,5,5]"},
       kBools,
       kBools,
       {"0", "1", "2"}});
  add(OpKind::NativeMha, "_native_multi_head_attention",
      {{"f32[2,5,8]"},
       {"f32[2,5,8]"},
       {"f32[2,5,8]"},
       {"8"},
       {"2"},
       weights,
       {"f32[24]"},
       {"f32[8,8]"},
       {"f32[8]"},
       {"f32[5,5]", "bool[2,5]", "bool[2,2,5,5]"},
       kBools,
       kBools,
       {"none", "3"}},
      Strictness::MayRefuse, "a mask of other sizes than the scores needs its type");

  add(OpKind::NativeMha, "_native_multi_head_attention",
      {{"f32[2,5,8]", "f32[2,5,8][40,1,5]", "f32[1,5,8]", "f32[2,1,8]"},
       {"f32[2,5,8]", "f32[2,5,8][40,1,5]", "f32[1,5,8]", "f32[2,1,8]"},
       {"f32[2,5,8]", "f32[2,5,8][40,1,5]", "f32[1,5,8]", "f32[2,1,8]"},
       {"8"},
       {"2"},
       {"f32[24,8]", "f32[24,8][1,24]"},
       {"f32[24]", "f32[24][2]"},
       {"f32[8,8]", "f32[8,8][1,8]"},
       {"f32[8]", "f32[8][2]"},
       {"none"},
       kBools,
       {"false"},
       {"none"}});
  auto masked = [&](const Choices &sequences, Strictness strictness, std::string reason) {
    add(OpKind::NativeMha, "_native_multi_head_attention",
        {sequences,
         sequences,
         sequences,
         {"8"},
         {"2"},
         {"f32[24,8]"},
         {"f32[24]"},
         {"f32[8,8]"},
         {"f32[8]"},
         {"bool[5,5][1,5]", "f32[5,5][0,1]", "bool[2,5][1,2]", "bool[2,2,5,5][50,25,1,5]",
          "bool[1,5]", "bool[2,1]", "bool[1,1]", "bool[1,2,5,5]", "bool[0,5]", "bool[2,0]",
          "bool[0,0]", "bool[0,2,5,5]"},
         kBools,
         kBools,
         {"0", "1", "2"}},
        strictness, std::move(reason));
  };
  masked({"f32[2,5,8]", "f32[1,5,8]", "f32[2,1,8]"}, Strictness::Exact, "");
  masked({"f32[0,5,8]", "f32[2,0,8]"}, Strictness::MayRefuse,
         "LibTorch checks no mask for a query without elements");

  // Indexing
  const Choices index = {"i64[]",         "i64[3]", "i64[0]",     "i64[2,3]", "i32[3]",
                         "i64[2,3][1,2]", "f32[3]", "i64[2,3,4]", "i64[1]",   "i64[3][2]"};
  add(OpKind::Embedding, "embedding",
      {{"f32[4,8]", "f16[4,8]", "f32[0,8]", "f32[4,0]", "f32[4,8][1,4]", "f32[4]", "i64[4,8]",
        "f32[1,8]", "f32[4,1]"},
       index},
      Strictness::Exact, "", 0);
  add(OpKind::Index, "index.Tensor",
      {{"f32[]", "f32[4]", "f32[2,3]", "f32[2,3,4]", "f32[2,3,4][1,2,6]", "f32[2,0,4]",
        "f32[2,3,4,5]", "f32[1,3]"},
       {"{}", "{i64[3]}", "{none; i64[3]}", "{i64[3]; i64[3]}", "{i64[2,1]; i64[3]}", "{i64[]}",
        "{i64[0]}", "{i64[3]; none; i64[3]}", "{none; i64[2,3]; i64[3]}",
        "{none; i64[3]; none; i64[3]}", "{i64[]; none; i64[]}", "{i32[3]}", "{i64[3]; i64[2]}",
        "{f32[3]}", "{none; i64[0]}", "{none; i64[3]; none}", "{i64[3]; none; none; none; none}",
        "{i64[2,3][1,2]}"}},
      Strictness::Exact, "", 0);
  add(OpKind::Index, "index.Tensor",
      {{"f32[2,3]", "f32[2,0]"}, {"{bool[2]}", "{bool[2,3]}", "{u8[2]}", "{none}"}},
      Strictness::MayRefuse,
      "the size of a masked selection depends on data; none alone picks nothing", 0);
  add(OpKind::IndexSelect, "index_select", {kLayouts, kDims, index}, Strictness::Exact, "", 0);
  add(OpKind::Gather, "gather",
      {kLayouts, kDims, index + Choices{"i64[1,3]", "i64[2,1]", "i64[0,3]"}}, Strictness::Exact, "",
      0);
  add(OpKind::Triu, "triu", {kLayouts + each("[2,2]"), {"0", "1", "-1", "100"}});
  return g;
}

} // namespace

const std::vector<Grid> &shapeRuleGrids() {
  static const std::vector<Grid> grids = make();
  return grids;
}

} // namespace cgc::test
