// libtriton_cgc: the functions by which the Triton Inference Server runs plans (docs/triton.md).
#include "triton/instance.h"

using namespace cgc_triton;

namespace {

// Null for what could not be initialized.
Model *modelOf(TRITONBACKEND_Model *model) {
  return static_cast<Model *>(get(TRITONBACKEND_ModelState, model));
}

Instance *instanceOf(TRITONBACKEND_ModelInstance *instance) {
  return static_cast<Instance *>(get(TRITONBACKEND_ModelInstanceState, instance));
}

} // namespace

TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *) {
  return guarded([] {
    uint32_t major = 0, minor = 0;
    check(TRITONBACKEND_ApiVersion(&major, &minor));
    const auto text = [](uint32_t major, uint32_t minor) {
      return std::to_string(major) + "." + std::to_string(minor);
    };
    if (major != kTritonApiMajor || minor < kTritonApiMinor)
      throw Error(TRITONSERVER_ERROR_UNSUPPORTED,
                  "libtriton_cgc.so needs version " + text(kTritonApiMajor, kTritonApiMinor) +
                      " of the backend API or a later one of " + std::to_string(kTritonApiMajor) +
                      ", but this server has " + text(major, minor) +
                      ": use tritonserver 2.51, with which cgc is tested, or a newer one");
  });
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model) {
  return guarded([&] {
    auto created = std::make_unique<Model>(model);
    // TRITONBACKEND_ModelFinalize deletes it.
    check(TRITONBACKEND_ModelSetState(model, created.release()));
  });
}

TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model) {
  return guarded([&] { delete modelOf(model); });
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance) {
  return guarded([&] {
    Model *const model = modelOf(get(TRITONBACKEND_ModelInstanceModel, instance));
    auto created = std::make_unique<Instance>(*model, instance);
    // TRITONBACKEND_ModelInstanceFinalize deletes it.
    check(TRITONBACKEND_ModelInstanceSetState(instance, created.release()));
  });
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance) {
  return guarded([&] { delete instanceOf(instance); });
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests,
                                                       uint32_t count) {
  return guarded([&] { instanceOf(instance)->execute({requests, count}); });
}
