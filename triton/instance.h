// An instance of a model: runs the requests that Triton's scheduler gives it.
#pragma once

#include "triton/model.h"

#include <cstddef>
#include <span>
#include <vector>

namespace cgc_triton {

struct Request;

/// An instance, which one thread uses at a time.
class Instance final {
public:
  /// Throws an error if the model has no room for it.
  Instance(Model &model, TRITONBACKEND_ModelInstance *instance);
  ~Instance();
  Instance(const Instance &) = delete;
  Instance &operator=(const Instance &) = delete;

  /// Answers and releases the requests. Those in host memory whose shapes differ only in the batch
  /// run together; those in GPU memory run alone, where they are. An error of one request is its
  /// own.
  void execute(std::span<TRITONBACKEND_Request *> requests);

private:
  /// Runs requests of one bucket together. If they do not fit the plan, each runs alone. `begin` is
  /// when the execution began.
  void run(std::span<Request *const> requests, uint64_t begin);
  /// Runs them together, or throws an error.
  void runTogether(std::span<Request *const> requests, uint64_t begin);
  /// Sends the response or the error, and releases the request.
  void answer(const Request &request, uint64_t begin);

  Model &model_;
  TRITONBACKEND_ModelInstance *instance_;
  int32_t device_;                                       ///< Its GPU, or kHost.
  std::vector<std::vector<std::byte>> inputs_, outputs_; ///< Batches, by tensor of the entry.
};

} // namespace cgc_triton
