// Checks of elementwise, copy, compare and where refuse launches that would access memory
// outside their tensors. Needs no GPU.
#include "runtime/kernels/pointwise/compare.h"
#include "runtime/kernels/pointwise/elementwise.h"
#include "tests/unit/runtime/kernels/check_launch.h"

namespace cgc::test {
namespace {

/// A launch with a result [4, 6, 16].
Launch elementwise(const std::string &kernel) {
  return {.kernel = kernel,
          .grid = {1, 1, 1},
          .block = {kElementwiseThreads, 1, 1},
          .sharedBytes = 0,
          .reads = {{kAddress, {4, 6, 16}}},
          .writes = {{kAddress, {4, 6, 16}}}};
}
/// Expects the refusals of launch shapes and first operands.
std::vector<Refusal> ofOperands() {
  const std::string shape = "an operand does not broadcast", launch = "the grid has to be",
                    absent = "is absent", most = "between 1 and 2^31 - 1 elements";
  return {{[](Launch &l) { l.reads[0].sizes = {4, 5, 16}; }, shape},
          {[](Launch &l) { l.reads[0].sizes = {4, 6, 2}; }, shape},
          {[](Launch &l) { l.reads[0].sizes = {1, 4, 6, 16}; }, "more dimensions than the result"},
          {[](Launch &l) { l.reads[0].address = 0; }, absent},
          {[](Launch &l) { l.writes[0].address = 0; }, absent},
          {[](Launch &l) { l.writes[0].sizes = l.reads[0].sizes = {4, 0, 16}; }, most},
          {[](Launch &l) { l.writes[0].sizes = l.reads[0].sizes = {1 << 15, 1 << 12, 16}; }, most},
          {[](Launch &l) { l.grid[0] = (1 << 16) + 1; }, launch},
          {[](Launch &l) { l.grid[2] = 2; }, launch},
          {[](Launch &l) { l.block[0] = 128; }, launch},
          {[](Launch &l) { l.sharedBytes = 16; }, launch}};
}

TEST(CheckElementwise, Refuses) {
  Launch good = elementwise("elementwise_f16");
  good.reads.push_back({kAddress, {16}});
  good.ints = {int64_t(ElementwiseOp::Add)};
  good.floats = {0};
  std::vector<Refusal> refusals = ofOperands();
  const std::string number = "there is no op of this number", dtypes = "of one dtype",
                    shape = "an operand does not broadcast";
  for (const int64_t bad : {int64_t(-1), int64_t(kNumElementwiseOps), INT64_MAX})
    refusals.push_back({[bad](Launch &l) { l.ints[0] = bad; }, number});
  refusals.push_back(
      {[](Launch &l) { l.ints[0] = int64_t(ElementwiseOp::Silu); }, "the op takes one operand"});
  refusals.push_back({[](Launch &l) { l.reads[0].dtype = DType::F32; }, dtypes});
  refusals.push_back({[](Launch &l) { l.reads[1].dtype = DType::BF16; }, dtypes});
  refusals.push_back({[](Launch &l) { l.writes[0].dtype = DType::F32; }, dtypes});
  refusals.push_back({[](Launch &l) { l.reads[1].sizes = {15}; }, shape});
  refusals.push_back({[](Launch &l) { l.reads[1].sizes = {6, 1, 16}; }, shape});
  expectRefusals(good, refusals);
}

TEST(CheckElementwise, OfOneOperandTakesNoSecond) {
  Launch good = elementwise("elementwise_f16");
  good.reads.push_back({});
  good.floats = {0};
  for (int op = 0; op < kNumElementwiseOps; ++op) {
    good.ints = {op};
    if (!isBinary(ElementwiseOp(op)))
      expectRefusals(good, {{[](Launch &l) { l.reads[1] = l.reads[0]; }, "takes one operand"}});
  }
}

TEST(CheckElementwise, OfIntegersTakesArithmetic) {
  Launch good = elementwise("elementwise_i64");
  good.reads[0].dtype = good.writes[0].dtype = DType::I64;
  good.reads.push_back({});
  good.floats = {3};
  for (int op = 0; op < kNumElementwiseOps; ++op) {
    good.ints = {op};
    if (takesIntegers(ElementwiseOp(op)))
      expectRefusals(good, {{[](Launch &l) { l.floats = {0.5}; }, "or the number is none"},
                            {[](Launch &l) { l.floats = {NAN}; }, "or the number is none"},
                            {[](Launch &l) { l.floats = {0x1p63}; }, "or the number is none"},
                            {[](Launch &l) { l.reads[0].dtype = DType::I32; }, "of one dtype"}});
    else
      expectRefused(good, [](Launch &) {}, "the op has no function of integers");
  }
}

TEST(CheckCompare, Refuses) {
  Launch good = elementwise("compare_f16");
  good.reads.push_back({kAddress, {16}});
  good.writes[0].dtype = DType::Bool;
  good.ints = {int64_t(CompareOp::Ge)};
  good.floats = {0};
  std::vector<Refusal> refusals = ofOperands();
  const std::string dtypes = "of one dtype, the result of bool";
  for (const int64_t bad : {int64_t(-1), int64_t(kNumCompareOps), INT64_MAX})
    refusals.push_back({[bad](Launch &l) { l.ints[0] = bad; }, "there is no op of this number"});
  refusals.push_back({[](Launch &l) { l.reads[0].dtype = DType::F32; }, dtypes});
  refusals.push_back({[](Launch &l) { l.reads[1].dtype = DType::I64; }, dtypes});
  refusals.push_back({[](Launch &l) { l.writes[0].dtype = DType::F16; }, dtypes});
  refusals.push_back({[](Launch &l) { l.reads[1].sizes = {15}; }, "does not broadcast"});
  expectRefusals(good, refusals);
}

TEST(CheckCompare, RefusesNumbersThatAreNoneOfTheDType) {
  const std::pair<DType, std::vector<double>> kNumbers[] = {
      {DType::I64, {0.5, 0x1p63, -0x1.8p63, INFINITY, NAN}},
      {DType::I32, {-0.5, 0x1p31, -0x1p31 - 1, -INFINITY, NAN}},
      {DType::Bool, {0.5, 2, -1, NAN}}};
  for (const auto &[dtype, numbers] : kNumbers) {
    Launch good = elementwise("compare_" + std::string(dtypeName(dtype)));
    good.reads[0].dtype = dtype;
    good.reads.push_back({});
    good.writes[0].dtype = DType::Bool;
    good.ints = {int64_t(CompareOp::Eq)};
    good.floats = {1};
    for (const double number : numbers)
      expectRefusals(good, {{[number](Launch &l) { l.floats[0] = number; }, "the number is none"}});
  }
}

TEST(CheckWhere, Refuses) {
  Launch good = elementwise("where");
  good.reads = {{kAddress, {6, 1}, {}, DType::Bool}, {kAddress, {4, 6, 16}}, {kAddress, {16}}};
  good.floats = {0.5, 0.5};
  const std::string dtypes = "of one dtype", shape = "an operand does not broadcast";
  std::vector<Refusal> refusals = {
      {[](Launch &l) { l.reads[0].dtype = DType::U8; }, "the condition has to be of bool"},
      {[](Launch &l) { l.reads[1].dtype = DType::BF16; }, dtypes},
      {[](Launch &l) { l.reads[2].dtype = DType::F32; }, dtypes},
      {[](Launch &l) { l.writes[0].dtype = DType::F32; }, dtypes},
      {[](Launch &l) { l.writes[0].address = 0; }, "is absent"},
      {[](Launch &l) { l.reads[0].sizes = {5, 1}; }, shape},
      {[](Launch &l) { l.reads[1].sizes = {4, 6, 15}; }, shape},
      {[](Launch &l) { l.reads[2].sizes = {4, 1, 1, 16}; }, "more dimensions than the result"},
      {[](Launch &l) { l.grid[0] = (1 << 16) + 1; }, "the grid has to be"},
      {[](Launch &l) { l.block[0] = 128; }, "the grid has to be"}};
  expectRefusals(good, refusals);
  // A number is checked only if it is an operand.
  for (Tensor *tensor : {&good.reads[1], &good.reads[2], &good.writes[0]})
    tensor->dtype = DType::I64;
  for (const int k : {0, 1})
    expectRefusals(good, {{[k](Launch &l) { l.reads[1 + k] = {}; }, "a number is none"}});
}

TEST(CheckCopy, Refuses) {
  const Launch good = elementwise("copy");
  std::vector<Refusal> refusals = ofOperands();
  refusals.push_back({[](Launch &l) { l.reads[0].dtype = DType::F64; }, "there is no conversion"});
  expectRefusals(good, refusals);
}

} // namespace
} // namespace cgc::test
