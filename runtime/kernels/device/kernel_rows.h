// Macros with which a .cu file defines the device half of its rows of kernels.def.
#pragma once

#include "runtime/kernels/device/device_kernels.h"

/// Defines the function and bind of a row, in namespace cgc.
#define CGC_KERNEL_OF(NAME, GLOBAL, BIND)                                                          \
  const void *NAME##Function() {                                                                   \
    return reinterpret_cast<const void *>(&GLOBAL);                                                \
  }                                                                                                \
  Result<KernelParameters> NAME##Bind(const LaunchView &launch, const LaunchAddresses &at) {       \
    return BIND(launch, at);                                                                       \
  }
/// Defines those of NAME_f32, NAME_f16 and NAME_bf16 from templates on the element type.
#define CGC_FLOAT_KERNELS(NAME, GLOBAL, BIND)                                                      \
  CGC_KERNEL_OF(NAME##_f32, GLOBAL<float>, BIND<float>)                                            \
  CGC_KERNEL_OF(NAME##_f16, GLOBAL<__half>, BIND<__half>)                                          \
  CGC_KERNEL_OF(NAME##_bf16, GLOBAL<__nv_bfloat16>, BIND<__nv_bfloat16>)
