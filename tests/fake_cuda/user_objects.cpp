// The fake GPU's user objects, which tell their owner that no graph refers to them any more.
#include "tests/fake_cuda/state.h"

namespace cgc::test::fake_cuda {

UserObject::~UserObject() {
  const bool wasInHostFunction = std::exchange(thisThread.isInHostFunction, true);
  destroy_(data_); // It may not call CUDA.
  thisThread.isInHostFunction = wasInHostFunction;
}

} // namespace cgc::test::fake_cuda

using namespace cgc::test::fake_cuda;

cudaError_t cudaUserObjectCreate(cudaUserObject_t *result, void *data, cudaHostFn_t destroy,
                                 unsigned count, unsigned flags) {
  return api(__func__, [&](State &state) {
    if (!destroy || count == 0 || flags != cudaUserObjectNoDestructorSync)
      return cudaErrorInvalidValue;
    const auto object = std::make_shared<UserObject>(data, destroy);
    state.userObjects.emplace(object.get(), UserObjects(count, object));
    *result = handleOf<cudaUserObject_t>(object.get());
    return cudaSuccess;
  });
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t handle, unsigned count) {
  return freeingApi(__func__, [&](State &state) {
    const auto at = state.userObjects.find(reinterpret_cast<UserObject *>(handle));
    if (at == state.userObjects.end() || count > at->second.size())
      return cudaErrorInvalidValue;
    at->second.resize(at->second.size() - count);
    if (at->second.empty())
      state.userObjects.erase(at);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graphHandle, cudaUserObject_t handle,
                                      unsigned count, unsigned flags) {
  return api(__func__, [&](State &state) {
    Graph *const graph = state.find(graphHandle);
    const auto at = state.userObjects.find(reinterpret_cast<UserObject *>(handle));
    // The fake finds an object by a reference of the caller's only.
    if (!graph || at == state.userObjects.end() || count == 0)
      return cudaErrorInvalidValue;
    UserObjects &callers = at->second;
    const bool moves = flags & cudaGraphUserObjectMove;
    if (moves && count > callers.size())
      return cudaErrorInvalidValue;
    graph->userObjects.insert(graph->userObjects.end(), count, callers.front());
    if (moves)
      callers.resize(callers.size() - count);
    if (callers.empty())
      state.userObjects.erase(at);
    return cudaSuccess;
  });
}
