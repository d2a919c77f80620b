// Checks of addresses, by cudaPointerGetAttributes, which needs some tenths of a microsecond each.
#include "runtime/session/device_views.h"

#include "runtime/exec/cuda_support.h"

namespace cgc {
namespace {

/// Where memory is.
struct Place {
  int gpu = -1;           ///< -1 for host memory.
  bool isManaged = false; ///< Of either kind.
};

Result<Place> placeOf(const void *data) {
  cudaPointerAttributes attributes = {};
  CGC_TRY(CGC_CUDA(cudaPointerGetAttributes(&attributes, data), "cannot look at an address"));
  if (attributes.type == cudaMemoryTypeDevice)
    return Place{attributes.device, false};
  return Place{-1, attributes.type == cudaMemoryTypeManaged};
}

Status checkAddress(const TensorView &view, const std::string &name, const char *kind, int device) {
  if (!view.data)
    return Status::ok(); // An empty tensor.
  const Result<Place> found = placeOf(view.data);
  if (!found.isOk())
    return found.status().withContext(std::string(kind) + " '" + name + "'");
  const Place &place = *found;
  const auto fail = [&](const std::string &what) {
    return Status(Code::Usage, std::string(kind) + " '" + name + "' " + what);
  };
  if (view.device == DeviceKind::Cpu)
    return place.gpu < 0 ? Status::ok()
                         : fail("is said to be in host memory, and its address is of GPU " +
                                std::to_string(place.gpu));
  if (place.isManaged || place.gpu == device)
    return Status::ok();
  if (place.gpu < 0)
    return fail("is said to be in device memory, and its address is of the host");
  return fail("is in the memory of GPU " + std::to_string(place.gpu) +
              ", and the request runs on GPU " + std::to_string(device));
}

} // namespace

Result<std::optional<int>> deviceOfViews(std::span<const TensorView> inputs,
                                         std::span<const TensorView> outputs) {
  for (const auto views : {inputs, outputs})
    for (const TensorView &view : views)
      if (view.device == DeviceKind::Cuda && view.data) {
        CGC_ASSIGN_OR_RETURN(const Place place, placeOf(view.data));
        if (place.gpu >= 0)
          return std::optional<int>(place.gpu);
      }
  return std::optional<int>();
}

Status checkAddresses(const Entry &entry, std::span<const TensorView> inputs,
                      std::span<const TensorView> outputs, int device) {
  const Bucket &names = entry.buckets[0];
  for (size_t i = 0; i < inputs.size(); ++i)
    CGC_TRY(checkAddress(inputs[i], names.inputs[i].name, "input", device));
  for (size_t i = 0; i < outputs.size(); ++i)
    CGC_TRY(checkAddress(outputs[i], names.outputs[i].name, "output", device));
  return Status::ok();
}

} // namespace cgc
