// rules: helpers of the type rules of several ops.
#include "ir/ops/rules.h"

#include "ir/graph.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <limits>

namespace cgc::ir::rules {

// ---- Errors

Status refuse(const llvm::Twine &message) {
  return Status(Code::Unsupported, message.str());
}

Status mismatch(llvm::StringRef arg, const llvm::Twine &expected, const TensorType &got) {
  return refuse("expected '" + arg + "' to be " + expected + ", got " + ir::toString(got));
}

Status mismatch(llvm::StringRef arg, const llvm::Twine &expected, int64_t got) {
  return refuse("expected '" + arg + "' to be " + expected + ", got " + llvm::Twine(got));
}

std::string toString(llvm::ArrayRef<int64_t> sizes) {
  auto texts = llvm::map_range(sizes, [](int64_t size) { return std::to_string(size); });
  return "[" + llvm::join(texts, ",") + "]";
}

// ---- Results

Status checkSizes(DType dtype, llvm::ArrayRef<int64_t> sizes) {
  int64_t bytes = static_cast<int64_t>(dtypeSize(dtype));
  for (int64_t size : sizes) {
    if (size < 0)
      return refuse("the result would have a negative size: " + toString(sizes));
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes))
      return refuse("the result would be too large: " + std::string(dtypeName(dtype)) +
                    toString(sizes));
  }
  return Status::ok();
}

Status addDense(Results &results, DType dtype, llvm::ArrayRef<int64_t> sizes) {
  CGC_TRY(checkSizes(dtype, sizes));
  results.push_back({TensorType::dense(dtype, sizes), std::nullopt});
  return Status::ok();
}

Status addView(Results &results, const TensorType &base, Dims sizes, Dims strides, int64_t offset) {
  assert(sizes.size() == strides.size());
  CGC_TRY(checkSizes(base.dtype, sizes));
  int64_t extent = 0, step;
  for (auto [size, stride] : llvm::zip_equal(sizes, strides))
    if (__builtin_mul_overflow(size, stride, &step) ||
        __builtin_add_overflow(extent, step, &extent))
      return refuse("the view would reach too far: its strides are " + toString(strides));
  results.push_back({{base.dtype, std::move(sizes), std::move(strides), base.device}, offset});
  return Status::ok();
}

Status addAlias(Results &results, const TensorType &base) {
  return addView(results, base, base.sizes, base.strides);
}

// ---- Dimensions

Result<int64_t> wrapDim(llvm::StringRef arg, int64_t dim, int64_t rank) {
  int64_t count = std::max<int64_t>(rank, 1);
  if (dim < -count || dim >= count)
    return mismatch(arg, "in [" + llvm::Twine(-count) + ", " + llvm::Twine(count - 1) + "]", dim);
  return dim < 0 ? dim + count : dim;
}

Result<llvm::SmallVector<bool, 6>> listedDims(const InferArgs &args, llvm::StringRef arg,
                                              int64_t rank) {
  Dims dims = args.isNone(arg) ? Dims() : args.ints(arg);
  llvm::SmallVector<bool, 6> listed(std::max<int64_t>(rank, 1), dims.empty());
  for (int64_t dim : dims) {
    CGC_ASSIGN_OR_RETURN(int64_t wrapped, wrapDim(arg, dim, rank));
    if (listed[wrapped])
      return refuse("dimension " + llvm::Twine(dim) + " appears twice in '" + arg + "'");
    listed[wrapped] = true;
  }
  listed.resize(rank);
  return listed;
}

Dims reducedSizes(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<bool> reduced, bool keepDim) {
  Dims result;
  for (auto [size, drop] : llvm::zip_equal(sizes, reduced))
    if (!drop)
      result.push_back(size);
    else if (keepDim)
      result.push_back(1);
  return result;
}

Result<Dims> broadcast(llvm::StringRef what, llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
  size_t rank = std::max(a.size(), b.size());
  Dims result(rank);
  for (size_t i = 0; i < rank; ++i) { // Counts from the last dimension.
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      return refuse("expected " + what + " to broadcast, got sizes " + toString(a) + " and " +
                    toString(b));
    result[rank - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

bool broadcastsTo(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) {
  if (from.size() > to.size())
    return false;
  for (auto [x, y] : llvm::zip_equal(from, to.take_back(from.size())))
    if (x != y && x != 1)
      return false;
  return true;
}

Channels channelsOf(const TensorType &type, bool last) {
  const int64_t channelDim = last ? type.rank() - 1 : 1;
  Channels channels;
  channels.sizes.resize(static_cast<size_t>(type.rank() - channelDim), 1);
  channels.sizes.front() = type.sizes[channelDim];
  for (int64_t dim = 0; dim < type.rank(); ++dim)
    if (dim != channelDim)
      channels.others.push_back(dim);
  return channels;
}

// ---- Dtypes

DType promote(DType a, DType b) {
  if (a == b || b == DType::Bool)
    return a;
  if (a == DType::Bool)
    return b;
  if (isFloating(a) != isFloating(b))
    return isFloating(a) ? a : b;
  if (isFloating(a)) {
    if (dtypeSize(a) == dtypeSize(b))
      return DType::F32; // f16 with bf16.
    return dtypeSize(a) > dtypeSize(b) ? a : b;
  }
  if (dtypeSize(a) == dtypeSize(b))
    return DType::I16; // u8 with i8.
  return dtypeSize(a) > dtypeSize(b) ? a : b;
}

static void merge(std::optional<DType> &into, DType dtype) {
  into = into ? promote(*into, dtype) : dtype;
}

/// Returns `high`, unless `low` is of a higher kind.
static std::optional<DType> combine(std::optional<DType> high, std::optional<DType> low) {
  if (!high || !low)
    return high ? high : low;
  if (isFloating(*high))
    return high;
  if (*high == DType::Bool || isFloating(*low))
    return promote(*high, *low);
  return high;
}

Status sameDType(const InferArgs &args, llvm::StringRef arg,
                 std::initializer_list<llvm::StringRef> others) {
  DType dtype = args.tensor(arg).dtype;
  for (llvm::StringRef other : others)
    if (!args.isNone(other) && args.tensor(other).dtype != dtype)
      return mismatch(other, "of dtype " + std::string(dtypeName(dtype)) + ", as '" + arg + "'",
                      args.tensor(other));
  return Status::ok();
}

double machineEpsilon(DType dtype) {
  return dtype == DType::F32 ? std::numeric_limits<float>::epsilon()
                             : std::numeric_limits<double>::epsilon();
}

double largestFinite(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return 65504;
  case DType::BF16:
    return 0x1.fep127;
  case DType::F32:
    return std::numeric_limits<float>::max();
  default:
    return std::numeric_limits<double>::max();
  }
}

DType numberDType(const Arg &number) {
  if (number.is<bool>())
    return DType::Bool;
  return number.is<int64_t>() ? DType::I64 : DType::F32;
}

void Promotion::add(const TensorType &type) {
  merge(type.rank() > 0 ? dims_ : zeroDim_, type.dtype);
}

void Promotion::add(const Arg &operand) {
  if (operand.isValue())
    add(operand.value()->tensor());
  else
    merge(number_, numberDType(operand));
}

DType Promotion::result() const {
  return combine(dims_, combine(zeroDim_, number_)).value();
}

// ---- Complete rules

Result<TensorType> pointwise(const InferArgs &args,
                             std::initializer_list<llvm::StringRef> operands) {
  Promotion promotion;
  Dims sizes;
  bool anyTensor = false;
  std::string names;
  for (llvm::StringRef name : operands) {
    names += (names.empty() ? "'" : ", '") + name.str() + "'";
    if (args.isNone(name))
      continue;
    promotion.add(args[name]);
    if (!args.isTensor(name))
      continue;
    anyTensor = true;
    CGC_ASSIGN_OR_RETURN(sizes, broadcast(names, sizes, args.tensor(name).sizes));
  }
  if (!anyTensor)
    return refuse("expected a tensor among " + names + ", got numbers only");
  DType dtype = promotion.result();
  CGC_TRY(checkSizes(dtype, sizes));
  return TensorType::dense(dtype, sizes);
}

Status pointwiseResult(const InferArgs &args, std::initializer_list<llvm::StringRef> operands,
                       Results &results, bool allowBool) {
  CGC_ASSIGN_OR_RETURN(TensorType type, pointwise(args, operands));
  if (!allowBool && type.dtype == DType::Bool)
    return refuse("bool operands are not supported; convert one to an integer first");
  return addDense(results, type.dtype, type.sizes);
}

Status checkAlpha(const InferArgs &args, DType result) {
  const Arg &alpha = args["alpha"];
  if (alpha.is<double>() && !isFloating(result))
    return refuse("expected 'alpha' to be an int for a result of " +
                  std::string(dtypeName(result)));
  if (alpha.is<bool>() && result != DType::Bool)
    return refuse("expected 'alpha' to be a number, got a bool");
  return Status::ok();
}

Status unaryToFloat(const InferArgs &args, Results &results) {
  const TensorType &self = args.tensor("self");
  return addDense(results, isFloating(self.dtype) ? self.dtype : DType::F32, self.sizes);
}

Status unaryKeep(const InferArgs &args, Results &results) {
  if (!args.isTensor("self"))
    return refuse("expected 'self' to be a tensor, got a number");
  const TensorType &self = args.tensor("self");
  if (self.dtype == DType::Bool)
    return mismatch("self", "of a numeric dtype", self);
  return addDense(results, self.dtype, self.sizes);
}

Status unaryFloating(const InferArgs &args, Results &results) {
  const TensorType &self = args.tensor("self");
  if (!isFloating(self.dtype))
    return mismatch("self", "of a floating dtype", self);
  return addDense(results, self.dtype, self.sizes);
}

Status unaryAny(const InferArgs &args, Results &results) {
  return addDense(results, args.tensor("self").dtype, args.tensor("self").sizes);
}

Status unaryBool(const InferArgs &args, Results &results) {
  return addDense(results, DType::Bool, args.tensor("self").sizes);
}

Status difference(const InferArgs &args, Results &results) {
  CGC_ASSIGN_OR_RETURN(TensorType type, pointwise(args, {"self", "other"}));
  CGC_TRY(checkAlpha(args, type.dtype));
  for (llvm::StringRef name : {"self", "other"})
    if (args[name].is<bool>() || (args.isTensor(name) && args.tensor(name).dtype == DType::Bool))
      return refuse("bools cannot be subtracted: convert '" + name + "' or use bitwise_not");
  return addDense(results, type.dtype, type.sizes);
}

Status extremum(const InferArgs &args, Results &results) {
  for (llvm::StringRef name : {"self", "other"})
    if (!args.isTensor(name))
      return refuse("expected '" + name + "' to be a tensor, got a number");
  return pointwiseResult(args, {"self", "other"}, results);
}

Status compare(const InferArgs &args, Results &results) {
  CGC_ASSIGN_OR_RETURN(TensorType type, pointwise(args, {"self", "other"}));
  return addDense(results, DType::Bool, type.sizes);
}

Status compareTensors(const InferArgs &args, Results &results) {
  for (llvm::StringRef name : {"self", "other"})
    if (!args.isTensor(name))
      return refuse("expected '" + name + "' to be a tensor, got a number");
  return compare(args, results);
}

Status bitwise(const InferArgs &args, Results &results) {
  CGC_ASSIGN_OR_RETURN(TensorType type, pointwise(args, {"self", "other"}));
  if (isFloating(type.dtype))
    return refuse("expected integer or bool operands, got " + std::string(dtypeName(type.dtype)));
  return addDense(results, type.dtype, type.sizes);
}

Status matrices(const InferArgs &args, Results &results) {
  const TensorType &self = args.tensor("self");
  if (self.rank() < 2)
    return mismatch("self", "of rank 2 or more", self);
  return addDense(results, self.dtype, self.sizes);
}

} // namespace cgc::ir::rules
