// PrecisionPass: converts arguments and recomputes types in one walk in execution order, and
// converts parameters.
#include "passes/canonicalize/precision.h"

#include "ir/op_views.h"
#include "ir/ops/rules.h"
#include "ir/rewriter.h"
#include "passes/canonicalize/canonicalize.h"
#include "passes/canonicalize/fold.h"
#include "passes/canonicalize/wide_values.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/op_precision.h"
#include "passes/preconditions.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;
using ir::rules::largestFinite;

// ---- Numbers

/// Returns the smallest magnitude that rounds to infinity in `dtype`: half a step past its largest
/// number.
double overflowsAt(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return 65520;
  case DType::BF16:
    return 0x1.ffp127;
  default:
    return 0x1.ffffffp127;
  }
}

/// Returns the value that `number` takes in `dtype`, or nullopt if the pass refuses it
/// (precision.h).
std::optional<double> fit(double number, DType dtype) {
  double size = std::abs(number);
  if (!(size >= overflowsAt(dtype)) || std::isinf(number))
    return number;
  for (DType wide : {DType::BF16, DType::F32, DType::F64})
    if (size == largestFinite(wide))
      return std::copysign(largestFinite(dtype), number);
  return std::nullopt;
}

std::string pastLargest(double number, DType dtype) {
  return llvm::formatv("{0:e}, which is past the largest number of {1}, {2}; choose another "
                       "precision",
                       number, dtypeName(dtype), largestFinite(dtype) < 1e5 ? "65504" : "3.4e38");
}

// ---- Elements

uint16_t toBF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint16_t toF16(float value) {
  constexpr uint32_t kMinNormal = 113u << 23, kInfinity = 143u << 23; // 2^-14 and 2^16.
  uint32_t bits = std::bit_cast<uint32_t>(value), sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  if (std::isnan(value))
    return static_cast<uint16_t>(sign | 0x7e00);
  if (bits >= kInfinity)
    return static_cast<uint16_t>(sign | 0x7c00);
  if (bits < kMinNormal) { // The addition rounds at 2^-24, the last bit of a subnormal.
    float rounded = std::bit_cast<float>(bits) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - (126u << 23)));
  }
  bits += 0xfff + (bits >> 13 & 1); // May carry into the exponent, up to infinity.
  return static_cast<uint16_t>(sign | ((bits - (112u << 23)) >> 13));
}

template <class T> T load(const std::byte *bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <class T> void store(std::byte *bytes, int64_t i, T value) {
  std::memcpy(bytes + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

/// Returns all 16-bit floats of `dtype`.
std::vector<double> valuesOf(DType dtype) {
  const auto &semantics = dtype == DType::F16 ? llvm::APFloat::IEEEhalf() : llvm::APFloat::BFloat();
  std::vector<double> values;
  for (uint32_t bits = 0; bits <= 0xffff; ++bits)
    values.push_back(llvm::APFloat(semantics, llvm::APInt(16, bits)).convertToDouble());
  return values;
}

/// Calls `write(i, value)` for `count` elements given by `read(i)`, each fitted to the dtype.
/// Returns the first element that does not fit, if any.
template <class Read, class Write>
std::optional<double> convertEach(int64_t count, DType to, Read read, Write write) {
  const double limit = overflowsAt(to);
  for (int64_t i = 0; i < count; ++i) {
    double value = read(i);
    if (std::abs(value) >= limit) {
      std::optional<double> fitted = fit(value, to);
      if (!fitted)
        return value;
      value = *fitted;
    }
    write(i, static_cast<float>(value));
  }
  return std::nullopt;
}

/// Returns `from` in another floating dtype, rounded to nearest. If an element does not fit,
/// returns null and sets `offender` to it.
std::shared_ptr<const ir::TensorData> converted(const ir::TensorData &from, DType to,
                                                double &offender) {
  ir::TensorType type = from.type();
  const DType dtype = type.dtype;
  const int64_t count = type.numElements();
  type.dtype = to;
  auto bytes = std::make_shared<std::vector<std::byte>>(type.numBytes());
  std::byte *out = bytes->data();
  auto readAs = [&](auto read) {
    switch (to) {
    case DType::F16:
      return convertEach(count, to, read, [=](int64_t i, float x) { store(out, i, toF16(x)); });
    case DType::BF16:
      return convertEach(count, to, read, [=](int64_t i, float x) { store(out, i, toBF16(x)); });
    default:
      return convertEach(count, to, read, [=](int64_t i, float x) { store(out, i, x); });
    }
  };
  const std::byte *in = from.bytes().data();
  std::optional<double> failed;
  if (dtype == DType::F32) {
    failed = readAs([=](int64_t i) -> double { return load<float>(in, i); });
  } else if (dtype == DType::F64) {
    failed = readAs([=](int64_t i) { return load<double>(in, i); });
  } else {
    const std::vector<double> values = valuesOf(dtype);
    failed = readAs([&](int64_t i) { return values[load<uint16_t>(in, i)]; });
  }
  if (failed) {
    offender = *failed;
    return nullptr;
  }
  return std::make_shared<const ir::TensorData>(std::move(type), *bytes, bytes);
}

// ---- The graph

class Converter {
public:
  Converter(ir::Graph &graph, DType precision, ir::Diagnostics &diagnostics)
      : graph_(graph), rewriter_(graph), precision_(precision), diagnostics_(diagnostics) {
    if (dtypeSize(precision) == 2)
      wide_ = WideValues(graph);
  }

  /// Reports errors to the diagnostics. Returns whether anything changed.
  bool run() {
    for (Node &node : llvm::make_early_inc_range(graph_)) {
      if (node.kind() == ir::NodeKind::Placeholder)
        convertInput(*node.result());
      else if (node.kind() == ir::NodeKind::CallFunction)
        convertCall(node);
      else if (node.kind() == ir::NodeKind::Output)
        setArgs(node, mapped(node, precision_));
    }
    return changed_ || rewriter_.changed();
  }

private:
  void convertInput(Value &input) {
    ir::TensorType type = input.tensor();
    if (isFloating(type.dtype))
      type.dtype = precision_;
    setType(input, std::move(type));
  }

  /// The dtype of a floating result.
  DType dtypeOf(const Value &result) const {
    return wide_.contains(&result) ? DType::F32 : precision_;
  }

  /// The dtype that `node` computes in: f32 if an argument or a result stays f32.
  DType computesIn(const Node &node) const {
    if (dtypeSize(precision_) != 2)
      return precision_;
    const OpPrecision wanted = precisionOf(node.op());
    // Layer norm computes mean and variance of 16-bit numbers in f32, with f32 weight and bias.
    if (node.is(OpKind::LayerNorm) || (wanted == OpPrecision::Full && !roundsOnce(node)))
      return DType::F32;
    return wide_.computesWide(node) ? DType::F32 : precision_;
  }

  void convertCall(Node &node) {
    const DType dtype = computesIn(node);
    // A cast converts from what its argument is.
    std::vector<Arg> args = node.is(OpKind::To) ? argsOfCast(node) : mapped(node, dtype);
    const bool isFloat = isFloating(node.result()->tensor().dtype);
    const DType resultDType = isFloat ? dtypeOf(*node.result()) : dtype;
    if (isFloat && resultDType == precision_)
      fitNumbers(node, args);
    for (Arg &arg : args) {
      const DType *given = arg.getIf<DType>();
      // Without a dtype, these would produce f32.
      const bool byDefault = (node.is(OpKind::Full) || node.is(OpKind::Arange) ||
                              node.is(OpKind::Rand) || node.is(OpKind::Randn)) &&
                             arg.isNone() && isFloat;
      if ((given && isFloating(*given)) || byDefault)
        arg = node.is(OpKind::To) ? resultDType : dtype;
    }
    if (node.is(OpKind::CgcHostCall))
      restoreHostInputs(node, args);
    if (node.is(OpKind::To) && dropCast(node, ir::InferArgs(ir::opSchema(OpKind::To), args)))
      return;
    auto inferred = ir::inferResults(node.op(), args, node.result()->tensor().device);
    if (!inferred) {
      diagnostics_.error(node, "cannot be computed in " + std::string(dtypeName(dtype)) + ": " +
                                   inferred.status().message());
      return;
    }
    setArgs(node, std::move(args));
    Node *next = &*std::next(node.getIterator());
    for (unsigned i = 0; i < node.numResults(); ++i) {
      Value *result = node.result(i);
      setType(*result, (*inferred)[i].type);
      const DType wanted = dtypeOf(*result);
      // Includes results that come from integers alone.
      if (isFloating(result->tensor().dtype) && result->tensor().dtype != wanted)
        replacements_[result] =
            rewriter_.create(OpKind::To, {result, wanted, Arg()}, node, next)->result();
    }
  }

  /// Casts the inputs of a host call back to the dtypes that its module takes.
  void restoreHostInputs(Node &node, std::vector<Arg> &args) {
    const Arg::List &takes = ir::CgcHostCallOp::of(node)->takes().list();
    Arg::List inputs = args[0].list();
    for (auto [input, text] : llvm::zip(inputs, takes)) {
      const DType dtype = ir::parseTensorType(text.as<std::string>())->dtype;
      if (input.value()->tensor().dtype != dtype)
        input = rewriter_.create(OpKind::To, {input, dtype, Arg()}, node, &node)->result();
    }
    args[0] = Arg(std::move(inputs));
  }

  /// Drops the cast `node` if it no longer changes anything: its readers then read its input.
  /// Returns true if it was dropped.
  bool dropCast(Node &node, const ir::InferArgs &args) {
    Value *input = args["self"].value();
    const DType *dtype = args["dtype"].getIf<DType>();
    if ((dtype && *dtype != input->tensor().dtype) || input->type() == node.result()->type())
      return false;
    if (!input->tensor().isContiguous()) // The result of a cast is dense.
      input = rewriter_.create(OpKind::Contiguous, {input}, node, &node)->result();
    replacements_[node.result()] = input;
    return changed_ = true;
  }

  /// Returns the value that readers of `value` read.
  Value *replaced(Value *value) const {
    auto it = replacements_.find(value);
    return it == replacements_.end() ? value : it->second;
  }
  /// Returns the arguments of the cast `node`; a parameter becomes what the cast makes of it.
  std::vector<Arg> argsOfCast(Node &node) {
    std::vector<Arg> args = node.args().vec();
    args[0] = isParameter(*args[0].value())
                  ? parameter(*args[0].value()->node(), dtypeOf(*node.result()))
                  : replaced(args[0].value());
    return args;
  }

  static bool isParameter(const Value &value) {
    return value.node()->kind() == ir::NodeKind::GetAttr && isFloating(value.tensor().dtype);
  }

  /// Returns the arguments of `node` with all floating tensors in `dtype`.
  std::vector<Arg> mapped(Node &node, DType dtype) {
    std::vector<Arg> args = node.args().vec();
    for (Arg &arg : args)
      arg.mapValues([&](Value *value) {
        return Arg(isParameter(*value) ? parameter(*value->node(), dtype)
                                       : cast(replaced(value), dtype, node));
      });
    return args;
  }

  /// Returns `value` in `dtype` for `before` and later nodes, if its dtype is floating.
  Value *cast(Value *value, DType dtype, Node &before) {
    if (!isFloating(value->tensor().dtype) || value->tensor().dtype == dtype)
      return value;
    Value *&result = casts_[{value, static_cast<int>(dtype)}];
    if (!result)
      result = rewriter_.create(OpKind::To, {value, dtype, Arg()}, before, &before)->result();
    return result;
  }

  /// Returns the parameter that `attr` reads, as `dtype`.
  Value *parameter(Node &attr, DType dtype) {
    if (attr.result()->tensor().dtype == dtype)
      return attr.result();
    Value *&result = parameters_[{&attr, static_cast<int>(dtype)}];
    if (result)
      return result;
    ir::Module *owner = graph_.owner();
    const ir::Parameter *parameter = owner ? owner->findParameter(attr.target()) : nullptr;
    if (!parameter || !parameter->data) { // IR parsed from text has no bytes.
      Node *next = &*std::next(attr.getIterator());
      result = rewriter_.create(OpKind::To, {attr.result(), dtype, Arg()}, attr, next)->result();
      return result;
    }
    ir::TensorType type = attr.result()->tensor();
    type.dtype = dtype;
    double offender = 0;
    auto data = converted(*parameter->data, dtype, offender);
    if (!data) {
      diagnostics_.error(attr, "'" + attr.target() + "' holds " + pastLargest(offender, dtype));
      data = ir::TensorData::copyOf(ir::TensorType::dense(dtype, type.sizes),
                                    std::vector<std::byte>(type.numBytes()));
    }
    std::string hint = attr.target() + "_" + std::string(dtypeName(dtype));
    std::replace(hint.begin(), hint.end(), '.', '_');
    const std::string name = findOrAddConstant(*owner, hint, data, parameter->isOfModel());
    result = rewriter_.getAttr(name, type, attr, &attr)->result();
    return result;
  }

  /// Numbers that become elements must fit the dtype. Other numbers take part in arithmetic, which
  /// is wider.
  void fitNumbers(const Node &node, std::vector<Arg> &args) {
    const bool fills = node.is(OpKind::Full) || node.is(OpKind::FullLike) ||
                       node.is(OpKind::MaskedFill) || node.is(OpKind::Where) ||
                       node.is(OpKind::Arange);
    const bool bounds = node.is(OpKind::Clamp) || node.is(OpKind::ClampMin);
    for (Arg &arg : args) {
      if (!arg.is<double>() && !arg.is<int64_t>())
        continue;
      const double number = *arg.asNumber();
      std::optional<double> fitted = fit(number, precision_);
      if (!fitted && bounds) // No value of this dtype lies beyond the bound.
        fitted = std::copysign(largestFinite(precision_), number);
      if (fitted && *fitted != number)
        arg = *fitted;
      else if (!fitted && fills)
        diagnostics_.error(node, "the number is " + pastLargest(number, precision_));
    }
  }

  void setArgs(Node &node, std::vector<Arg> args) {
    if (node.args() != llvm::ArrayRef(args))
      rewriter_.setArgs(&node, std::move(args));
  }
  void setType(Value &value, ir::TensorType type) {
    if (value.type() == ir::Type(type))
      return;
    value.setType(std::move(type));
    changed_ = true;
  }

  ir::Graph &graph_;
  ir::GraphRewriter rewriter_;
  DType precision_;
  ir::Diagnostics &diagnostics_;
  WideValues wide_;
  bool changed_ = false;
  // Looked up, never iterated.
  llvm::DenseMap<const Value *, Value *> replacements_;              ///< The value that readers
                                                                     ///< read instead.
  llvm::DenseMap<std::pair<const Node *, int>, Value *> parameters_; ///< By get_attr node and
                                                                     ///< dtype.
  llvm::DenseMap<std::pair<const Value *, int>, Value *> casts_;     ///< By value and dtype.
};

} // namespace

Result<PrecisionPass> PrecisionPass::create(PassOptions &options) {
  CGC_ASSIGN_OR_RETURN(const auto to, options.takeOneOf("to", {"f16", "bf16", "f32"}));
  if (!to)
    return Status(Code::Usage, "pass 'precision' needs a dtype, as in precision{to=f16}");
  return PrecisionPass{.to = *parseDType(*to)};
}

Result<Changed> PrecisionPass::run(ir::Graph &graph, PassContext &context) const {
  CGC_TRY(requireTypes(graph));
  CGC_TRY(requireFunctional(graph));
  // To 16 bits: constants are computed as exactly as the model computes them, then rounded once. To
  // f32: constants are computed in f32, so that no rounding of the model's precision remains.
  Changed folded = Changed::No;
  if (dtypeSize(to) == 2) {
    CGC_ASSIGN_OR_RETURN(folded, FoldPass().run(graph, context));
  }
  ir::Diagnostics diagnostics;
  const bool changed = Converter(graph, to, diagnostics).run();
  if (diagnostics.hasErrors()) {
    if (context.diagnostics)
      for (const ir::Diagnostic &error : diagnostics.errors())
        context.diagnostics->error(error);
    return diagnostics.toStatus(Code::Unsupported);
  }
  if (changed)
    CGC_TRY(CanonicalizePass().run(graph, context).status());
  return changed || folded == Changed::Yes ? Changed::Yes : Changed::No;
}

CGC_DEFINE_PASS(PrecisionPass)

} // namespace cgc::passes
