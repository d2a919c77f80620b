// The C API: communicators.
#include "runtime/c_api/arguments.h"
#include "runtime/c_api/handles.h"

using namespace cgc;
using namespace cgc::c_api;

static_assert(sizeof(cgc_communicator_id) == sizeof(CommunicatorId));

cgc_code cgc_communicator_make_id(const char *nccl_path, cgc_communicator_id *id,
                                  cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(id, "id"));
    CGC_ASSIGN_OR_RETURN(const CommunicatorId made, Communicator::makeId(text(nccl_path)));
    std::memcpy(id, made.data(), sizeof(*id));
    return Status::ok();
  });
}

cgc_code cgc_communicator_create(const cgc_communicator_id *id,
                                 const cgc_communicator_options *options,
                                 cgc_communicator **communicator, cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(id, "id"));
    CGC_TRY(require(communicator, "communicator"));
    CGC_ASSIGN_OR_RETURN(const cgc_communicator_options o,
                         fromCaller(options, "cgc_communicator_options"));
    CommunicatorOptions converted;
    converted.rank = o.rank;
    converted.ranks = orDefault(o.ranks, converted.ranks);
    converted.device = o.device;
    converted.ncclPath = text(o.nccl_path);
    converted.timeout = orDefault(std::chrono::milliseconds(o.timeout_ms), converted.timeout);
    CommunicatorId given = {};
    std::memcpy(given.data(), id, sizeof(*id));
    CGC_ASSIGN_OR_RETURN(auto created, Communicator::create(given, std::move(converted)));
    *communicator = new cgc_communicator{std::move(created)};
    return Status::ok();
  });
}

void cgc_communicator_destroy(cgc_communicator *communicator) {
  delete communicator;
}

int32_t cgc_communicator_rank(const cgc_communicator *communicator) {
  return communicator ? communicator->communicator->rank() : -1;
}

int32_t cgc_communicator_ranks(const cgc_communicator *communicator) {
  return communicator ? communicator->communicator->ranks() : 0;
}

void cgc_communicator_abort(cgc_communicator *communicator, const char *why) {
  if (communicator)
    (void)call(nullptr, [&] {
      communicator->communicator->abort({Code::Failed, text(why)});
      return Status::ok();
    });
}
