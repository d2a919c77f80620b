// aten.arange: evenly spaced values.
#include "ir/ops/batch_rules.h"
#include "ir/ops/rules.h"

#include <cmath>

namespace cgc::ir {
namespace {

Status inferArange(const InferArgs &args, rules::Results &results) {
  // As in LibTorch: i64 counts exactly, all other dtypes count in double.
  const Arg &start = args["start"], &end = args["end"], &step = args["step"];
  bool integers = !start.is<double>() && !end.is<double>() && !step.is<double>();
  DType dtype = !args.isNone("dtype") ? args.dtype("dtype") : integers ? DType::I64 : DType::F32;
  if (dtype == DType::Bool)
    return rules::refuse("expected 'dtype' to be numeric, got bool");
  double first = args.number("start"), last = args.number("end"), by = args.number("step");
  if (!std::isfinite(first) || !std::isfinite(last) || !(std::abs(by) > 0))
    return rules::refuse("expected finite bounds and a step other than 0");
  if ((by > 0) != (last >= first) && last != first)
    return rules::refuse("expected 'step' to lead from 'start' to 'end', got the opposite sign");
  constexpr double limit = 9.0e18;
  if (dtype == DType::I64) {
    for (double value : {first, last, by})
      if (std::abs(value) > limit)
        return rules::refuse("a bound or the step is too large for i64");
    auto whole = [](const Arg &arg) {
      const int64_t *integer = arg.getIf<int64_t>();
      return integer ? *integer : static_cast<int64_t>(*arg.asNumber());
    };
    int64_t stride = whole(step), span;
    if (stride == 0)
      return rules::refuse("expected 'step' to be at least 1 for i64");
    if (__builtin_sub_overflow(whole(end), whole(start), &span))
      return rules::refuse("the range has too many elements");
    return rules::addDense(results, dtype, {span / stride + (span % stride != 0 ? 1 : 0)});
  }
  double count = std::ceil((last - first) / by);
  if (!(count <= limit))
    return rules::refuse("the range has too many elements");
  return rules::addDense(results, dtype, {static_cast<int64_t>(count)});
}

} // namespace

const OpDef defs::Arange = {
    .schema = "(number start, number end, number step=1, dtype? dtype=none) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferArange,
    .batch =
        [](const BatchCall &call) {
          const bool counts = call.args.number("start") == 0 && call.args.number("step") == 1;
          if (!counts || call.result().sizes[0] != call.batch())
            return BatchState();
          // Only integers may index rows.
          return isFloating(call.result().dtype) ? BatchState::mixed()
                                                 : BatchState{.kind = BatchState::RowIndex};
        },
    .doc = "start, start + step, ... up to but without end: [ceil((end - start) / step)]. i64 if "
           "all three are integers, else f32, unless dtype is given.",
};

} // namespace cgc::ir
