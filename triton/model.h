// A model of Triton: a plan and the session that all of its instances use.
#pragma once

#include "triton/config.h"
#include "triton/entry.h"
#include "triton/error.h"

#include <memory>
#include <mutex>
#include <string>

namespace cgc_triton {

/// One version of a model. Instances share its session, and so its weights: they have a context
/// each, on the GPUs of their group.
class Model final {
public:
  /// Loads the plan, and completes or checks the configuration. Throws an error.
  explicit Model(TRITONBACKEND_Model *model);

  /// Makes room for an instance. The first one creates the session for all that the configuration
  /// has; one beyond these, which Triton adds to a loaded model, creates it anew. Returns its GPU,
  /// or kHost.
  int32_t addInstance(TRITONBACKEND_ModelInstance *instance);
  /// Gives up the room of an instance on this GPU, or on kHost.
  void removeInstance(int32_t device);

  const Entry &entry() const { return entry_; }
  /// Whether dimension 0 of each tensor is the batch of Triton.
  bool isBatched() const { return maxBatch_ > 0; }
  std::shared_ptr<cgc_session> session() const;

private:
  /// The GPU of an instance, or kHost.
  int32_t deviceOf(TRITONBACKEND_ModelInstance *instance) const;
  std::shared_ptr<cgc_session> createSession() const;

  TRITONBACKEND_Model *model_;
  std::string name_; ///< For messages: "model 'clip', version 1: ".
  Parameters parameters_;
  Plan plan_;
  Entry entry_;
  int64_t maxBatch_ = 0;
  mutable std::mutex mutex_; ///< Guards all below.
  Instances instances_;      ///< Those that exist.
  Instances room_;           ///< Those that the session has contexts for.
  std::shared_ptr<cgc_session> session_;
};

} // namespace cgc_triton
