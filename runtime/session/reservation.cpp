// Reservation: the buffers of one bucket of a context, and its runs.
#include "runtime/session/reservation.h"

#include "runtime/base/no_throw.h"
#include "runtime/exec/bucket_choice.h"
#include "runtime/exec/context_impl.h"
#include "runtime/exec/index_checks.h"
#include "runtime/session/session_impl.h"

namespace cgc {

Status Reservation::Impl::create() {
  const Entry &entry = served->plan->data().entries[request.entry];
  const Bucket &bucket = entry.buckets[request.bucket];
  run = {request.bucket, {}};
  if (request.rows > 0 && request.rows < served->requests.batch(request.entry, request.bucket))
    run.rows = RowRange{0, request.rows, request.rows};
  Context::Impl &context = implOf(lease->context);
  const auto add = [&](const std::vector<IoTensor> &tensors, bool isInput,
                       std::vector<Tensor> &to) -> Status {
    for (size_t i = 0; i < tensors.size(); ++i) {
      CGC_ASSIGN_OR_RETURN(const TensorView buffer,
                           context.staticBuffer(entry.name, request.bucket, i, isInput));
      Tensor &tensor = to.emplace_back(Tensor{buffer, tensors[i].sizes});
      if (!run.rows || tensors[i].batchDim == kNoBatchDim)
        continue;
      if (rowLayout(tensors[i]).blocks != 1)
        return {Code::Usage, "'" + tensors[i].name +
                                 "' has its batch in an inner dimension, so that some rows of its "
                                 "buffer lie apart; reserve the batch of a bucket"};
      tensor.sizes[tensors[i].batchDim] = request.rows;
    }
    return Status::ok();
  };
  CGC_TRY(add(bucket.inputs, /*isInput=*/true, inputs));
  CGC_TRY(add(bucket.outputs, /*isInput=*/false, outputs));
  for (const auto &[tensors, views] : {std::pair(&inputs, &inputViews), {&outputs, &outputViews}})
    for (Tensor &tensor : *tensors) {
      tensor.view.sizes = tensor.sizes; // It stays where it is from now on.
      views->push_back(tensor.view);
    }
  // The caller may write the inputs as soon as it has them, from anywhere.
  context.waitForLastRun();
  return Status::ok();
}

Status Reservation::Impl::runOn(void *stream) {
  Context::Impl &context = implOf(lease->context);
  const Entry &entry = served->plan->data().entries[request.entry];
  CGC_TRY(checkIndices(entry.buckets[run.bucket].inputs, inputViews, run.rows));
  if (stream && context.device == DeviceKind::Cuda) {
    CGC_ASSIGN_OR_RETURN(const auto capture, captureOf(static_cast<cudaStream_t>(stream)));
    if (capture)
      return {Code::Usage, "the stream is being captured, and a caller's graph could run after the "
                           "reservation; run the session itself, with tensors of your own"};
    CGC_ASSIGN_OR_RETURN(const int device, deviceOf(static_cast<cudaStream_t>(stream)));
    if (device != lease->device)
      return {Code::Usage, "the stream is of GPU " + std::to_string(device) +
                               ", and the reservation is of GPU " + std::to_string(lease->device)};
  }
  Status status = context.run(request.entry, {&run, 1}, inputViews, outputViews,
                              static_cast<cudaStream_t>(stream));
  if (status.isOk())
    session.count(*served, request, {&run, 1}, &lease->context);
  return status;
}

Reservation::Reservation(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reservation::Reservation(Reservation &&) noexcept = default;
Reservation &Reservation::operator=(Reservation &&) noexcept = default;
Reservation::~Reservation() = default;

namespace {

Result<TensorView> viewAt(const std::vector<TensorView> &views, size_t index, const char *kind) {
  if (index >= views.size())
    return Status(Code::Usage, "the reserved bucket has " + std::to_string(views.size()) + " " +
                                   kind + ", none of index " + std::to_string(index));
  return views[index];
}

} // namespace

Result<TensorView> Reservation::inputBuffer(size_t index) const {
  return noThrow([&] { return viewAt(impl_->inputViews, index, "inputs"); });
}

Result<TensorView> Reservation::outputBuffer(size_t index) const {
  return noThrow([&] { return viewAt(impl_->outputViews, index, "outputs"); });
}

std::optional<int> Reservation::device() const {
  const int device = impl_->lease->device;
  return device >= 0 ? std::optional(device) : std::nullopt;
}

Status Reservation::run(void *stream) {
  return impl_->session.counted([&] { return impl_->runOn(stream); });
}

} // namespace cgc
