// validate(): each invariant of plan.h is violated once and must be named.
#include "runtime/plan/gemm_call.h"
#include "runtime/plan/plan_file.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace cgc::test {
namespace {

using testing::HasSubstr;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

struct Violation {
  const char *name;
  std::function<void(PlanData &, Bucket &)> breakIt; ///< The plan, and the first bucket of "main".
  const char *message;
  bool cuda = false;
};

AtenCall &aten(Bucket &b) {
  return std::get<AtenCall>(b.records[0].op);
}
KernelLaunch &kernel(Bucket &b) {
  return std::get<KernelLaunch>(b.records[2].op);
}
LibraryCall &library(Bucket &b) {
  return std::get<LibraryCall>(b.records[3].op);
}
HostCall &host(Bucket &b) {
  return std::get<HostCall>(b.records[5].op);
}
Memcpy &copy(Bucket &b) {
  return std::get<Memcpy>(b.records.back().op);
}

/// Gives the first input 12 elements of `dtype` and a bound.
std::function<void(PlanData &, Bucket &)> boundOf(DType dtype, IndexBound bound) {
  return [=](PlanData &plan, Bucket &b) {
    for (Bucket &bucket : plan.entries[0].buckets)
      bucket.inputs[0].dtype = dtype;
    b.inputs[0].sizes = {3, 4};
    b.inputs[0].indexBounds = {bound};
  };
}

TEST(Valid, AHostCallMayWriteTwoOutputs) {
  PlanData plan = samplePlan().plan;
  Bucket &bucket = plan.entries[0].buckets[0];
  const auto add = [&](TensorRef tensor) {
    bucket.tensors.push_back(std::move(tensor));
    return TensorId(bucket.tensors.size() - 1);
  };
  HostCall call{"module", "forward", {}, {}};
  bucket.outputs.clear();
  for (const uint32_t index : {0, 1}) {
    bucket.outputs.push_back(
        {.name = "y" + std::to_string(index), .dtype = DType::F32, .sizes = {4}});
    call.writes.push_back(add(dense(BufferKind::Output, index, 0, DType::F32, {4})));
  }
  bucket.records = {{call}};
  plan.entries[0].buckets = {bucket};
  const Status status = validate(plan);
  EXPECT_TRUE(status.isOk()) << status.message();
}

class Invalid : public testing::TestWithParam<Violation> {};

TEST_P(Invalid, IsNamed) {
  PlanData plan = GetParam().cuda ? cudaSamplePlan().plan : samplePlan().plan;
  ASSERT_TRUE(validate(plan).isOk()) << validate(plan).message();
  GetParam().breakIt(plan, plan.entries[0].buckets[0]);
  const Status status = validate(plan);
  EXPECT_EQ(status.code(), Code::InvalidFile);
  EXPECT_THAT(status.message(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Plans, Invalid,
    testing::Values(
        Violation{"UnknownTarget", [](auto &p, auto &) { p.target = DeviceKind(9); },
                  "unknown target 9"},
        Violation{"ProducerWithDirectionOfText",
                  [](auto &p, auto &) { p.producer = "a\u202e"; }, "producer is not printable"},
        Violation{"EntryNameWithIsolatedText",
                  [](auto &p, auto &) { p.entries[1].name = "a\u2066b"; },
                  "not printable text"},
        Violation{"ProducerWithControlCharacters", [](auto &p, auto &) { p.producer = "\x1b[2J"; },
                  "producer is not printable"},
        Violation{"PrecisionOfIntegers", [](auto &p, auto &) { p.precision = DType::I64; },
                  "precision is no floating dtype"},
        Violation{"Tf32OfACpuPlan", [](auto &p, auto &) { p.tf32 = true; },
                  "may round to TF32, and the target is cpu"},
        Violation{"GpuOfACpuPlan", [](auto &p, auto &) { p.gpu = {"GPU", 1}; }, "a GPU is named"},
        Violation{"GpuWithoutAName", [](auto &p, auto &) { p.gpu = {"", 1}; },
                  "the GPU has no name", true},
        Violation{"GpuWithoutMultiprocessors", [](auto &p, auto &) { p.gpu = {"GPU", 0}; },
                  "no multiprocessors", true},
        Violation{"HostModuleWithoutAName", [](auto &, auto &b) { host(b).module = ""; },
                  "the path of the host's module is empty", true},
        Violation{"HostMethodThatIsNoName", [](auto &, auto &b) { host(b).method = "a b"; },
                  "its method is not an identifier", true},
        Violation{"HostCallThatWritesNothing", [](auto &, auto &b) { host(b).writes.clear(); },
                  "it writes nothing", true},
        Violation{"HostCallOfATensorThatIsNone",
                  [](auto &, auto &b) { host(b).reads = {kNoTensor}; }, "does not exist", true},
        Violation{"HostCallOfAStridedTensor",
                  [](auto &, auto &b) {
                    b.tensors.push_back(b.tensors[1]);
                    b.tensors.back().sizes = {2, 1};
                    b.tensors.back().strides = {2, 1};
                    host(b).reads = {id(uint32_t(b.tensors.size() - 1))};
                  },
                  "the tensors of a host call have to be dense", true},
        Violation{"HostCallThatWritesItsInput", [](auto &, auto &b) { host(b).writes = {id(1)}; },
                  "a result of a host call overlaps what it reads", true},
        Violation{"HostCallWithOneResultTwice",
                  [](auto &, auto &b) { host(b).writes = {id(3), id(3)}; },
                  "two results of a host call overlap", true},
        Violation{"HostCallThatWritesAWeight", [](auto &, auto &b) { host(b).writes = {id(2)}; },
                  "it writes to a weight or an input", true},
        Violation{"NoEntries", [](auto &p, auto &) { p.entries.clear(); }, "0 entries"},
        Violation{"NoBuckets", [](auto &p, auto &) { p.entries[0].buckets.clear(); },
                  "entry 'main': 0 buckets"},
        Violation{"EmptyEntryName", [](auto &p, auto &) { p.entries[0].name = ""; },
                  "a name is empty"},
        Violation{"EntryNameTwice", [](auto &p, auto &) { p.entries[1].name = "main"; },
                  "the name 'main' is used twice"},
        Violation{"EntryNameNotUtf8", [](auto &p, auto &) { p.entries[0].name = "a\xc0\x80"; },
                  "not printable text"},
        Violation{"WeightNameTwice", [](auto &p, auto &) { p.weights[1].name = "w"; },
                  "the name 'w' is used twice"},
        Violation{"WeightWithNegativeSize", [](auto &p, auto &) { p.weights[1].sizes = {-1}; },
                  "weight 'unused': sizes are negative or too large"},
        Violation{"WeightThatOverflows",
                  [](auto &p, auto &) { p.weights[1].sizes = {kHuge, kHuge}; },
                  "weight 'unused': sizes are negative or too large"},
        Violation{"WeightOfUnknownType", [](auto &p, auto &) { p.weights[1].dtype = DType(10); },
                  "unknown element type 10"},
        Violation{"LocationWithNul",
                  [](auto &p, auto &) { p.locations[0].file = std::string(1, '\0'); },
                  "source location is not printable"},
        Violation{"LongLocation",
                  [](auto &p, auto &) { p.locations[0].module.assign(4097, 'm'); },
                  "source location is not printable text, or too long"},
        Violation{"SameShapesTwice",
                  [](auto &p, auto &b) { p.entries[0].buckets[1] = b; },
                  "two buckets take the same input shapes"},
        Violation{"BucketsOfOtherTypes",
                  [](auto &, auto &b) { b.inputs[0].dtype = DType::I32; },
                  "buckets differ in the names or element types"},
        Violation{"NoOutputs", [](auto &p, auto &) { p.entries[1].buckets[0].outputs.clear(); },
                  "entry 'fill', bucket 0: 0 outputs"},
        Violation{"NoRecords", [](auto &, auto &b) { b.records.clear(); },
                  "no record writes all of output 'y'"},
        Violation{"AbsurdArena", [](auto &, auto &b) { b.arenaBytes = uint64_t(1) << 60; },
                  "an arena of"},
        Violation{"InputOfAllAddresses",
                  [](auto &, auto &b) { b.inputs[0].sizes = {kHuge, 1}; },
                  "sizes are negative or too large"},
        Violation{"BuffersThatTakeTooMuchTogether",
                  [](auto &p, auto &) {
                    for (Bucket &b : p.entries[0].buckets)
                      b.inputs[0].sizes[1] = int64_t(1) << 45;
                  },
                  "its buffers take more than 281474976710656 bytes"},
        Violation{"ArenaBesideWeights",
                  [](auto &, auto &b) { b.arenaBytes = uint64_t(1) << 48; },
                  "its buffers take more than 281474976710656 bytes"},
        Violation{"InputNameTwice",
                  [](auto &p, auto &) {
                    for (Bucket &b : p.entries[0].buckets)
                      b.inputs.push_back(b.inputs[0]);
                  },
                  "the name 'x' is used twice"},
        Violation{"BoundOfFloats", boundOf(DType::F32, {.end = 1}), "are no integers"},
        Violation{"BoundOfZero", boundOf(DType::I64, {}), "allows no index"},
        Violation{"BoundBehindTheInput",
                  boundOf(DType::I64, {.end = 1, .offset = 12, .sizes = {1}, .strides = {1}}),
                  "lies outside the input"},
        Violation{"BoundBeforeTheInput",
                  boundOf(DType::I64, {.end = 1, .offset = -1, .sizes = {1}, .strides = {1}}),
                  "lies outside the input"},
        Violation{"BoundThatReachesPastTheInput",
                  boundOf(DType::I64, {.end = 1, .offset = 1, .sizes = {12}, .strides = {1}}),
                  "lies outside the input"},
        Violation{"BoundOfTooManyElements",
                  boundOf(DType::I64,
                          {.end = 1, .sizes = {int64_t(1) << 40}, .strides = {0}}),
                  "lies outside the input"},
        Violation{"BoundWithoutStrides",
                  boundOf(DType::I64, {.end = 1, .sizes = {2}, .strides = {}}),
                  "lies outside the input"},
        Violation{"TooManyBounds",
                  [](auto &, auto &b) { b.inputs[0].indexBounds.resize(65); },
                  "65 bounds of one input"},
        Violation{"BatchDimensionThatDoesNotExist",
                  [](auto &p, auto &) {
                    for (Bucket &b : p.entries[0].buckets)
                      b.inputs[0].batchDim = 2;
                  },
                  "entry 'main': 'x' has no dimension 2, which is to be its batch dimension"},
        Violation{"NegativeBatchDimension",
                  [](auto &p, auto &) {
                    for (Bucket &b : p.entries[0].buckets)
                      b.outputs[0].batchDim = -2;
                  },
                  "'y' has no dimension -2"},
        Violation{"BucketsWithOtherBatchDimensions",
                  [](auto &p, auto &) { p.entries[0].buckets[1].outputs[0].batchDim = 1; },
                  "its buckets differ in the batch dimension of 'y'"},
        Violation{"BatchesOfDifferentSizes",
                  [](auto &p, auto &) {
                    for (Bucket &b : p.entries[0].buckets)
                      b.outputs[0].batchDim = 1;
                  },
                  "'x' and 'y' have batch dimensions of different sizes"},
        Violation{"IndependentRowsWithoutABatch",
                  [](auto &p, auto &) {
                    for (Bucket &b : p.entries[0].buckets)
                      b.inputs[0].batchDim = b.outputs[0].batchDim = kNoBatchDim;
                  },
                  "no input has a batch dimension"},
        Violation{"IndependentRowsOfAnOutputThatGrowsElsewhere",
                  [](auto &p, auto &) {
                    for (Bucket &b : p.entries[0].buckets)
                      b.outputs[0].batchDim = kNoBatchDim;
                  },
                  "the batch changes another dimension of an output"},
        Violation{"IndependentRowsWithAReason",
                  [](auto &p, auto &) { p.entries[0].rows.reason = "it mixes them"; },
                  "its rows are independent, and there is a reason why they are not"},
        Violation{"ReasonWithControlCharacters",
                  [](auto &p, auto &) { p.entries[1].rows.reason = "\x1b[2J"; },
                  "is not printable text"},
        Violation{"OpThatIsTooLong",
                  [](auto &p, auto &) { p.entries[1].rows.op = std::string(5000, 'a'); },
                  "not printable text, or too long"},
        Violation{"ReasonFromNowhere",
                  [](auto &p, auto &) { p.entries[1].rows.location = LocationId(2); },
                  "entry 'fill': the source location of the op"},
        Violation{"NegativeTime", [](auto &, auto &b) { b.expectedMicros = -1; },
                  "the expected time of a bucket is negative or not finite"},
        Violation{"InfiniteTime",
                  [](auto &, auto &b) {
                    b.expectedMicros = std::numeric_limits<double>::infinity();
                  },
                  "the expected time of a bucket is negative or not finite"},
        Violation{"MeasuredNoTime",
                  [](auto &, auto &b) {
                    b.expectedMicros = 0;
                    b.isMeasured = true;
                  },
                  "the measured time of a bucket is 0"},
        Violation{"TensorOfUnknownType", [](auto &, auto &b) { b.tensors[1].dtype = DType(200); },
                  "tensor 1: unknown element type 200"},
        Violation{"RankTooHigh",
                  [](auto &, auto &b) {
                    b.tensors[1].sizes.assign(17, 1);
                    b.tensors[1].strides.assign(17, 1);
                  },
                  "rank 17 is above 16"},
        Violation{"StridesOfAnotherRank", [](auto &, auto &b) { b.tensors[1].strides = {1}; },
                  "not of the same number"},
        Violation{"NegativeSize", [](auto &, auto &b) { b.tensors[1].sizes = {1, -4}; },
                  "sizes or strides are negative"},
        Violation{"NegativeStride", [](auto &, auto &b) { b.tensors[1].strides = {4, -1}; },
                  "sizes or strides are negative"},
        Violation{"ExtentThatWraps",
                  [](auto &, auto &b) {
                    b.tensors[1].sizes = {kHuge, 3};
                    b.tensors[1].strides = {kHuge, 1};
                  },
                  "too large"},
        Violation{"ExtentInBytesThatWraps",
                  [](auto &, auto &b) { b.tensors[1].strides = {1, kHuge / 4}; },
                  "tensor 1: "},
        Violation{"PastTheArena", [](auto &, auto &b) { b.tensors[3].slot.offset = 500; },
                  "tensor 3: it reaches past the 512 bytes"},
        Violation{"OffsetThatWraps",
                  [](auto &, auto &b) { b.tensors[3].slot.offset = ~uint64_t(0) - 3; },
                  "it reaches past"},
        Violation{"PastTheWeight", [](auto &, auto &b) { b.tensors[2].sizes = {5}; },
                  "it reaches past the 16 bytes"},
        Violation{"StridesPastTheInput", [](auto &, auto &b) { b.tensors[0].strides = {4, 2}; },
                  "it reaches past the 16 bytes"},
        Violation{"MisalignedOffset", [](auto &, auto &b) { b.tensors[1].slot.offset = 2; },
                  "not a multiple of its element size"},
        Violation{"ElementsThatWrap",
                  [](auto &, auto &b) {
                    b.tensors[2].sizes = {int64_t(1) << 32, int64_t(1) << 32};
                    b.tensors[2].strides = {0, 0};
                  },
                  "tensor 2: it has too many elements"},
        Violation{"MoreElementsThanAnyBuffer",
                  [](auto &, auto &b) {
                    b.tensors[2].sizes = {int64_t(1) << 47};
                    b.tensors[2].strides = {0};
                  },
                  "tensor 2: it has too many elements"},
        Violation{"ReadOfManyElementsInFewBytes",
                  [](auto &, auto &b) {
                    b.tensors[2].sizes = {(int64_t(1) << 20) + 1};
                    b.tensors[2].strides = {0};
                  },
                  "record 1 (aten::add.Tensor): it reads all elements of tensor 2, more than "
                  "1048576: its largest tensor spans 16 bytes"},
        Violation{"WriteOfOverlappingElements",
                  [](auto &, auto &b) {
                    b.tensors[1].sizes = {2, 4};
                    b.tensors[1].strides = {1, 1};
                  },
                  "record 0 (aten::neg.out): elements of tensor 1, which it writes, overlap"},
        Violation{"WriteWhoseDimensionsMeetInOneElement",
                  [](auto &, auto &b) {
                    b.tensors[1].sizes = {2, 2}; // Elements 0, 3, 3 and 6.
                    b.tensors[1].strides = {3, 3};
                  },
                  "record 0 (aten::neg.out): elements of tensor 1, which it writes, overlap"},
        Violation{"NoSuchWeight", [](auto &, auto &b) { b.tensors[2].slot.index = 2; },
                  "there is no weight 2"},
        Violation{"NoSuchInput", [](auto &, auto &b) { b.tensors[0].slot.index = 1; },
                  "there is no input 1"},
        Violation{"NoSuchOutput", [](auto &, auto &b) { b.tensors[4].slot.index = 1; },
                  "there is no output 1"},
        Violation{"SecondArena", [](auto &, auto &b) { b.tensors[1].slot.index = 1; },
                  "there is only one arena"},
        Violation{"UnknownBuffer", [](auto &, auto &b) { b.tensors[1].slot.buffer = BufferKind(9); },
                  "unknown kind of buffer 9"},
        Violation{"WeightReadAsAnotherType", [](auto &, auto &b) { b.tensors[2].dtype = DType::I32; },
                  "is i32 in a weight of f32"},
        Violation{"NoSuchLocation", [](auto &, auto &b) { b.records[0].location = LocationId(2); },
                  "record 0 (aten::neg.out): its source location does not exist"},
        Violation{"NoSuchTensor", [](auto &, auto &b) { aten(b).args[0] = id(5); },
                  "tensor 5 does not exist"},
        Violation{"NoSuchDestination", [](auto &, auto &b) { copy(b).destination = kNoTensor; },
                  "tensor 4294967295 does not exist"},
        Violation{"AbsentTensorOutsideAList", [](auto &, auto &b) { aten(b).args[0] = kNoTensor; },
                  "not written as None"},
        Violation{"OpOfAnotherNamespace", [](auto &, auto &b) { aten(b).op = "evil::op"; },
                  "not the name of an ATen op"},
        Violation{"ArgumentOfUnknownType", [](auto &, auto &b) { aten(b).args.push_back(DType(99)); },
                  "unknown element type 99"},
        Violation{"WritesNothing", [](auto &, auto &b) { aten(b).outputs.clear(); },
                  "it writes nothing"},
        Violation{"ReadBeforeWritten", [](auto &, auto &b) { std::swap(b.records[0], b.records[1]); },
                  "record 0 (aten::add.Tensor): it reads tensor 1, which no earlier record has "
                  "written"},
        Violation{"ReadMoreThanWritten",
                  [](auto &, auto &b) {
                    b.tensors[1].sizes = {1, 3};
                    b.tensors.push_back(dense(BufferKind::Arena, 0, 0, DType::F32, {1, 4}));
                    std::get<AtenCall>(b.records[1].op).args[0] = id(5);
                  },
                  "it reads tensor 5"},
        Violation{"ReadOfTheGapsOfAWrite",
                  [](auto &, auto &b) {
                    b.tensors.push_back(b.tensors[1]);
                    b.tensors[1].sizes = {1, 2};
                    b.tensors[1].strides = {1, 3}; // Spans all four elements.
                    std::get<AtenCall>(b.records[1].op).args[0] = id(5);
                  },
                  "it reads tensor 5, which no earlier record has written"},
        Violation{"OutputWrittenWithGaps",
                  [](auto &, auto &b) {
                    b.records.back() = b.records[1];
                    std::get<AtenCall>(b.records.back().op).outputs = {id(4)};
                    b.tensors[4].sizes = {1, 2};
                    b.tensors[4].strides = {1, 3};
                  },
                  "no record writes all of output 'y'"},
        Violation{"OutputNotWritten", [](auto &, auto &b) { b.records.pop_back(); },
                  "no record writes all of output 'y'"},
        Violation{"OutputHalfWritten",
                  [](auto &, auto &b) { b.tensors[3].sizes = b.tensors[4].sizes = {1, 3}; },
                  "no record writes all of output 'y'"},
        Violation{"WritesAnInput", [](auto &, auto &b) { aten(b).outputs[0] = id(0); },
                  "it writes to a weight or an input"},
        Violation{"WritesAWeight", [](auto &, auto &b) { aten(b).outputs[0] = id(2); },
                  "it writes to a weight or an input"},
        Violation{"CopyOfOtherSizes", [](auto &, auto &b) { b.tensors[3].sizes = {4, 1}; },
                  "differ in element type or sizes"},
        Violation{"CopyOfStrided",
                  [](auto &, auto &b) {
                    b.tensors[3].sizes = b.tensors[4].sizes = {2, 2};
                    b.tensors[3].strides = {1, 2};
                    b.tensors[4].strides = {2, 1};
                  },
                  "have to be dense"},
        Violation{"CopyOntoItself",
                  [](auto &, auto &b) {
                    b.tensors.push_back(b.tensors[3]);
                    b.tensors[5].slot.offset += 4;
                    copy(b).destination = id(5);
                  },
                  "overlap"},
        Violation{"SetStrided",
                  [](auto &p, auto &) {
                    p.entries[1].buckets[0].tensors[0].sizes = {2};
                    p.entries[1].buckets[0].tensors[0].strides = {2};
                  },
                  "destination has to be dense"},
        Violation{"KernelOnCpu", [](auto &p, auto &) { p.target = DeviceKind::Cpu; },
                  "kernels need target cuda", true},
        Violation{"LibraryOnCpu",
                  [](auto &p, auto &) {
                    p.target = DeviceKind::Cpu;
                    for (Bucket &b : p.entries[0].buckets)
                      b.records.erase(b.records.begin() + 2);
                  },
                  "library calls need target cuda", true},
        Violation{"KernelWithoutName", [](auto &, auto &b) { kernel(b).kernel = ""; },
                  "the kernel's name is empty", true},
        Violation{"GridOfZero", [](auto &, auto &b) { kernel(b).grid[0] = 0; }, "grid or block",
                  true},
        Violation{"GridTooHigh", [](auto &, auto &b) { kernel(b).grid[1] = 65536; },
                  "grid or block", true},
        Violation{"TooManyThreads", [](auto &, auto &b) { kernel(b).block[0] = 1024; },
                  "more than 1024 threads", true},
        Violation{"TooMuchSharedMemory", [](auto &, auto &b) { kernel(b).sharedBytes = 1 << 20; },
                  "more shared memory", true},
        Violation{"KernelWritesNothing", [](auto &, auto &b) { kernel(b).writes.clear(); },
                  "it writes nothing", true},
        Violation{"KernelWritesNoTensor", [](auto &, auto &b) { kernel(b).writes[0] = kNoTensor; },
                  "it writes nothing", true},
        Violation{"LibraryWithAPath",
                  [](auto &, auto &b) { library(b).library = "/tmp/evil.so"; },
                  "not an identifier", true}),
    [](const auto &info) { return info.param.name; });

TEST(Validate, NamesAreUtf8) {
  const auto isName = [](std::string name) { return isPlanName(name); };
  // The first and last character of each length, and those next to the surrogates.
  for (const char *good : {" ", "~", "\xc2\xa0", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(isName(good)) << good;
  for (const char *bad : {"",
                          "\x1f",
                          "\x7f",
                          "\xc2\x80",
                          "\xc2\x9f",
                          "\x80",
                          "\xbf",
                          "\xc1\xbf",
                          "\xc2",
                          "\xc2\x7f",
                          "\xc2\xc0",
                          "\xe0\x9f\xbf",
                          "\xed\xa0\x80",
                          "\xed\xbf\xbf",
                          "\xe1\x80",
                          "\xe1\x80\x7f",
                          "\xf0\x8f\xbf\xbf",
                          "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80",
                          "\xf1\x80\x80",
                          "\xff"})
    EXPECT_FALSE(isName(bad)) << bad;
}

TEST(Validate, TensorsAndRecordsAreCapped) {
  PlanData plan = samplePlan().plan;
  Bucket &b = plan.entries[1].buckets[0];
  b.records.resize(1 << 20, b.records[0]);
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
  b.records.push_back(b.records[0]);
  EXPECT_THAT(validate(plan).message(), HasSubstr("1048577 records; allowed are 0 to 1048576"));
  b.records.resize(1);
  b.tensors.resize(1 << 20, b.tensors[0]);
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
  b.tensors.push_back(b.tensors[0]);
  EXPECT_THAT(validate(plan).message(), HasSubstr("1048577 tensors; allowed are 0 to 1048576"));
}

TEST(Validate, EmptyTensorsAndScalarsAreFine) {
  PlanData plan = samplePlan().plan;
  Bucket &b = plan.entries[1].buckets[0];
  b.outputs.push_back({"none", DType::F32, {0, 5}});
  b.outputs.push_back({"scalar", DType::F64, {}});
  b.tensors.push_back(dense(BufferKind::Output, 2, 0, DType::F64, {}));
  b.records.push_back({Memset{id(1), 0}});
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
}

TEST(Validate, WhereAllOutputsAreEmptyThereMayBeNoRecord) {
  PlanData plan = samplePlan().plan;
  Bucket &b = plan.entries[1].buckets[0];
  b.outputs = {{"none", DType::F32, {0, 5}}};
  b.tensors.clear();
  b.records.clear();
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
}

/// Directly behind and before what a copy or a host call reads or writes.
TEST(Validate, TensorsSideBySideDoNotOverlap) {
  PlanData plan = cudaSamplePlan().plan;
  Bucket &b = plan.entries[0].buckets[0];
  ASSERT_EQ(b.tensors[3].slot.offset, 256u);
  for (const uint64_t offset : {240, 272, 16})
    b.tensors.push_back(dense(BufferKind::Arena, 0, offset, DType::F32, {1, 4}));
  host(b).writes = {id(3), id(5), id(6), id(7)};
  b.records.insert(b.records.end() - 1, {{Memcpy{id(3), id(5)}}, {Memcpy{id(3), id(6)}}});
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
}

TEST(Validate, AWorkspaceIsNotWritten) {
  PlanData plan = cudaSamplePlan().plan;
  Bucket &b = plan.entries[0].buckets[0];
  b.tensors.push_back(dense(BufferKind::Weight, 0, 0, DType::F32, {4, 1}));
  b.tensors.push_back(dense(BufferKind::Arena, 0, 256, DType::F32, {1, 4}));
  b.tensors.push_back(dense(BufferKind::Arena, 0, 0, DType::U8, {16}));
  b.tensors.push_back(dense(BufferKind::Input, 0, 0, DType::F32, {1, 1}));
  b.records = {{libraryCall({.x = id(8), .weight = id(5), .d = id(6), .workspace = id(7)})},
               {Memcpy{id(6), id(4)}}};
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
  b.records.insert(b.records.begin() + 1, LaunchRecord{Memcpy{id(1), id(3)}});
  EXPECT_THAT(validate(plan).message(), HasSubstr("which no earlier record has written"));
}

TEST(Validate, WeightsTheLargestArenaAndInputsAndOutputsCount) {
  PlanData plan = samplePlan().plan;
  // 16 and 3 bytes of weights, and 100 for all inputs and outputs. The first arena has 512.
  uint64_t &arena = plan.entries[0].buckets[1].arenaBytes;
  arena = (uint64_t(1) << 48) - 100 - 16 - 3;
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
  ++arena;
  EXPECT_THAT(validate(plan).message(), HasSubstr("its buffers take more than 281474976710656"));
}

TEST(Validate, AWriteMayHaveAnyStrideWhereThereIsOneElement) {
  PlanData plan = samplePlan().plan;
  Bucket &b = plan.entries[0].buckets[0];
  b.tensors[1].sizes = {1, 4};
  b.tensors[1].strides = {0, 1};
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
}

TEST(Validate, AReadOfTooManyPartsIsRefused) {
  PlanData plan = samplePlan().plan;
  Bucket &b = plan.entries[0].buckets[0];
  b.arenaBytes = uint64_t(1) << 24;
  b.tensors[1].sizes = {1 << 21}; // Every second of 2^22 elements.
  b.tensors[1].strides = {2};
  b.tensors.push_back(b.tensors[1]);
  --b.tensors[5].sizes[0];
  b.tensors[3].slot.offset = 4;
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
  std::get<AtenCall>(b.records[1].op).args[0] = id(5);
  EXPECT_THAT(validate(plan).message(),
              HasSubstr("as far as can be seen: it was written in too many parts"));
}

TEST(Validate, BroadcastOperandsAreFine) {
  PlanData plan = samplePlan().plan;
  Bucket &b = plan.entries[0].buckets[0];
  b.tensors[2].sizes = {1 << 20};
  b.tensors[2].strides = {0};
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
  // A mask that is broadcast over batches and heads spans less than queries and keys do.
  b.inputs.push_back({.name = "q", .dtype = DType::F16, .sizes = {64, 16, 1024, 8}});
  plan.entries[0].buckets.resize(1);
  b.tensors.push_back(dense(BufferKind::Input, 1, 0, DType::F16, {64, 16, 1024, 8}));
  b.tensors[2].sizes = {64, 16, 1024, 1024};
  b.tensors[2].strides = {0, 0, 0, 0};
  EXPECT_FALSE(validate(plan).isOk());
  std::get<AtenCall>(b.records[1].op).args.push_back(id(5));
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
}

TEST(Validate, InterleavedWritesCoverARead) {
  PlanData plan = samplePlan().plan;
  Bucket &b = plan.entries[0].buckets[0];
  // Two halves of the row are written one after the other, as by the operands of a cat.
  b.tensors[1].sizes = {1, 2};
  b.tensors.push_back(dense(BufferKind::Arena, 0, 8, DType::F32, {1, 2}));
  b.tensors.push_back(dense(BufferKind::Arena, 0, 0, DType::F32, {1, 4}));
  aten(b).outputs = {id(1), id(5)};
  std::get<AtenCall>(b.records[1].op).args[0] = id(6);
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
}

/// The message of validate() for a plan that calls an op library, changed by `breakIt`.
template <class Break> std::string refusalOfOpCall(const Break &breakIt) {
  PlanData plan = opLibraryPlan(DeviceKind::Cpu, {"libops.so", 1}, "test.op").plan;
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
  Bucket &bucket = plan.entries[0].buckets[0];
  breakIt(plan, bucket, std::get<LibraryCall>(bucket.records[0].op));
  return validate(plan).message();
}

TEST(ValidateOpLibraries, EachRuleIsNamed) {
  EXPECT_THAT(refusalOfOpCall([](auto &p, auto &, auto &) { p.opLibraries[0].name = ""; }),
              HasSubstr("a name is empty"));
  EXPECT_THAT(
      refusalOfOpCall([](auto &p, auto &, auto &) { p.opLibraries.push_back(p.opLibraries[0]); }),
      HasSubstr("the name 'libops.so' is used twice"));
  EXPECT_THAT(refusalOfOpCall([](auto &p, auto &, auto &) { p.opLibraries[0].name = "cublaslt"; }),
              HasSubstr("has the name of a vendor's library"));
  // A library that the plan does not list is a vendor's, which only target cuda may call.
  EXPECT_THAT(refusalOfOpCall([](auto &p, auto &, auto &) { p.opLibraries.clear(); }),
              HasSubstr("library calls need target cuda"));
  EXPECT_THAT(refusalOfOpCall([](auto &, auto &, auto &call) { call.function = "a\n"; }),
              HasSubstr("the op's name is empty, too long or not printable"));
  EXPECT_THAT(refusalOfOpCall([](auto &, auto &, auto &call) { call.algorithm.resize(1); }),
              HasSubstr("writes one tensor and has no algorithm"));
  EXPECT_THAT(refusalOfOpCall([](auto &, auto &, auto &call) { call.writes.clear(); }),
              HasSubstr("writes one tensor"));
  EXPECT_THAT(refusalOfOpCall([](auto &, auto &, auto &call) { call.reads = {kNoTensor}; }),
              HasSubstr("none is absent"));
  EXPECT_THAT(refusalOfOpCall([](auto &, auto &bucket, auto &) {
                bucket.tensors[0].sizes = {4, 2};
                bucket.tensors[0].strides = {1, 4};
              }),
              HasSubstr("reads dense tensors"));
}

} // namespace
} // namespace cgc::test
