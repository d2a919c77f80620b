/* The C API of libcgc_runtime: loads launch plans and serves them. docs/api.md explains it with
 * examples.
 *
 * Rules that hold for every function:
 *  - It returns a cgc_code. If that is not CGC_OK and `error` is not null, `*error` receives an
 * error that the caller destroys with cgc_error_destroy(). Otherwise `*error` is not touched. No
 * exception leaves a function.
 *  - A handle that a function returns belongs to the caller, who destroys it with the function of
 * its type. Destroying a null handle does nothing.
 *  - Functions are thread-safe unless they destroy a handle: no other call may use that handle then
 * or later.
 *  - Strings are null-terminated UTF-8.
 *  - A structure begins with its size, set by the caller: sizeof of the type that it was compiled
 * with. A later version of the library may have more members; members that the caller's version
 * lacks have their defaults. CGC_INIT(type) makes a zeroed structure with its size, and zero is the
 * default of every member.
 */
#ifndef CGC_H
#define CGC_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CGC_C_API __attribute__((visibility("default")))
#else
#define CGC_C_API
#endif

#ifdef __cplusplus
#define CGC_INIT(type)                                                                             \
  [] {                                                                                             \
    type value = type();                                                                           \
    value.struct_size = sizeof(type);                                                              \
    return value;                                                                                  \
  }()
extern "C" {
#else
#define CGC_INIT(type) ((type){.struct_size = sizeof(type)})
#endif

/* The kinds of failure. */
typedef enum cgc_code {
  CGC_OK = 0,
  CGC_FAILED = 1,        /* The operation failed for a reason that no other code names. */
  CGC_USAGE = 2,         /* The caller's arguments are wrong. */
  CGC_INVALID_FILE = 3,  /* A file is missing, damaged or of another kind. */
  CGC_UNSUPPORTED = 4,   /* The plan uses something that this library cannot run. */
  CGC_DEVICE = 6,        /* No usable device or driver, or the device failed. */
  CGC_OUT_OF_MEMORY = 7, /* Host or device memory ran out. */
  CGC_BUSY = 8           /* A limit on waiting or the time-out was reached. Try again later. */
} cgc_code;

/* Element types. */
typedef enum cgc_dtype {
  CGC_F32 = 0,
  CGC_F16 = 1,
  CGC_BF16 = 2,
  CGC_F64 = 3,
  CGC_I64 = 4,
  CGC_I32 = 5,
  CGC_I16 = 6,
  CGC_I8 = 7,
  CGC_U8 = 8,
  CGC_BOOL = 9
} cgc_dtype;

/* The memory that holds a tensor. */
typedef enum cgc_memory { CGC_HOST = 0, CGC_GPU = 1 } cgc_memory;

/* An error: a code, and a message that names the object, the cause and the next step. */
typedef struct cgc_error cgc_error;
/* A loaded plan. Immutable. */
typedef struct cgc_plan cgc_plan;
/* Memory that the models of several sessions share. */
typedef struct cgc_memory_pool cgc_memory_pool;
/* A plan on one or several devices, ready for requests. */
typedef struct cgc_session cgc_session;
/* A context of a session that one caller keeps, to use its inputs and outputs where they are. */
typedef struct cgc_reservation cgc_reservation;

/* The version of the library, such as "0.1.0". */
CGC_C_API const char *cgc_version(void);
/* The name of a code, such as "out_of_memory". */
CGC_C_API const char *cgc_code_name(cgc_code code);
/* The name of an element type, such as "f16"; null if there is no such type. */
CGC_C_API const char *cgc_dtype_name(cgc_dtype dtype);
/* The bytes of an element; 0 if there is no such type. */
CGC_C_API size_t cgc_dtype_size(cgc_dtype dtype);

CGC_C_API cgc_code cgc_error_code(const cgc_error *error);
/* Lives as long as the error. */
CGC_C_API const char *cgc_error_message(const cgc_error *error);
CGC_C_API void cgc_error_destroy(cgc_error *error);

/* Maps and verifies the plan file at `path`. Touches no GPU and executes nothing from the file. */
CGC_C_API cgc_code cgc_plan_load(const char *path, cgc_plan **plan, cgc_error **error);
/* Sessions that were created from the plan keep what they need of it. */
CGC_C_API void cgc_plan_destroy(cgc_plan *plan);

/* Which tensors of an entry. */
typedef enum cgc_io { CGC_INPUT = 0, CGC_OUTPUT = 1 } cgc_io;

/* An input or output of a bucket. The pointers live as long as the plan. */
typedef struct cgc_tensor_info {
  size_t struct_size;
  const char *name;
  cgc_dtype dtype;
  int32_t rank;
  const int64_t *sizes;
  int32_t batch_dim; /* The dimension whose size is the batch; -1 if there is none. */
} cgc_tensor_info;

/* The number of entries, the methods of the model. */
CGC_C_API size_t cgc_plan_entry_count(const cgc_plan *plan);
/* The name of an entry; null if there is no such entry. Lives as long as the plan. */
CGC_C_API const char *cgc_plan_entry_name(const cgc_plan *plan, size_t entry);
/* The number of buckets of an entry, the sets of input shapes that it was compiled for; 0 if there
 * is no such entry. */
CGC_C_API size_t cgc_plan_bucket_count(const cgc_plan *plan, size_t entry);
/* 1 if the rows of a batch are independent, so that the entry takes any batch; else 0. */
CGC_C_API int cgc_plan_takes_any_batch(const cgc_plan *plan, size_t entry);
/* 1 if LibTorch runs some of the plan's records, so that a session needs libcgc_aten.so and
 * LibTorch (docs/deployment.md); else 0. */
CGC_C_API int cgc_plan_needs_libtorch(const cgc_plan *plan);
/* 1 if the plan is for GPUs, so that without one only CGC_REFERENCE runs it; 0 if it is for the
 * host. */
CGC_C_API int cgc_plan_is_for_gpu(const cgc_plan *plan);
/* The number of inputs or outputs of an entry; 0 if there is no such entry. */
CGC_C_API size_t cgc_plan_tensor_count(const cgc_plan *plan, size_t entry, cgc_io io);
/* Describes an input or output of a bucket. CGC_USAGE if there is none. */
CGC_C_API cgc_code cgc_plan_tensor(const cgc_plan *plan, size_t entry, size_t bucket, cgc_io io,
                                   size_t index, cgc_tensor_info *info, cgc_error **error);

/* A tensor that a training plan keeps from one run to the next (docs/training.md). The pointers
 * live as long as the plan. */
typedef struct cgc_state_info {
  size_t struct_size;
  const char *name; /* That of the model for a parameter or a buffer. */
  const char *role; /* "parameter", "buffer", "optimizer", "control", "average", "gradient" or
                       "copy". */
  cgc_dtype dtype;
  int32_t rank;
  const int64_t *sizes;
} cgc_state_info;

/* The number of states; 0 if the plan keeps none. */
CGC_C_API size_t cgc_plan_state_count(const cgc_plan *plan);
/* Describes a state. CGC_USAGE if there is none. */
CGC_C_API cgc_code cgc_plan_state(const cgc_plan *plan, size_t index, cgc_state_info *info,
                                  cgc_error **error);

/* One arena and one limit for all sessions that are created with the pool: the arena is as large as
 * the largest of theirs, not the sum, and runs that share it follow one another on the device.
 * `memory` and `device` say which memory: that of GPU `device`, or the host's, where `device` is
 * ignored. `limit` is in bytes, without the memory of CUDA graphs; 0 is the memory that is free. */
CGC_C_API cgc_code cgc_memory_pool_create(cgc_memory memory, int32_t device, uint64_t limit,
                                          cgc_memory_pool **pool, cgc_error **error);
/* Sessions that were created with the pool keep it. */
CGC_C_API void cgc_memory_pool_destroy(cgc_memory_pool *pool);

/* The memory of a pool in bytes. That of one model: cgc_session_get_memory. */
typedef struct cgc_pool_report {
  size_t struct_size;
  uint64_t weights;
  uint64_t arenas; /* The shared arena, counted once, and those that contexts have to themselves. */
  uint64_t io;     /* Static inputs and outputs. */
  uint64_t graphs; /* Memory that the driver took for CUDA graphs. */
  uint64_t peak;   /* The largest sum of the above since the pool was created. */
  uint64_t limit;
  uint64_t workspace; /* The part of `arenas` that GEMMs of libraries need as workspace. */
  uint64_t states;    /* Tensors that keep their values from one run to the next; part of `peak`. */
} cgc_pool_report;

CGC_C_API cgc_code cgc_memory_pool_get_report(const cgc_memory_pool *pool, cgc_pool_report *report,
                                              cgc_error **error);

/* How kernels are run. */
typedef enum cgc_executor {
  CGC_GRAPH = 0,    /* Replays a CUDA graph. */
  CGC_STREAM = 1,   /* Launches every kernel: for debugging. */
  CGC_REFERENCE = 2 /* Runs a plan for cuda on the host without a GPU, slowly. */
} cgc_executor;

/* How much a message of a session matters. */
typedef enum cgc_log_level {
  CGC_LOG_INFO = 0,
  CGC_LOG_WARNING = 1,
  CGC_LOG_ERROR = 2
} cgc_log_level;

/* A dense tensor that the caller owns. */
typedef struct cgc_tensor {
  void *data;
  const int64_t *sizes;
  int32_t rank;
  cgc_dtype dtype;
  cgc_memory memory;
} cgc_tensor;

/* Computes `outputs` from `inputs` in place of a submodule that was left out of the plan (cgc
 * compile --host-module). The tensors lie in the memory of the device that runs the plan. They
 * are valid during the call, their memory until the work that the function enqueued on `stream` is
 * complete. The function must not write to `inputs`, nor call a session. `stream` is the
 * cudaStream_t of the run, null on the host: the function enqueues its work on it, or waits for its
 * work before it returns. Several threads may call it at once. Returns null, or why it failed, a
 * text that must stay valid until the thread calls the function again. No exception may leave it.
 */
typedef const char *(*cgc_host_callback)(void *user_data, const cgc_tensor *inputs,
                                         size_t input_count, const cgc_tensor *outputs,
                                         size_t output_count, void *stream);

/* A function with the name by which plans call it, the path of the submodule and its method, such
 * as "visual.adapter.forward". `cgc inspect` lists the names. This structure never changes. */
typedef struct cgc_host_function {
  const char *name;
  cgc_host_callback function;
  void *user_data; /* Must stay valid as long as the session. */
} cgc_host_function;

/* Paths that are null or empty have the defaults of docs/deployment.md. */
typedef struct cgc_session_options {
  size_t struct_size;
  cgc_executor executor;
  const int32_t *devices; /* The GPUs, by index, without duplicates. */
  size_t device_count;    /* 0: GPU 0 for a plan that runs on GPUs. */
  int32_t contexts;       /* Requests that run on each device at a time, 1024 at most. 0: 1. */
  int32_t threads;        /* Threads of an op on the host. 0: the setting of the process. */
  int64_t max_batch;      /* The largest batch of a request. 0: 16384. */
  size_t max_waiting;     /* Requests that may wait for a context at a time. 0: 1024. */
  int64_t timeout_ms;     /* The longest wait for a context, in milliseconds. 0: no limit. */
  int32_t capture_on_first_use; /* Not 0: a bucket is captured when it is first used, not at
                                   creation. */
  uint64_t memory_limit; /* In bytes for each device: weights, arenas, inputs, outputs. 0: the free
                            memory. */
  const char *aten_path; /* libcgc_aten.so or its folder. */
  const char *cublaslt_path;  /* libcublasLt.so.13 or its folder. */
  const char *reference_path; /* libcgc_reference.so or its folder. */
  const char *const *op_libraries;
  size_t op_library_count;
  const char *fallback_model; /* The TorchScript file that LibTorch runs for requests that no bucket
                                 takes. Null or empty: they fail with CGC_USAGE. */
  /* Receives the session's messages; may be null. Any thread may call it at any time, also several
   * at once. It must not call the session. `message` lives as long as the call. */
  void (*log)(void *log_user, cgc_log_level level, const char *message);
  void *log_user;
  const cgc_host_function *host_functions; /* Those that the plan calls, in any order. */
  size_t host_function_count;
  const cgc_memory_pool *pool; /* Null: the session has arenas of its own. With a pool, its limit
                                  holds, and memory_limit must be 0. */
  int32_t captured_contexts;   /* Further contexts on each device, for runs on streams that the
                                  caller captures; each such capture holds one. */
  int32_t address_sets; /* The sets of a caller's device tensors for which a bucket keeps a graph
                           that runs on them in place. 0: 4. Negative: tensors are copied. */
  int64_t seed; /* Of a plan that draws random numbers. Contexts get different ones from it, so that
                   requests are reproducible with one context. */
} cgc_session_options;

/* Uploads the weights to each device and creates its contexts. `options` may be null. */
CGC_C_API cgc_code cgc_session_create(const cgc_plan *plan, const cgc_session_options *options,
                                      cgc_session **session, cgc_error **error);
/* Waits for the session's work. */
CGC_C_API void cgc_session_destroy(cgc_session *session);

/* Runs `entry` on `inputs`, in the plan's order, and writes the results to `outputs`. An entry that
 * takes any batch (cgc_plan_takes_any_batch) may have any batch from 1 to max_batch; otherwise the
 * inputs have the shapes of one of the buckets.
 *
 * `stream` is a cudaStream_t: the work is enqueued on it, the call returns, and the tensors must
 * stay valid until the work is complete. If it is null, the call returns when the outputs are
 * complete. The legacy default stream is 1 (cudaStreamLegacy), not null.
 *
 * If `stream` is being captured, the run becomes part of the caller's graph. That needs
 * captured_contexts; the session and the memory of the tensors must outlive the graph and its
 * executables, whose replays must not overlap.
 *
 * CGC_USAGE, before anything is enqueued, for a request that does not fit; CGC_BUSY if it waited
 * too long. */
CGC_C_API cgc_code cgc_session_run(cgc_session *session, const char *entry,
                                   const cgc_tensor *inputs, size_t input_count,
                                   const cgc_tensor *outputs, size_t output_count, void *stream,
                                   cgc_error **error);

/* Takes a context for the caller alone, who writes inputs and reads outputs where they are: of the
 * smallest bucket of at least `batch` rows, or, if rows are not independent, of the bucket of
 * `batch` rows (dimension 0 of the first input, if the batch dimension is not known). `device` is
 * the GPU that must run it; -1: any. One thread at a time may use a reservation. */
CGC_C_API cgc_code cgc_session_reserve(cgc_session *session, const char *entry, int64_t batch,
                                       int32_t device, cgc_reservation **reservation,
                                       cgc_error **error);
/* Gives the context back. Before the session is destroyed. */
CGC_C_API void cgc_reservation_destroy(cgc_reservation *reservation);
/* The GPU of the reservation; -1 if the plan runs on the host. */
CGC_C_API int32_t cgc_reservation_device(const cgc_reservation *reservation);
/* An input or output of the reservation, with as many rows as were reserved. Memory and sizes live
 * as long as the reservation. Write an input after the last run; read an output before the next
 * one. CGC_USAGE if there is no such tensor. */
CGC_C_API cgc_code cgc_reservation_tensor(const cgc_reservation *reservation, cgc_io io,
                                          size_t index, cgc_tensor *tensor, cgc_error **error);
/* Runs the entry on what the inputs hold. `stream`, of the reservation's GPU, as for
 * cgc_session_run; one that is being captured is refused. */
CGC_C_API cgc_code cgc_reservation_run(cgc_reservation *reservation, void *stream,
                                       cgc_error **error);

/* Captures the buckets that a batch of `batch` rows takes, if the session captures on first use. */
CGC_C_API cgc_code cgc_session_prepare(cgc_session *session, const char *entry, int64_t batch,
                                       cgc_error **error);

/* Serves later requests with `plan`, which has at least the entries of the present one. Its buckets
 * are captured while the session serves requests; requests that have begun end with the present
 * plan. If it fails, that plan stays. */
CGC_C_API cgc_code cgc_session_update(cgc_session *session, const cgc_plan *plan,
                                      cgc_error **error);
/* The same for another compilation of the same model that differs in the values of weights only;
 * otherwise CGC_USAGE names the first difference. */
CGC_C_API cgc_code cgc_session_swap_weights(cgc_session *session, const cgc_plan *plan,
                                            cgc_error **error);

/* What a session has done since it was created. */
typedef struct cgc_session_stats {
  size_t struct_size;
  uint64_t requests; /* Calls of cgc_session_run and cgc_reservation_run, failed ones included. */
  uint64_t failures; /* Those that failed. */
  uint64_t splits;   /* Requests that took more than one run of a bucket. */
  uint64_t bucket_runs; /* Runs of a bucket. */
  uint64_t rows;        /* Rows of requests with a batch. */
  uint64_t padded_rows; /* Rows that were computed and that nobody asked for. */
  uint64_t waits;       /* Requests that found no free context. */
  uint64_t wait_micros; /* Their time in the queue, in microseconds. */
  uint64_t updates;     /* Plans that were exchanged. */
  uint64_t fallbacks;   /* Requests that LibTorch ran, by fallback_model. */
  uint64_t replays;     /* Runs of a bucket that replayed a CUDA graph. */
  uint64_t captures;    /* Buckets that were captured, each time in each context. */
} cgc_session_stats;

CGC_C_API cgc_code cgc_session_get_stats(const cgc_session *session, cgc_session_stats *stats,
                                         cgc_error **error);

/* Writes counters and memory, in the text format of Prometheus and with the label session="`name`",
 * to `text`, which has room for `capacity` bytes: as much as fits, null-terminated. `*size`
 * receives the length of the whole text without the null. `text` may be null if `capacity` is 0. */
CGC_C_API cgc_code cgc_session_metrics(const cgc_session *session, const char *name, char *text,
                                       size_t capacity, size_t *size, cgc_error **error);

/* 1 if no device was lost to an error that CUDA calls sticky, else 0; every request then fails with
 * that error. 0 for a null handle. */
CGC_C_API int cgc_session_healthy(const cgc_session *session);
/* Builds a session that is not healthy anew, for the same plan. If the driver still refuses the
 * device it fails, and the process has to end. */
CGC_C_API cgc_code cgc_session_reset(cgc_session *session, cgc_error **error);

/* Memory in bytes, the sum over the session's devices. */
typedef struct cgc_memory_report {
  size_t struct_size;
  uint64_t weights;
  uint64_t arenas;    /* For intermediate values. */
  uint64_t io;        /* Static inputs and outputs. */
  uint64_t graphs;    /* Memory that the driver took for CUDA graphs. */
  uint64_t workspace; /* The part of `arenas` that GEMMs of libraries need as workspace. */
  uint64_t peak;      /* The largest sum of weights, arenas, io, graphs and states since the session
                         was created. While plans are exchanged, both take memory. */
  uint64_t states;    /* Tensors that keep their values from one run to the next. */
} cgc_memory_report;

/* The memory of the plan that serves requests now. */
CGC_C_API cgc_code cgc_session_get_memory(const cgc_session *session, cgc_memory_report *report,
                                          cgc_error **error);

/* The ranks of a distributed training, one process each, joined by NCCL (docs/training.md). */
typedef struct cgc_communicator cgc_communicator;

/* NCCL's ncclUniqueId. One rank makes it, and all ranks need it. This structure never changes. */
typedef struct cgc_communicator_id {
  uint8_t bytes[128];
} cgc_communicator_id;

/* Paths that are null or empty have the defaults of docs/deployment.md. */
typedef struct cgc_communicator_options {
  size_t struct_size;
  int32_t rank;   /* Of this process, from 0. */
  int32_t ranks;  /* Of the communicator. 0: 1. */
  int32_t device; /* The GPU of this rank, by index; -1 for CGC_REFERENCE, of which NCCL itself runs
                     no collectives: for tests. */
  const char *nccl_path; /* libnccl.so.2 or its folder. */
  int64_t timeout_ms;    /* How long a call waits for the other ranks. 0: 10 minutes. */
} cgc_communicator_options;

/* Makes an id by NCCL at `nccl_path`, as in cgc_communicator_options. The process that makes it
 * must live until all ranks have joined. */
CGC_C_API cgc_code cgc_communicator_make_id(const char *nccl_path, cgc_communicator_id *id,
                                            cgc_error **error);
/* Joins the communicator, and returns when all ranks have joined. After CGC_DEVICE the id is of no
 * further use. */
CGC_C_API cgc_code cgc_communicator_create(const cgc_communicator_id *id,
                                           const cgc_communicator_options *options,
                                           cgc_communicator **communicator, cgc_error **error);
/* Leaves the communicator, which trainers that were created with it keep. */
CGC_C_API void cgc_communicator_destroy(cgc_communicator *communicator);
/* The rank of this process; -1 for a null handle. */
CGC_C_API int32_t cgc_communicator_rank(const cgc_communicator *communicator);
/* The number of ranks; 0 for a null handle. */
CGC_C_API int32_t cgc_communicator_ranks(const cgc_communicator *communicator);
/* Ends all collectives that this rank has enqueued, and refuses further ones with the message
 * `why`. A rank that leaves for an error calls this before it destroys its trainer, so as not to
 * wait for the others. */
CGC_C_API void cgc_communicator_abort(cgc_communicator *communicator, const char *why);

/* A training plan on one device, with its states, or one rank of several (docs/training.md). One
 * thread at a time may use a trainer; a second one gets CGC_USAGE. */
typedef struct cgc_trainer cgc_trainer;

/* Paths that are null or empty have the defaults of docs/deployment.md. */
typedef struct cgc_trainer_options {
  size_t struct_size;
  cgc_executor executor;
  int32_t device;             /* The GPU, by index. */
  int32_t threads;            /* Threads of an op on the host. 0: the setting of the process. */
  const char *aten_path;      /* libcgc_aten.so or its folder. */
  const char *cublaslt_path;  /* libcublasLt.so.13 or its folder. */
  const char *reference_path; /* libcgc_reference.so or its folder. */
  const char *const *op_libraries;
  size_t op_library_count;
  uint64_t memory_limit;  /* In bytes, states included. 0: the free memory. */
  size_t steps_in_flight; /* Steps that may be enqueued before the first of them is complete, and
                             results that wait for cgc_trainer_poll; 1024 at most. 0: 32. */
  const char *prefix;     /* What files leave out at the front of the names of states. */
  const cgc_communicator *communicator; /* The ranks that train together, each with a trainer that
                                           is given the same calls in the same order, but for read,
                                           poll, wait and evaluate. Errors name the rank. Null: the
                                           trainer is alone. */
} cgc_trainer_options;

/* A step that is complete: its number, from 1, and its loss. This structure never changes. */
typedef struct cgc_step_result {
  uint64_t step;
  double loss;
} cgc_step_result;

/* Uploads the weights and gives the states their first values. `options` may be null. CGC_USAGE if
 * the plan is no training plan (cgc compile --train). */
CGC_C_API cgc_code cgc_trainer_create(const cgc_plan *plan, const cgc_trainer_options *options,
                                      cgc_trainer **trainer, cgc_error **error);
/* Waits for the steps that are enqueued. */
CGC_C_API void cgc_trainer_destroy(cgc_trainer *trainer);

/* Enqueues one step on the inputs of entry "step", in the plan's order, on the cudaStream_t
 * `stream`, or on a stream of the trainer if it is null. It follows the steps before it. Inputs in
 * GPU or pinned memory must stay as they are until the step is complete. A step that fails with
 * another code than CGC_USAGE makes every later call fail until cgc_trainer_load or
 * cgc_trainer_reset. */
CGC_C_API cgc_code cgc_trainer_step(cgc_trainer *trainer, const cgc_tensor *inputs,
                                    size_t input_count, void *stream, cgc_error **error);
/* The same for one micro-batch of a step: adds its gradients to those since the last update. Of a
 * plan of cgc compile --accumulate. */
CGC_C_API cgc_code cgc_trainer_accumulate(cgc_trainer *trainer, const cgc_tensor *inputs,
                                          size_t input_count, void *stream, cgc_error **error);
/* Enqueues the update by the mean gradients of the micro-batches, which ends their step. */
CGC_C_API cgc_code cgc_trainer_update(cgc_trainer *trainer, void *stream, cgc_error **error);
/* Writes the results of the steps that have completed and that no call has returned yet, in order,
 * to `results`, which has room for `capacity`; `*count` receives their number. Does not wait. */
CGC_C_API cgc_code cgc_trainer_poll(cgc_trainer *trainer, cgc_step_result *results, size_t capacity,
                                    size_t *count, cgc_error **error);
/* Waits until all steps are complete. */
CGC_C_API cgc_code cgc_trainer_wait(cgc_trainer *trainer, cgc_error **error);

/* Runs the entry "evaluate" after the steps before it. `stream` as for cgc_session_run. */
CGC_C_API cgc_code cgc_trainer_evaluate(cgc_trainer *trainer, const cgc_tensor *inputs,
                                        size_t input_count, const cgc_tensor *outputs,
                                        size_t output_count, void *stream, cgc_error **error);

/* Sets the control value `name`, such as "lr" or "random:seed", for the steps after the call:
 * `values` has one number for each element, or one, as Trainer::set of the C++ API. Does not
 * wait. */
CGC_C_API cgc_code cgc_trainer_set(cgc_trainer *trainer, const char *name, const double *values,
                                   size_t count, cgc_error **error);
/* Copies a state to or from a tensor of its element type and sizes, after the steps before it, and
 * waits. CGC_USAGE for a state that another rank holds (Trainer::read of the C++ API). */
CGC_C_API cgc_code cgc_trainer_read(cgc_trainer *trainer, const char *name,
                                    const cgc_tensor *tensor, cgc_error **error);
CGC_C_API cgc_code cgc_trainer_write(cgc_trainer *trainer, const char *name,
                                     const cgc_tensor *tensor, cgc_error **error);

/* Writes a checkpoint to the folder `folder`, whose former content is exchanged at once, and stays
 * if a trained parameter has a NaN or an infinity, which is CGC_FAILED. Of several ranks, rank 0
 * writes, and all have to make the call. */
CGC_C_API cgc_code cgc_trainer_save(cgc_trainer *trainer, const char *folder, cgc_error **error);
/* Gives the states and the number of steps the values of a checkpoint. `any_plan`, if not 0, also
 * takes that of another plan with the same states. */
CGC_C_API cgc_code cgc_trainer_load(cgc_trainer *trainer, const char *folder, int32_t any_plan,
                                    cgc_error **error);
/* Gives the parameters and buffers the values of a file of safetensors. */
CGC_C_API cgc_code cgc_trainer_load_model(cgc_trainer *trainer, const char *path,
                                          cgc_error **error);
/* Gives each state its first value and begins to count steps anew. */
CGC_C_API cgc_code cgc_trainer_reset(cgc_trainer *trainer, cgc_error **error);

/* The steps that have been enqueued, with those of the checkpoint that was loaded. */
CGC_C_API uint64_t cgc_trainer_step_number(const cgc_trainer *trainer);
/* The micro-batches since the last update, with those of the checkpoint that was loaded. */
CGC_C_API uint64_t cgc_trainer_micro_batches(const cgc_trainer *trainer);
/* The complete steps with a loss of NaN or infinity. */
CGC_C_API uint64_t cgc_trainer_non_finite(const cgc_trainer *trainer);
CGC_C_API cgc_code cgc_trainer_get_memory(const cgc_trainer *trainer, cgc_memory_report *report,
                                          cgc_error **error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CGC_H */
