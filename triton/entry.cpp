// An entry of a plan, as a model of Triton.
#include "triton/entry.h"
#include "triton/error.h"

#include <algorithm>
#include <set>

namespace cgc_triton {

namespace {

std::vector<Tensor> tensorsOf(const cgc_plan *plan, size_t entry, cgc_io io) {
  std::vector<Tensor> tensors(cgc_plan_tensor_count(plan, entry, io));
  for (size_t i = 0; i < tensors.size(); ++i) {
    cgc_tensor_info info = CGC_INIT(cgc_tensor_info);
    for (size_t bucket = 0; bucket < cgc_plan_bucket_count(plan, entry); ++bucket) {
      callCgc(cgc_plan_tensor, plan, entry, bucket, io, i, &info);
      tensors[i].ofBucket.emplace_back(info.sizes, info.sizes + info.rank);
      if (tensors[i].ofBucket[bucket].size() != tensors[i].ofBucket[0].size())
        throw Error(TRITONSERVER_ERROR_UNSUPPORTED,
                    "'" + std::string(info.name) +
                        "' has buckets of different ranks, which no configuration of Triton can "
                        "say: compile a plan for each rank");
    }
    tensors[i].name = info.name;
    tensors[i].dtype = info.dtype;
    tensors[i].batchDim = info.batch_dim;
  }
  return tensors;
}

/// `sizes` with `batch` in the tensor's batch dimension, if it has one.
Sizes withBatch(Sizes sizes, const Tensor &tensor, int64_t batch) {
  if (tensor.batchDim >= 0 && size_t(tensor.batchDim) < sizes.size())
    sizes[tensor.batchDim] = batch;
  return sizes;
}

} // namespace

bool Entry::canBatch() const {
  const auto hasBatch = [](const Tensor &tensor) { return tensor.batchDim == 0; };
  return takesAnyBatch && std::ranges::all_of(inputs, hasBatch) &&
         std::ranges::all_of(outputs, hasBatch);
}

std::vector<int64_t> Entry::batches() const {
  std::set<int64_t> batches;
  for (const Sizes &sizes : inputs.front().ofBucket)
    batches.insert(sizes.front());
  return {batches.begin(), batches.end()};
}

Sizes Entry::dims(const Tensor &tensor, bool batched) const {
  Sizes dims = tensor.ofBucket.front();
  for (const Sizes &sizes : tensor.ofBucket)
    for (size_t d = 0; d < dims.size(); ++d)
      if (sizes[d] != dims[d])
        dims[d] = -1;
  if (takesAnyBatch)
    dims = withBatch(std::move(dims), tensor, -1);
  dims = toTriton(std::move(dims), batched);
  if (batched)
    dims.erase(dims.begin());
  return dims;
}

size_t Entry::bucketFor(const std::vector<Sizes> &given) const {
  const auto equals = [&](size_t input, size_t bucket) {
    const Sizes &sizes = inputs[input].ofBucket[bucket];
    return given[input] == sizes ||
           (takesAnyBatch && given[input].size() == sizes.size() &&
            withBatch(given[input], inputs[input], -1) == withBatch(sizes, inputs[input], -1));
  };
  const size_t buckets = inputs.front().ofBucket.size();
  size_t best = 0; // The most inputs that have the sizes of one bucket, from the first on.
  for (size_t bucket = 0; bucket < buckets; ++bucket) {
    size_t fitting = 0;
    while (fitting < inputs.size() && equals(fitting, bucket))
      ++fitting;
    if (fitting == inputs.size())
      return bucket;
    best = std::max(best, fitting);
  }
  const Tensor &wrong = inputs[best];
  std::set<std::string> taken;
  for (const Sizes &sizes : wrong.ofBucket)
    taken.insert(textOf(takesAnyBatch ? withBatch(sizes, wrong, -1) : sizes));
  std::string list;
  for (const std::string &sizes : taken)
    list += (list.empty() ? "" : " or ") + sizes;
  throw Error(TRITONSERVER_ERROR_INVALID_ARG,
              "input '" + wrong.name + "' has shape " + textOf(given[best]) + ", but entry '" +
                  name + "' takes " + list + (best ? " with the inputs before it" : "") +
                  ": send one of these shapes, or add a bucket with cgc compile --add-to");
}

int64_t Entry::rowsOf(const std::vector<Sizes> &given) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].batchDim >= 0)
      return given[i][inputs[i].batchDim];
  return 1;
}

Sizes Entry::sizesOf(const Tensor &output, size_t bucket, int64_t rows) const {
  const Sizes &sizes = output.ofBucket[bucket];
  return takesAnyBatch ? withBatch(sizes, output, rows) : sizes;
}

Sizes toTriton(Sizes sizes, bool batched) {
  if (sizes.size() == size_t(batched))
    sizes.push_back(1);
  return sizes;
}

Sizes fromTriton(Sizes sizes, const Tensor &tensor, bool batched) {
  if (tensor.ofBucket.front().size() == size_t(batched) && sizes.size() == size_t(batched) + 1 &&
      sizes.back() == 1)
    sizes.pop_back();
  return sizes;
}

Entry findEntry(const cgc_plan *plan, const std::string &name) {
  const size_t count = cgc_plan_entry_count(plan);
  std::string list;
  for (size_t i = 0; i < count; ++i) {
    const std::string found = cgc_plan_entry_name(plan, i);
    if (found == name || (name.empty() && count == 1)) {
      Entry entry = {found, bool(cgc_plan_takes_any_batch(plan, i)), tensorsOf(plan, i, CGC_INPUT),
                     tensorsOf(plan, i, CGC_OUTPUT)};
      if (entry.inputs.empty() || entry.outputs.empty())
        throw Error(TRITONSERVER_ERROR_UNSUPPORTED,
                    "entry '" + found +
                        "' has no inputs or no outputs, which a model of Triton "
                        "needs: set the parameter 'entry' to another one");
      return entry;
    }
    list += (list.empty() ? "" : ", ") + found;
  }
  throw Error(
      TRITONSERVER_ERROR_INVALID_ARG,
      (name.empty() ? "the plan has several entries" : "the plan has no entry '" + name + "'") +
          ": set the parameter 'entry' of config.pbtxt to one of " + list);
}

std::string textOf(const Sizes &sizes) {
  std::string text;
  for (const int64_t size : sizes)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

uint64_t bytesOf(const Sizes &sizes, cgc_dtype dtype) {
  uint64_t bytes = cgc_dtype_size(dtype);
  for (const int64_t size : sizes)
    bytes *= uint64_t(size);
  return bytes;
}

} // namespace cgc_triton
