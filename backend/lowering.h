// Lowering: how each op becomes records. An op is a view, a call of LibTorch that its OpDef names,
// has a function in lowerings.def, or is lowered as its definition (OpDef::decompose).
#pragma once

#include "backend/bucket_builder.h"
#include "ir/graph.h"
#include "runtime/base/status.h"

#include <string>
#include <variant>
#include <vector>

namespace cgc::backend {

/// Adds the records of `node` and places its results. The results have types and the arguments are
/// placed. Unsupported if cgc cannot run this form of the op; the caller adds the location.
using LowerFn = Status (*)(const ir::Node &node, BucketBuilder &builder);
/// Adds launches of cgc's kernels that compute `node`, places its results and returns true. Returns
/// false if no kernel takes the operands; the records that it has added are then removed.
using LaunchFn = Result<bool> (*)(const ir::Node &node, BucketBuilder &builder);

/// One argument of a call of LibTorch: an argument of the op by its position, or a constant.
using CallArg = std::variant<unsigned, AtenArg>;

struct Lowering {
  enum class Kind {
    Host,    ///< Evaluated by the pass `specialize`: never reaches the backend.
    View,    ///< Always a view: no record.
    Into,    ///< A call of `op.overload`, which computes into the results.
    Copied,  ///< A call of `op.overload`, whose results the provider copies.
    Special, ///< `special` adds the records.
    Defined, ///< `launch` adds launches, if it is there and takes the operands; else the ops of
             ///< the definition are lowered.
  };
  Kind kind;
  std::string op = {}, overload = {};
  std::vector<CallArg> args = {};
  LowerFn special = nullptr;
  LaunchFn launch = nullptr;
};

/// The lowering of an op: its function in lowerings.def, or what its OpDef says.
const Lowering &lowering(ir::OpKind op);

/// The places of the results of `node`, a view of `base`. Nothing if a result needs memory of its
/// own. The rule of the op may refuse the arguments.
Result<std::optional<std::vector<Place>>> viewPlaces(const ir::Node &node, const Place &base,
                                                     DeviceKind target);
/// The place of `value`. A value that is not lowered yet has no storage; its place then has the
/// offset that is to be expected: that of a view, or 0 for a value with memory of its own.
Place expectedPlace(const ir::Value &value, const BucketBuilder &builder);

/// The arguments of a call, in schema order.
std::vector<AtenArg> callArgs(const ir::Node &node, BucketBuilder &builder);

/// `place`, or a dense copy of it if it is strided.
Place densePlace(const Place &place, BucketBuilder &builder);

/// `place`, or a dense copy of it, as a tensor of one dimension.
Place flatPlace(const Place &place, BucketBuilder &builder);

/// Adds the record of result = x + z, or x z. The result may be one of them.
void addInto(const Place &x, const Place &z, const Place &result, BucketBuilder &builder);
void multiplyInto(const Place &x, const Place &z, const Place &result, BucketBuilder &builder);

/// A 0-d temporary filled with a number, for overloads of LibTorch that take tensors only.
Place scalarTensor(const ir::Arg &number, DType dtype, BucketBuilder &builder);

// The functions of lowerings.def, each defined in a file of backend/ops.
#define CGC_LOWERING(Enum, function) Status function(const ir::Node &node, BucketBuilder &builder);
#define CGC_LAUNCH(Enum, function)                                                                 \
  Result<bool> function(const ir::Node &node, BucketBuilder &builder);
#include "backend/lowerings.def"

} // namespace cgc::backend
