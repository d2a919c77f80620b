// cgc.library_op: a call into the op library that defines the op.
#include "backend/lowering.h"

#include "runtime/plan/op_library.h"

namespace cgc::backend {
namespace {

Result<const OpLibrary *> libraryWith(const std::string &op, const BucketBuilder &builder) {
  const OpLibrary *found = nullptr;
  for (const auto &library : builder.opLibraries()) {
    if (!library->find(op))
      continue;
    if (found)
      return Status(Code::Unsupported, "op '" + op + "' is in two op libraries, '" + found->path() +
                                           "' and '" + library->path() + "'");
    found = library.get();
  }
  if (!found)
    return Status(Code::Unsupported, "no op library has op '" + op +
                                         "': name the one that has with " + kOpLibraryOption);
  return found;
}

CgcOpTensor describe(const Place &place) {
  return {nullptr, place.sizes.data(), static_cast<uint32_t>(place.sizes.size()),
          static_cast<uint32_t>(place.dtype)};
}

} // namespace

Status lowerLibraryOp(const ir::Node &node, BucketBuilder &builder) {
  LibraryCall call;
  call.function = node.arg("op").as<std::string>();
  CGC_ASSIGN_OR_RETURN(const OpLibrary *library, libraryWith(call.function, builder));
  call.library = library->id().name;
  const auto ints = *node.arg("ints").asInts();
  call.ints.assign(ints.begin(), ints.end());
  for (const ir::Arg &number : node.arg("floats").list())
    call.floats.push_back(*number.asNumber());

  std::vector<Place> inputs;
  for (const ir::Arg &input : node.arg("inputs").list())
    inputs.push_back(densePlace(builder.place(input.value()), builder));
  Place result = builder.allocate(*node.result());
  std::vector<CgcOpTensor> tensors;
  for (const Place &input : inputs) {
    call.reads.push_back(builder.tensor(input));
    tensors.push_back(describe(input));
  }
  call.writes = {builder.tensor(result)};
  CGC_TRY(checkOpCall(*library, *library->find(call.function),
                      {tensors, describe(result), call.ints, call.floats}, builder.target()));
  builder.record({std::move(call)});
  return Status::ok();
}

} // namespace cgc::backend
