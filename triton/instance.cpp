// An instance of a model: runs the requests that Triton's scheduler gives it.
#include "triton/instance.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <numeric>

namespace cgc_triton {

/// A request, where its tensors lie, and its answer.
struct Request final {
  struct Buffer final {
    void *data = nullptr;
    uint64_t bytes = 0;
    cgc_memory memory = CGC_HOST;
  };
  TRITONBACKEND_Request *request = nullptr;
  TRITONBACKEND_Response *response = nullptr;
  TRITONSERVER_Error *error = nullptr;
  bool onGpu = false; ///< Whether a tensor is in GPU memory.
  size_t bucket = 0;
  int64_t rows = 1;
  std::vector<Sizes> sizes;                ///< Of the inputs.
  std::vector<std::vector<Buffer>> inputs; ///< The pieces of each.
  std::vector<Buffer> outputs;             ///< Null for those that the client does not want.
  uint64_t computeBegin = 0, computeEnd = 0;
};

namespace {

uint64_t now() {
  return uint64_t(std::chrono::steady_clock::now().time_since_epoch() /
                  std::chrono::nanoseconds(1));
}

/// Reports an error that there is nobody to give to.
void log(TRITONSERVER_Error *error) {
  if (!error)
    return;
  TRITONSERVER_ErrorDelete(TRITONSERVER_LogMessage(TRITONSERVER_LOG_ERROR, __FILE__, __LINE__,
                                                   TRITONSERVER_ErrorMessage(error)));
  TRITONSERVER_ErrorDelete(error);
}

cgc_memory memoryOf(TRITONSERVER_MemoryType memory) {
  return memory == TRITONSERVER_MEMORY_GPU ? CGC_GPU : CGC_HOST;
}

void readInput(Request &request, const Tensor &tensor, bool batched) {
  TRITONBACKEND_Input *input = nullptr;
  check(TRITONBACKEND_RequestInput(request.request, tensor.name.c_str(), &input));
  TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
  const int64_t *sizes = nullptr;
  uint32_t rank = 0, buffers = 0;
  uint64_t bytes = 0;
  check(TRITONBACKEND_InputProperties(input, nullptr, &type, &sizes, &rank, &bytes, &buffers));
  const Sizes &own = request.sizes.emplace_back(fromTriton({sizes, sizes + rank}, tensor, batched));
  std::vector<Request::Buffer> &pieces = request.inputs.emplace_back();
  uint64_t found = 0;
  for (uint32_t i = 0; i < buffers; ++i) {
    const void *data = nullptr;
    uint64_t size = 0;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    check(TRITONBACKEND_InputBuffer(input, i, &data, &size, &memory, &device));
    // The session does not write to inputs.
    pieces.push_back({const_cast<void *>(data), size, memoryOf(memory)});
    found += size;
    request.onGpu |= memory == TRITONSERVER_MEMORY_GPU;
  }
  if (type != typeOf(tensor.dtype) || found != bytesOf(own, tensor.dtype))
    throw Error(TRITONSERVER_ERROR_INVALID_ARG,
                "input '" + tensor.name + "' of shape " + textOf(own) + " has " +
                    std::to_string(found) + " bytes of Triton's type " + std::to_string(type) +
                    ": send " + std::to_string(bytesOf(own, tensor.dtype)) + " bytes of " +
                    cgc_dtype_name(tensor.dtype));
}

void allocateOutputs(Request &request, const Entry &entry, bool batched) {
  request.outputs.resize(entry.outputs.size());
  for (uint32_t i = 0, count = get(TRITONBACKEND_RequestOutputCount, request.request); i < count;
       ++i) {
    const char *name = nullptr;
    check(TRITONBACKEND_RequestOutputName(request.request, i, &name));
    const auto tensor = std::ranges::find(entry.outputs, name, &Tensor::name);
    if (tensor == entry.outputs.end())
      throw Error(TRITONSERVER_ERROR_INVALID_ARG, "entry '" + entry.name + "' has no output '" +
                                                      name + "': ask for one that it has");
    const Sizes sizes = toTriton(entry.sizesOf(*tensor, request.bucket, request.rows), batched);
    TRITONBACKEND_Output *output = nullptr;
    check(TRITONBACKEND_ResponseOutput(request.response, &output, name, typeOf(tensor->dtype),
                                       sizes.data(), uint32_t(sizes.size())));
    TRITONSERVER_MemoryType memory =
        request.onGpu ? TRITONSERVER_MEMORY_GPU : TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    Request::Buffer &buffer = request.outputs[tensor - entry.outputs.begin()];
    buffer.bytes = bytesOf(sizes, tensor->dtype);
    check(TRITONBACKEND_OutputBuffer(output, &buffer.data, buffer.bytes, &memory, &device));
    buffer.memory = memoryOf(memory);
    request.onGpu |= memory == TRITONSERVER_MEMORY_GPU;
  }
}

/// Finds the tensors of a request. Throws its error.
void read(Request &request, const Entry &entry, bool batched) {
  check(TRITONBACKEND_ResponseNew(&request.response, request.request));
  for (const Tensor &tensor : entry.inputs)
    readInput(request, tensor, batched);
  request.bucket = entry.bucketFor(request.sizes);
  request.rows = entry.rowsOf(request.sizes);
  allocateOutputs(request, entry, batched);
}

/// The input of all requests as one tensor: where it is if it is in one piece, else in `batch`.
Request::Buffer gather(std::span<Request *const> requests, size_t input,
                       std::vector<std::byte> &batch) {
  const std::vector<Request::Buffer> &first = requests.front()->inputs[input];
  if (requests.size() == 1 && first.size() == 1)
    return first.front();
  batch.clear();
  for (const Request *request : requests)
    for (const Request::Buffer &piece : request->inputs[input]) {
      if (piece.memory == CGC_GPU)
        throw Error(TRITONSERVER_ERROR_UNSUPPORTED,
                    "input " + std::to_string(input) +
                        " is in several pieces of GPU memory: send it in one");
      const auto *const bytes = static_cast<const std::byte *>(piece.data);
      batch.insert(batch.end(), bytes, bytes + piece.bytes);
    }
  return {batch.data(), batch.size()};
}

/// Gives each request its rows of an output.
void scatter(std::span<Request *const> requests, size_t output,
             const std::vector<std::byte> &batch) {
  const int64_t rows = std::accumulate(requests.begin(), requests.end(), int64_t(0),
                                       [](int64_t sum, const Request *r) { return sum + r->rows; });
  const std::byte *from = batch.data();
  for (const Request *request : requests) {
    const Request::Buffer &to = request->outputs[output];
    const size_t bytes = batch.size() / rows * request->rows;
    if (to.data)
      std::memcpy(to.data, from, bytes);
    from += bytes;
  }
}

} // namespace

Instance::Instance(Model &model, TRITONBACKEND_ModelInstance *instance)
    : model_(model), instance_(instance), device_(model.addInstance(instance)),
      inputs_(model.entry().inputs.size()), outputs_(model.entry().outputs.size()) {}

Instance::~Instance() {
  model_.removeInstance(device_);
}

void Instance::execute(std::span<TRITONBACKEND_Request *> given) {
  const uint64_t begin = now();
  const Entry &entry = model_.entry();
  std::vector<Request> requests(given.size());
  std::map<size_t, std::vector<Request *>> together; // By bucket.
  std::vector<Request *> alone;
  for (size_t i = 0; i < given.size(); ++i) {
    Request &request = requests[i];
    request.request = given[i];
    request.computeBegin = request.computeEnd = begin;
    request.error = guarded([&] {
      read(request, entry, model_.isBatched());
      if (model_.isBatched() && !request.onGpu)
        together[request.bucket].push_back(&request);
      else
        alone.push_back(&request);
    });
  }
  for (const auto &[bucket, group] : together)
    run(group, begin);
  for (Request *const &request : alone)
    run({&request, 1}, begin);
  for (const Request &request : requests)
    answer(request, begin);
}

void Instance::run(std::span<Request *const> requests, uint64_t begin) {
  TRITONSERVER_Error *const error = guarded([&] { runTogether(requests, begin); });
  if (!error)
    return;
  // The values of one request, such as an index beyond a table, may be what fails all of them.
  const TRITONSERVER_Error_Code code = TRITONSERVER_ErrorCode(error);
  const bool apart = requests.size() > 1 && code == TRITONSERVER_ERROR_INVALID_ARG;
  for (Request *const &request : requests)
    if (apart)
      run({&request, 1}, begin);
    else
      request->error = TRITONSERVER_ErrorNew(code, TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
}

void Instance::runTogether(std::span<Request *const> requests, uint64_t begin) {
  const Entry &entry = model_.entry();
  const Request &first = *requests.front();
  int64_t rows = 0;
  for (const Request *request : requests)
    rows += request->rows;

  const auto tensorOf = [](const Request::Buffer &buffer, const Tensor &tensor,
                           const Sizes &sizes) -> cgc_tensor {
    return {buffer.data, sizes.data(), int32_t(sizes.size()), tensor.dtype, buffer.memory};
  };
  std::vector<Sizes> inputSizes = first.sizes, outputSizes;
  std::vector<cgc_tensor> inputs, outputs;
  for (size_t i = 0; i < entry.inputs.size(); ++i) {
    if (model_.isBatched())
      inputSizes[i].front() = rows;
    inputs.push_back(tensorOf(gather(requests, i, inputs_[i]), entry.inputs[i], inputSizes[i]));
  }
  for (const Tensor &output : entry.outputs)
    outputSizes.push_back(entry.sizesOf(output, first.bucket, rows));
  const auto isInPlace = [&](size_t output) {
    return requests.size() == 1 && first.outputs[output].data;
  };
  for (size_t i = 0; i < entry.outputs.size(); ++i) {
    const Tensor &output = entry.outputs[i];
    if (!isInPlace(i))
      outputs_[i].resize(bytesOf(outputSizes[i], output.dtype));
    outputs.push_back(
        tensorOf(isInPlace(i) ? first.outputs[i] : Request::Buffer{outputs_[i].data()}, output,
                 outputSizes[i]));
  }

  const uint64_t computeBegin = now();
  callCgc(cgc_session_run, model_.session().get(), entry.name.c_str(), inputs.data(), inputs.size(),
          outputs.data(), outputs.size(), static_cast<void *>(nullptr));
  const uint64_t computeEnd = now();
  for (size_t i = 0; i < entry.outputs.size(); ++i)
    if (!isInPlace(i))
      scatter(requests, i, outputs_[i]);
  for (Request *request : requests) {
    request->computeBegin = computeBegin;
    request->computeEnd = computeEnd;
  }
  log(TRITONBACKEND_ModelInstanceReportBatchStatistics(
      instance_, model_.isBatched() ? uint64_t(rows) : 1, begin, computeBegin, computeEnd, now()));
}

void Instance::answer(const Request &request, uint64_t begin) {
  if (request.response)
    log(TRITONBACKEND_ResponseSend(request.response, kCompleteFinal, request.error));
  log(TRITONBACKEND_ModelInstanceReportStatistics(instance_, request.request, !request.error, begin,
                                                  request.computeBegin, request.computeEnd, now()));
  log(TRITONBACKEND_RequestRelease(request.request, kReleaseAll));
  if (request.response)
    TRITONSERVER_ErrorDelete(request.error);
  else
    log(request.error);
}

} // namespace cgc_triton
