// DType and DeviceKind: element types and devices of cgc tensors.
#pragma once

#include "runtime/base/export.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cgc {

/// Element types. The values are part of the plan format: append, never renumber.
enum class DType : uint8_t { F32, F16, BF16, F64, I64, I32, I16, I8, U8, Bool };
inline constexpr int kNumDTypes = 10;

/// The short name used in IR text and on the command line: "f32", "bf16", "i64", "bool".
CGC_API std::string_view dtypeName(DType dtype);
/// The inverse of dtypeName; std::nullopt for an unknown name.
CGC_API std::optional<DType> parseDType(std::string_view name);
/// Bytes per element.
CGC_API size_t dtypeSize(DType dtype);
CGC_API bool isFloating(DType dtype);

/// The device that holds a tensor. The values are part of the plan format.
enum class DeviceKind : uint8_t { Cpu, Cuda };
CGC_API std::string_view deviceName(DeviceKind device);
CGC_API std::optional<DeviceKind> parseDevice(std::string_view name);

} // namespace cgc
