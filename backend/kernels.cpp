// Launches of cgc's own kernels.
#include "backend/kernels.h"

#include "ir/op_def.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/warp_rows.h"

namespace cgc::backend {
namespace {

/// `place` as the runtime will bind it. Every buffer begins at a multiple of this address.
TensorView standIn(const Place &place) {
  TensorView view{reinterpret_cast<void *>(kBufferAlignment + place.offset),
                  place.dtype,
                  DeviceKind::Cuda,
                  place.sizes,
                  {}};
  if (!place.type().isContiguous())
    view.strides = place.strides;
  return view;
}

/// Blocks of elementwise and what is launched as it for this result: threads take 16 bytes, of the
/// result or of operands of this dtype, where elements lie together.
uint64_t elementwiseBlocksFor(const Place &result, std::optional<DType> operands = {}) {
  uint64_t width = 16 / dtypeSize(operands.value_or(result.dtype));
  bool together = !result.strides.empty() && result.strides.back() == 1;
  return elementwiseBlocks(result.type().numElements(), together ? width : 1);
}

/// What elementwise computes of one argument.
std::optional<ElementwiseOp> unaryOp(const ir::Node &node) {
  switch (node.op()) {
  case ir::OpKind::Abs:
    return ElementwiseOp::Abs;
  case ir::OpKind::Neg:
    return ElementwiseOp::Neg;
  case ir::OpKind::Exp:
    return ElementwiseOp::Exp;
  case ir::OpKind::Sqrt:
    return ElementwiseOp::Sqrt;
  case ir::OpKind::Rsqrt:
    return ElementwiseOp::Rsqrt;
  case ir::OpKind::Sin:
    return ElementwiseOp::Sin;
  case ir::OpKind::Cos:
    return ElementwiseOp::Cos;
  case ir::OpKind::Erf:
    return ElementwiseOp::Erf;
  case ir::OpKind::Sigmoid:
    return ElementwiseOp::Sigmoid;
  case ir::OpKind::Tanh:
    return ElementwiseOp::Tanh;
  case ir::OpKind::Relu:
    return ElementwiseOp::Relu;
  case ir::OpKind::Gelu:
    return node.arg("approximate").as<std::string>() == "tanh" ? ElementwiseOp::GeluTanh
                                                               : ElementwiseOp::Gelu;
  case ir::OpKind::Silu:
    return ElementwiseOp::Silu;
  default:
    return std::nullopt;
  }
}

/// What elementwise computes of arguments 0 and 1, in this order.
std::optional<ElementwiseOp> binaryOp(const ir::Node &node) {
  switch (node.op()) {
  case ir::OpKind::Add:
    return ElementwiseOp::Add;
  case ir::OpKind::Sub:
    return ElementwiseOp::Sub;
  case ir::OpKind::Rsub:
    return ElementwiseOp::ReverseSub;
  case ir::OpKind::Mul:
    return ElementwiseOp::Mul;
  case ir::OpKind::Div:
    if (!node.arg("rounding_mode").isNone())
      return std::nullopt;
    return ElementwiseOp::Div;
  case ir::OpKind::Pow:
    return ElementwiseOp::Pow;
  case ir::OpKind::Maximum:
  case ir::OpKind::ClampMin:
    return ElementwiseOp::Maximum;
  case ir::OpKind::Minimum:
    return ElementwiseOp::Minimum;
  default:
    return std::nullopt;
  }
}

/// The op of the same result with its operands exchanged.
std::optional<ElementwiseOp> exchanged(ElementwiseOp op) {
  switch (op) {
  case ElementwiseOp::Sub:
    return ElementwiseOp::ReverseSub;
  case ElementwiseOp::ReverseSub:
    return ElementwiseOp::Sub;
  case ElementwiseOp::Div:
    return ElementwiseOp::ReverseDiv;
  case ElementwiseOp::ReverseDiv:
    return ElementwiseOp::Div;
  case ElementwiseOp::Pow:
    return std::nullopt;
  default:
    return op;
  }
}

/// The comparison of arguments 0 and 1, in this order.
std::optional<CompareOp> comparison(const ir::Node &node) {
  switch (node.op()) {
  case ir::OpKind::Eq:
    return CompareOp::Eq;
  case ir::OpKind::Ne:
    return CompareOp::Ne;
  case ir::OpKind::Lt:
    return CompareOp::Lt;
  case ir::OpKind::Le:
    return CompareOp::Le;
  case ir::OpKind::Gt:
    return CompareOp::Gt;
  case ir::OpKind::Ge:
    return CompareOp::Ge;
  default:
    return std::nullopt;
  }
}

/// The comparison of the same result with its operands exchanged.
CompareOp exchanged(CompareOp op) {
  switch (op) {
  case CompareOp::Eq:
  case CompareOp::Ne:
    return op;
  case CompareOp::Lt:
    return CompareOp::Gt;
  case CompareOp::Le:
    return CompareOp::Ge;
  case CompareOp::Gt:
    return CompareOp::Lt;
  case CompareOp::Ge:
    return CompareOp::Le;
  }
  llvm_unreachable("all comparisons have been named");
}

bool launchComparison(const ir::Node &node, CompareOp op, BucketBuilder &builder) {
  const ir::Arg *x = &node.arg(0), *z = &node.arg(1);
  if (!x->isValue()) {
    op = exchanged(op);
    std::swap(x, z);
  }
  const std::optional<Operand> left = operand(*x, builder), right = operand(*z, builder);
  if (!left || !right)
    return false;
  const auto *tensor = std::get_if<Place>(&*left), *other = std::get_if<Place>(&*right);
  // LibTorch compares integers with a float as floats.
  if (!tensor || (!isFloating(tensor->dtype) && z->is<double>()))
    return false;
  return launchCompare(op, *tensor, other ? std::optional(*other) : std::nullopt,
                       other ? 0 : std::get<double>(*right), builder.allocate(*node.result()),
                       builder);
}

/// not, and, or of bools.
bool launchLogic(const ir::Node &node, BucketBuilder &builder) {
  for (const ir::Arg &arg : node.args())
    if (!arg.isValue() || arg.value()->tensor().dtype != DType::Bool)
      return false;
  const Place x = builder.place(node.arg(0).value()), result = builder.allocate(*node.result());
  if (node.is(ir::OpKind::BitwiseNot))
    return launchCompare(CompareOp::Eq, x, std::nullopt, 0, result, builder);
  const Place z = builder.place(node.arg(1).value());
  return node.is(ir::OpKind::BitwiseAnd) ? launchWhere(x, z, 0.0, result, builder)
                                         : launchWhere(x, 1.0, z, result, builder);
}

bool launchBinary(const ir::Node &node, ElementwiseOp op, BucketBuilder &builder) {
  const ir::Arg *x = &node.arg(0), *z = &node.arg(1);
  // add, sub and rsub scale one operand.
  const ir::Arg *scaled = nullptr;
  double alpha = 1;
  if (node.is(ir::OpKind::Add) || node.is(ir::OpKind::Sub) || node.is(ir::OpKind::Rsub)) {
    scaled = node.is(ir::OpKind::Rsub) ? x : z;
    alpha = *node.arg("alpha").asNumber();
  }
  if (!x->isValue()) {
    std::optional<ElementwiseOp> other = exchanged(op);
    if (!other)
      return false;
    op = *other;
    std::swap(x, z);
  }
  if (!x->isValue() || (alpha != 1 && (scaled != z || z->isValue())))
    return false;
  std::optional<Place> tensor;
  double number = 0;
  if (z->isValue())
    tensor = builder.place(z->value());
  else
    number = *z->asNumber() * alpha;
  return launchElementwise(op, builder.place(x->value()), tensor, number,
                           builder.allocate(*node.result()), builder);
}

} // namespace

std::string kernelNamed(llvm::StringRef name, DType dtype) {
  return name.str() + "_" + std::string(dtypeName(dtype));
}

KernelLaunch launchOf(llvm::StringRef kernel) {
  const Kernel *row = findKernel({kernel.data(), kernel.size()});
  assert(row && "not a row of kernels.def");
  KernelLaunch launch;
  launch.kernel = row->name;
  launch.abiHash = row->abiHash;
  return launch;
}

bool takes(const KernelLaunch &record, const Operands &operands, const BucketBuilder &builder) {
  const Kernel &kernel = *findKernel(record.kernel);
  if (builder.target() != DeviceKind::Cuda ||
      ((kernel.traits & kHopper) && builder.arch() != Arch::Sm90a))
    return false;
  [[maybe_unused]] const size_t moments = kernel.traits & kMoments ? 1 : 0;
  assert(operands.reads.size() == kernel.reads &&
         operands.writes.size() + moments == kernel.writes && record.ints.size() == kernel.ints &&
         record.floats.size() == kernel.floats);
  std::vector<TensorView> reads, writes;
  for (const std::optional<Place> &place : operands.reads)
    reads.push_back(place ? standIn(*place) : TensorView());
  for (const Place &place : operands.writes)
    writes.push_back(standIn(place));
  writes.resize(kernel.writes);
  return kernel
      .bind({.grid = record.grid,
             .block = record.block,
             .sharedBytes = record.sharedBytes,
             .reads = reads,
             .writes = writes,
             .ints = record.ints,
             .floats = record.floats,
             .onlyChecks = true})
      .isOk();
}

bool launch(KernelLaunch record, const Operands &operands, BucketBuilder &builder) {
  if (!takes(record, operands, builder))
    return false;
  for (const std::optional<Place> &place : operands.reads)
    record.reads.push_back(place ? builder.tensor(*place) : kNoTensor);
  for (const Place &place : operands.writes)
    record.writes.push_back(builder.tensor(place));
  record.writes.resize(findKernel(record.kernel)->writes, kNoTensor);
  builder.record({std::move(record)});
  return true;
}

bool launch(const Launch &launch, BucketBuilder &builder) {
  if (!findKernel(launch.kernel))
    return false;
  KernelLaunch record = launchOf(launch.kernel);
  record.grid[0] = static_cast<uint32_t>(launch.blocks);
  record.grid[1] = launch.blocksY;
  record.grid[2] = launch.blocksZ;
  record.block[0] = launch.threads;
  record.sharedBytes = launch.sharedBytes;
  record.ints = launch.ints;
  record.floats = launch.floats;
  return backend::launch(std::move(record), {launch.reads, launch.writes}, builder);
}

bool launchWarpRows(std::string kernel, int64_t rows, std::vector<std::optional<Place>> reads,
                    const Place &result, BucketBuilder &builder, std::vector<double> floats) {
  return launch({.kernel = std::move(kernel),
                 .blocks = warpRowBlocks(rows),
                 .threads = kWarpRowThreads,
                 .reads = std::move(reads),
                 .writes = {result},
                 .floats = std::move(floats)},
                builder);
}

bool launchElementwise(ElementwiseOp op, const Place &x, const std::optional<Place> &z,
                       double number, const Place &result, BucketBuilder &builder) {
  return launch({.kernel = kernelNamed("elementwise", result.dtype),
                 .blocks = elementwiseBlocksFor(result),
                 .threads = kElementwiseThreads,
                 .reads = {x, z},
                 .writes = {result},
                 .ints = {static_cast<int64_t>(op)},
                 .floats = {number}},
                builder);
}

bool launchCompare(CompareOp op, const Place &x, const std::optional<Place> &z, double number,
                   const Place &result, BucketBuilder &builder) {
  return launch({.kernel = kernelNamed("compare", x.dtype),
                 .blocks = elementwiseBlocksFor(result, x.dtype),
                 .threads = kElementwiseThreads,
                 .reads = {x, z},
                 .writes = {result},
                 .ints = {static_cast<int64_t>(op)},
                 .floats = {number}},
                builder);
}

bool launchWhere(const std::optional<Place> &condition, const Operand &x, const Operand &z,
                 const Place &result, BucketBuilder &builder) {
  Launch where{.kernel = "where",
               .blocks = elementwiseBlocksFor(result),
               .threads = kElementwiseThreads,
               .reads = {condition},
               .writes = {result}};
  for (const Operand &operand : {x, z}) {
    const auto *tensor = std::get_if<Place>(&operand);
    where.reads.push_back(tensor ? std::optional(*tensor) : std::nullopt);
    where.floats.push_back(tensor ? 0 : std::get<double>(operand));
  }
  return launch(where, builder);
}

std::optional<Operand> operand(const ir::Arg &arg, const BucketBuilder &builder) {
  if (arg.isValue())
    return builder.place(arg.value());
  // Integers beyond this distance lie closer together than doubles.
  constexpr int64_t kExact = int64_t(1) << 53;
  if (const auto *integer = arg.getIf<int64_t>();
      integer && (*integer < -kExact || *integer > kExact))
    return std::nullopt;
  const std::optional<double> number = arg.asNumber();
  return number ? std::optional<Operand>(*number) : std::nullopt;
}

bool launchCopy(const Place &source, const Place &destination, BucketBuilder &builder) {
  return launch({.kernel = "copy",
                 .blocks = elementwiseBlocksFor(destination),
                 .threads = kElementwiseThreads,
                 .reads = {source},
                 .writes = {destination}},
                builder);
}

bool launchPointwise(const ir::Node &node, BucketBuilder &builder) {
  if (builder.target() != DeviceKind::Cuda)
    return false;
  if (std::optional<ElementwiseOp> op = unaryOp(node))
    return launchElementwise(*op, builder.place(node.arg(0).value()), std::nullopt, 0,
                             builder.allocate(*node.result()), builder);
  if (std::optional<ElementwiseOp> op = binaryOp(node))
    return launchBinary(node, *op, builder);
  if (std::optional<CompareOp> op = comparison(node))
    return launchComparison(node, *op, builder);
  if (node.is(ir::OpKind::BitwiseNot) || node.is(ir::OpKind::BitwiseAnd) ||
      node.is(ir::OpKind::BitwiseOr))
    return launchLogic(node, builder);
  return false;
}

} // namespace cgc::backend
