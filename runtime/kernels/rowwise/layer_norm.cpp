// Checks launches of layer_norm_*, add_layer_norm_* and layer_norm_chain_*.
#include "runtime/kernels/rowwise/layer_norm.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {
namespace {

/// Checks all but the addend, the row statistics and the numbers of a chain. The operands from
/// launch.reads[firstParameter] on are weights and biases. `results` are y, after the sum if there
/// is an addend.
Result<LayerNormLaunch> checkNormRows(const LaunchView &launch, DType dtype, DType parameterType,
                                      size_t firstParameter, std::span<const OperandView> results) {
  const int64_t rows = launch.ints[0], columns = launch.ints[1];
  const auto elements =
      rows > 0 && columns > 0 ? checkedMul(rows, columns) : std::optional<uint64_t>();
  if (!elements || rows > INT32_MAX)
    return refuseLaunch("rows and columns have to be positive");
  if (launch.grid[0] == 0 || launch.grid[0] > layerNormMostBlocks(rows) ||
      !hasShape(launch, launch.grid[0], kLayerNormThreads))
    return refuseLaunch("the grid has to be {1 to layerNormMostBlocks(rows), 1, 1}, the block "
                        "{128, 1, 1}, without shared memory");
  if (!isDenseOf(launch.reads[0], dtype, *elements))
    return refuseLaunch("x has to be dense, of rows * columns elements");
  for (const OperandView &parameter : launch.reads.subspan(firstParameter))
    if (!isAbsentOrDenseOf(parameter, parameterType, columns))
      return refuseLaunch(
          "weight and bias have to be dense, of as many elements as there are columns");
  bool vectors = columns * dtypeSize(dtype) % 16 == 0;
  for (const auto &operands : {launch.reads, results})
    for (const OperandView &operand : operands)
      vectors &= isAligned(operand, 16);
  for (const OperandView &result : results)
    if (!isDenseOf(result, dtype, *elements))
      return refuseLaunch("the results have to be dense, of rows * columns elements");
  return LayerNormLaunch{rows, columns, /*addendRows=*/1, vectors};
}

} // namespace

Result<LayerNormLaunch> checkLayerNorm(const LaunchView &launch, DType dtype, DType parameterType) {
  CGC_ASSIGN_OR_RETURN(const LayerNormLaunch checked,
                       checkNormRows(launch, dtype, parameterType, 1, launch.writes.first(1)));
  if (hasRowStatistics(dtype) && launch.writes[1].isPresent())
    CGC_TRY(checkRowStatistics(launch.writes[1], checked.rows, checked.columns,
                               layerNormWritesRowStatistics(checked.columns, checked.vectors),
                               "at most 1024 columns, a multiple of 64"));
  return checked;
}

Result<LayerNormLaunch> checkAddLayerNorm(const LaunchView &launch, DType dtype,
                                          DType parameterType) {
  const int64_t columns = launch.ints[1], addendRows = launch.ints[2];
  const auto elements =
      columns > 0 && addendRows > 0 ? checkedMul(addendRows, columns) : std::optional<uint64_t>();
  if (!elements || !isDenseOf(launch.reads[1], dtype, *elements))
    return refuseLaunch("addend has to be dense, of addend_rows * columns elements");
  CGC_ASSIGN_OR_RETURN(LayerNormLaunch checked,
                       checkNormRows(launch, dtype, parameterType, 2, launch.writes));
  checked.addendRows = addendRows;
  return checked;
}

Result<LayerNormChainLaunch> checkLayerNormChain(const LaunchView &launch, DType dtype,
                                                 DType parameterType) {
  const int64_t norms = launch.ints[2], activation = launch.ints[3];
  CGC_ASSIGN_OR_RETURN(const LayerNormLaunch checked,
                       checkNormRows(launch, dtype, parameterType, 1, launch.writes));
  if (norms != 1 && norms != 2)
    return refuseLaunch("there have to be 1 or 2 norms");
  if (norms == 1 && (launch.reads[3].isPresent() || launch.reads[4].isPresent()))
    return refuseLaunch("one norm has no second weight and bias");
  if (norms == 2 && !layerNormChainIsTwice(checked.columns, checked.vectors))
    return refuseLaunch("two norms need at most 1024 columns, whole vectors of 16 bytes");
  if (activation < 0 || activation >= kNumActivations)
    return refuseLaunch("there is no such activation");
  return LayerNormChainLaunch{checked, norms == 2, Activation(activation)};
}

#define CGC_LAYER_NORM_CHECKS(NAME, DTYPE, PARAMETER)                                              \
  CGC_KERNEL_CHECK(layer_norm_##NAME, checkLayerNorm, DTYPE, PARAMETER)                            \
  CGC_KERNEL_CHECK(add_layer_norm_##NAME, checkAddLayerNorm, DTYPE, PARAMETER)                     \
  CGC_KERNEL_CHECK(layer_norm_chain_##NAME, checkLayerNormChain, DTYPE, PARAMETER)
CGC_LAYER_NORM_CHECKS(f32, DType::F32, DType::F32)
CGC_LAYER_NORM_CHECKS(f16, DType::F16, DType::F16)
CGC_LAYER_NORM_CHECKS(bf16, DType::BF16, DType::BF16)
CGC_LAYER_NORM_CHECKS(by_f32_f16, DType::F16, DType::F32)
CGC_LAYER_NORM_CHECKS(by_f32_bf16, DType::BF16, DType::F32)
#undef CGC_LAYER_NORM_CHECKS

} // namespace cgc
