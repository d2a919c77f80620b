// DType and DeviceKind: names, sizes and classification.
#include "runtime/base/dtype.h"

namespace cgc {
namespace {
struct Row {
  std::string_view name;
  size_t size;
};
constexpr Row kRows[kNumDTypes] = {{"f32", 4}, {"f16", 2}, {"bf16", 2}, {"f64", 8}, {"i64", 8},
                                   {"i32", 4}, {"i16", 2}, {"i8", 1},   {"u8", 1},  {"bool", 1}};
} // namespace

std::string_view dtypeName(DType dtype) {
  return kRows[static_cast<int>(dtype)].name;
}

std::optional<DType> parseDType(std::string_view name) {
  for (int i = 0; i < kNumDTypes; ++i)
    if (kRows[i].name == name)
      return static_cast<DType>(i);
  return std::nullopt;
}

size_t dtypeSize(DType dtype) {
  return kRows[static_cast<int>(dtype)].size;
}

bool isFloating(DType dtype) {
  return dtype <= DType::F64;
}

std::string_view deviceName(DeviceKind device) {
  return device == DeviceKind::Cpu ? "cpu" : "cuda";
}

std::optional<DeviceKind> parseDevice(std::string_view name) {
  if (name == "cpu")
    return DeviceKind::Cpu;
  if (name == "cuda")
    return DeviceKind::Cuda;
  return std::nullopt;
}

} // namespace cgc
