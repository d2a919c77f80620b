/* Uses every function of the C API from C99, on the host: serve PLAN HOST_PLAN LARGER_PLAN. Entry
 * "rows" of PLAN computes y = w - x over batches of f32[N,4]; entry "twice" of HOST_PLAN is a host
 * call on f32[2,4]. Exits with 1 and prints the line that failed. */
#include "tests/c_api/checks.h"

#include <stddef.h>
#include <string.h>

/* The call fails with `code` and a message that contains `text`, and no name of the C++ API. */
#define FAILS(call, code, text)                                                                    \
  do {                                                                                             \
    cgc_error *error = NULL;                                                                       \
    CHECK((call) == (code));                                                                       \
    CHECK(cgc_error_code(error) == (code));                                                        \
    if (!strstr(cgc_error_message(error), text))                                                   \
      fprintf(stderr, "%s\n", cgc_error_message(error));                                           \
    CHECK(strstr(cgc_error_message(error), text) != NULL);                                         \
    CHECK(strstr(cgc_error_message(error), "::") == NULL);                                         \
    cgc_error_destroy(error);                                                                      \
  } while (0)

/* A host function that doubles; fails if `user_data` is null. */
static const char *twice(void *user_data, const cgc_tensor *inputs, size_t input_count,
                         const cgc_tensor *outputs, size_t output_count, void *stream) {
  const float *x = (const float *)inputs[0].data;
  float *y = (float *)outputs[0].data;
  if (!user_data)
    return "it has no data";
  if (input_count != 1 || output_count != 1 || stream || inputs[0].memory != CGC_HOST ||
      inputs[0].dtype != CGC_F32 || inputs[0].rank != 2 || outputs[0].sizes[1] != 4)
    return "the tensors are wrong";
  for (int64_t i = 0; i < inputs[0].sizes[0] * 4; ++i)
    y[i] = 2 * x[i];
  ++*(int *)user_data;
  return NULL;
}

/* Serves a plan whose entry "twice" is a host call. */
static int checkHostFunctions(const char *path) {
  cgc_plan *plan = NULL;
  cgc_session *session = NULL;
  float x[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}}, y[2][4];
  const int64_t sizes[2] = {2, 4};
  const cgc_tensor in = {x, sizes, 2, CGC_F32, CGC_HOST}, out = {y, sizes, 2, CGC_F32, CGC_HOST};
  int calls = 0;
  cgc_host_function function = {"gate.forward", twice, &calls};
  cgc_session_options options = CGC_INIT(cgc_session_options);
  CHECK(cgc_plan_load(path, &plan, NULL) == CGC_OK);
  FAILS(cgc_session_create(plan, NULL, &session, &error), CGC_USAGE,
        "the host function 'gate.forward'");
  options.host_function_count = 1;
  FAILS(cgc_session_create(plan, &options, &session, &error), CGC_USAGE, "host_functions is null");
  options.host_functions = &function;
  /* A program that was compiled with an earlier version has no such members. */
  options.struct_size = offsetof(cgc_session_options, host_functions);
  FAILS(cgc_session_create(plan, &options, &session, &error), CGC_USAGE,
        "the host function 'gate.forward'");
  options.struct_size = sizeof options;
  CHECK(cgc_session_create(plan, &options, &session, NULL) == CGC_OK);
  CHECK(cgc_session_run(session, "twice", &in, 1, &out, 1, NULL, NULL) == CGC_OK);
  CHECK(calls == 1 && y[0][0] == 2 && y[1][3] == 16);
  cgc_session_destroy(session);
  function.user_data = NULL;
  CHECK(cgc_session_create(plan, &options, &session, NULL) == CGC_OK);
  FAILS(cgc_session_run(session, "twice", &in, 1, &out, 1, NULL, &error), CGC_FAILED,
        "host gate.forward: it has no data");
  cgc_session_destroy(session);
  function.function = NULL;
  FAILS(cgc_session_create(plan, &options, &session, &error), CGC_USAGE,
        "the host function 'gate.forward' is null");
  cgc_plan_destroy(plan);
  return 0;
}

static int checkPlan(const cgc_plan *plan) {
  cgc_tensor_info info = CGC_INIT(cgc_tensor_info);
  CHECK(cgc_plan_entry_count(plan) == 5);
  CHECK(strcmp(cgc_plan_entry_name(plan, 0), "rows") == 0);
  CHECK(cgc_plan_entry_name(plan, 5) == NULL);
  CHECK(cgc_plan_bucket_count(plan, 0) == 4 && cgc_plan_bucket_count(plan, 5) == 0);
  CHECK(cgc_plan_takes_any_batch(plan, 0) == 1 && cgc_plan_takes_any_batch(plan, 4) == 0);
  CHECK(cgc_plan_needs_libtorch(plan) == 1 && cgc_plan_needs_libtorch(NULL) == 0);
  CHECK(cgc_plan_is_for_gpu(plan) == 0 && cgc_plan_is_for_gpu(NULL) == 0);
  CHECK(cgc_plan_tensor_count(plan, 0, CGC_INPUT) == 1);
  CHECK(cgc_plan_tensor_count(plan, 3, CGC_INPUT) == 2);
  CHECK(cgc_plan_tensor(plan, 0, 2, CGC_INPUT, 0, &info, NULL) == CGC_OK);
  CHECK(strcmp(info.name, "x") == 0 && info.dtype == CGC_F32 && info.rank == 2);
  CHECK(info.sizes[0] == 16 && info.sizes[1] == 4 && info.batch_dim == 0);
  CHECK(info.struct_size == sizeof info);
  FAILS(cgc_plan_tensor(plan, 0, 0, (cgc_io)5, 0, &info, &error), CGC_USAGE, "no cgc_io 5");
  FAILS(cgc_plan_tensor(plan, 5, 0, CGC_INPUT, 0, &info, &error), CGC_USAGE, "no entry of index 5");
  FAILS(cgc_plan_tensor(plan, 0, 4, CGC_INPUT, 0, &info, &error), CGC_USAGE,
        "no bucket of index 4");
  FAILS(cgc_plan_tensor(plan, 0, 0, CGC_OUTPUT, 1, &info, &error), CGC_USAGE,
        "no output of index 1");
  info.struct_size = 0;
  FAILS(cgc_plan_tensor(plan, 0, 0, CGC_INPUT, 0, &info, &error), CGC_USAGE,
        "sizeof(cgc_tensor_info)");
  return 0;
}

/* The messages of a session: their number, and whether one tells a refused request. */
typedef struct log_state {
  int messages, refusals;
} log_state;

static void countMessage(void *user, cgc_log_level level, const char *message) {
  log_state *state = user;
  ++state->messages;
  state->refusals += level == CGC_LOG_WARNING && strstr(message, "a request failed (usage") != NULL;
}

static int checkHealth(cgc_session *session, const log_state *state) {
  char text[8192], begin[8];
  size_t size = 0, same = 0;
  CHECK(state->messages > 0 && state->refusals == 1); /* Of three requests that failed. */
  CHECK(cgc_session_healthy(session) == 1 && cgc_session_healthy(NULL) == 0);
  CHECK(cgc_session_metrics(session, "c", text, sizeof text, &size, NULL) == CGC_OK);
  CHECK(size == strlen(text) && strstr(text, "cgc_rows_total{session=\"c\"} 6\n") != NULL);
  CHECK(cgc_session_metrics(session, "c", NULL, 0, &same, NULL) == CGC_OK && same == size);
  CHECK(cgc_session_metrics(session, "c", begin, sizeof begin, &same, NULL) == CGC_OK);
  CHECK(same == size && strlen(begin) == 7 && strncmp(begin, text, 7) == 0);
  FAILS(cgc_session_metrics(session, "c", NULL, 9, &size, &error), CGC_USAGE, "text is null");
  CHECK(cgc_session_reset(session, NULL) == CGC_OK);
  FAILS(cgc_session_reset(NULL, &error), CGC_USAGE, "session is null");
  return 0;
}

static int checkSession(const cgc_plan *plan, const cgc_plan *larger, cgc_session *session) {
  cgc_tensor many[9];
  float x[6][4], y[6][4];
  const int64_t sizes[2] = {6, 4}, wrong[2] = {6, 5};
  cgc_tensor in = {x, sizes, 2, CGC_F32, CGC_HOST}, out = {y, sizes, 2, CGC_F32, CGC_HOST};
  cgc_session_stats stats = CGC_INIT(cgc_session_stats);
  cgc_memory_report memory = CGC_INIT(cgc_memory_report);
  for (int row = 0; row < 6; ++row)
    for (int column = 0; column < 4; ++column)
      x[row][column] = (float)(10 * row + column);
  CHECK(cgc_session_prepare(session, "rows", 6, NULL) == CGC_OK);
  CHECK(cgc_session_run(session, "rows", &in, 1, &out, 1, NULL, NULL) == CGC_OK);
  for (int row = 0; row < 6; ++row)
    for (int column = 0; column < 4; ++column)
      CHECK(y[row][column] == (float)(column + 1) - x[row][column]);
  CHECK(cgc_session_update(session, plan, NULL) == CGC_OK);
  CHECK(cgc_session_swap_weights(session, plan, NULL) == CGC_OK);
  FAILS(cgc_session_swap_weights(session, larger, &error), CGC_USAGE, "5 buckets instead of 4");
  FAILS(cgc_session_run(session, "none", &in, 1, &out, 1, NULL, &error), CGC_USAGE,
        "no entry 'none'");
  FAILS(cgc_session_run(session, "rows", NULL, 1, &out, 1, NULL, &error), CGC_USAGE,
        "inputs is null");
  in.sizes = wrong;
  FAILS(cgc_session_run(session, "rows", &in, 1, &out, 1, NULL, &error), CGC_USAGE, "x=f32[6,5]");
  in.dtype = (cgc_dtype)77;
  FAILS(cgc_session_run(session, "rows", &in, 1, &out, 1, NULL, &error), CGC_USAGE,
        "inputs[0]: there is no element type 77");
  in.dtype = (cgc_dtype)-1;
  FAILS(cgc_session_run(session, "rows", &in, 1, &out, 1, NULL, &error), CGC_USAGE,
        "inputs[0]: there is no element type -1");
  in.dtype = CGC_F32;
  in.memory = (cgc_memory)7;
  FAILS(cgc_session_run(session, "rows", &in, 1, &out, 1, NULL, &error), CGC_USAGE,
        "inputs[0]: there is no memory 7");
  in.memory = CGC_HOST;
  in.rank = -1;
  FAILS(cgc_session_run(session, "rows", &in, 1, &out, 1, NULL, &error), CGC_USAGE,
        "inputs[0]: rank is negative");
  in.rank = INT32_MAX;
  FAILS(cgc_session_run(session, "rows", &in, 1, &out, 1, NULL, &error), CGC_USAGE,
        "inputs[0]: rank 2147483647 is above 16");
  for (int i = 0; i < 9; ++i)
    many[i] = out;
  FAILS(cgc_session_run(session, "rows", many, 9, &out, 1, NULL, &error), CGC_USAGE,
        "9 were given");
  FAILS(cgc_session_prepare(session, "rows", 0, &error), CGC_USAGE, "the batch is empty");
  CHECK(cgc_session_get_memory(session, &memory, NULL) == CGC_OK);
  CHECK(memory.states == 0); /* The plan has none. */
  CHECK(memory.weights == 16 && memory.arenas > 0 && memory.io > 0 && memory.graphs == 0);
  CHECK(memory.workspace == 0 && memory.peak >= memory.weights + memory.arenas + memory.io);
  /* A program that was compiled with the first version has no member for the workspace. */
  memset(&memory, 0xff, sizeof memory);
  memory.struct_size = offsetof(cgc_memory_report, workspace);
  CHECK(cgc_session_get_memory(session, &memory, NULL) == CGC_OK);
  CHECK(memory.weights == 16 && memory.workspace == UINT64_MAX && memory.peak == UINT64_MAX);
  FAILS(cgc_session_get_memory(session, NULL, &error), CGC_USAGE, "cgc_memory_report is null");
  CHECK(cgc_session_get_stats(session, &stats, NULL) == CGC_OK);
  CHECK(stats.struct_size == sizeof stats);
  CHECK(stats.requests == 4 && stats.failures == 3 && stats.rows == 6 && stats.updates == 2);
  CHECK(stats.fallbacks == 0 && stats.replays == 0 && stats.captures == 0);
  /* A program that was compiled with an earlier version has a smaller structure. */
  memset(&stats, 0xff, sizeof stats);
  stats.struct_size = offsetof(cgc_session_stats, splits);
  CHECK(cgc_session_get_stats(session, &stats, NULL) == CGC_OK);
  CHECK(stats.failures == 3 && stats.splits == UINT64_MAX);
  return 0;
}

/* Runs a reservation of three rows of the bucket of four. */
static int checkReservation(cgc_session *session) {
  cgc_reservation *reserved = NULL;
  cgc_tensor in, out;
  FAILS(cgc_session_reserve(session, "rows", 1000, -1, &reserved, &error), CGC_USAGE,
        "no single bucket for 1000 rows");
  FAILS(cgc_session_reserve(session, "rows", 3, 0, &reserved, &error), CGC_USAGE, "GPU 0 is given");
  FAILS(cgc_session_reserve(session, NULL, 3, -1, &reserved, &error), CGC_USAGE, "entry is null");
  FAILS(cgc_session_reserve(session, "rows", 3, -1, NULL, &error), CGC_USAGE,
        "reservation is null");
  CHECK(cgc_session_reserve(session, "rows", 3, -1, &reserved, NULL) == CGC_OK);
  CHECK(cgc_reservation_device(reserved) == -1);
  CHECK(cgc_reservation_tensor(reserved, CGC_INPUT, 0, &in, NULL) == CGC_OK);
  CHECK(cgc_reservation_tensor(reserved, CGC_OUTPUT, 0, &out, NULL) == CGC_OK);
  CHECK(in.rank == 2 && in.sizes[0] == 3 && in.sizes[1] == 4 && in.dtype == CGC_F32 &&
        in.memory == CGC_HOST);
  FAILS(cgc_reservation_tensor(reserved, CGC_OUTPUT, 1, &out, &error), CGC_USAGE,
        "none of index 1");
  FAILS(cgc_reservation_tensor(reserved, CGC_INPUT, 0, NULL, &error), CGC_USAGE, "tensor is null");
  for (int i = 0; i < 12; ++i)
    ((float *)in.data)[i] = (float)(7 * i);
  CHECK(cgc_reservation_run(reserved, NULL, NULL) == CGC_OK);
  for (int i = 0; i < 12; ++i)
    CHECK(((float *)out.data)[i] == (float)(i % 4 + 1) - (float)(7 * i));
  FAILS(cgc_reservation_run(NULL, NULL, &error), CGC_USAGE, "reservation is null");
  cgc_reservation_destroy(reserved);
  cgc_reservation_destroy(NULL);
  return 0;
}

/* Two sessions in one pool, which takes the arena of one. */
static int checkPool(const cgc_plan *plan) {
  cgc_memory_pool *pool = NULL;
  uint64_t arenas = 0;
  cgc_session *sessions[2] = {NULL, NULL};
  cgc_session_options options = CGC_INIT(cgc_session_options);
  cgc_pool_report report = CGC_INIT(cgc_pool_report);
  cgc_memory_report memory = CGC_INIT(cgc_memory_report);
  FAILS(cgc_memory_pool_create((cgc_memory)7, 0, 0, &pool, &error), CGC_USAGE, "no memory 7");
  FAILS(cgc_memory_pool_create(CGC_HOST, 0, 0, NULL, &error), CGC_USAGE, "pool is null");
  CHECK(cgc_memory_pool_create(CGC_HOST, 0, 0, &pool, NULL) == CGC_OK);
  options.pool = pool;
  CHECK(cgc_session_create(plan, &options, &sessions[0], NULL) == CGC_OK);
  CHECK(cgc_memory_pool_get_report(pool, &report, NULL) == CGC_OK);
  arenas = report.arenas;
  CHECK(cgc_session_create(plan, &options, &sessions[1], NULL) == CGC_OK);
  options.memory_limit = 1;
  FAILS(cgc_session_create(plan, &options, &sessions[0], &error), CGC_USAGE, "limit");
  CHECK(cgc_session_get_memory(sessions[1], &memory, NULL) == CGC_OK);
  CHECK(cgc_memory_pool_get_report(pool, &report, NULL) == CGC_OK);
  CHECK(arenas >= memory.arenas && report.arenas == arenas);
  CHECK(report.io == 2 * memory.io && report.graphs == 0);
  CHECK(report.weights == 2 * memory.weights && report.limit == 0);
  CHECK(report.peak == report.weights + report.arenas + report.io && report.workspace == 0);
  FAILS(cgc_memory_pool_get_report(NULL, &report, &error), CGC_USAGE, "pool is null");
  cgc_memory_pool_destroy(pool); /* The sessions keep it. */
  for (int i = 0; i < 2; ++i) {
    CHECK(cgc_session_prepare(sessions[i], "rows", 1, NULL) == CGC_OK);
    cgc_session_destroy(sessions[i]);
  }
  options.pool = NULL;
  options.memory_limit = 0;
  options.captured_contexts = 1;
  FAILS(cgc_session_create(plan, &options, &sessions[0], &error), CGC_USAGE,
        "set aside for captures, and the plan runs on the host");
  cgc_memory_pool_destroy(NULL);
  return 0;
}

int main(int argc, char **argv) {
  cgc_plan *plan = NULL, *larger = NULL;
  cgc_session *session = NULL;
  cgc_session_options options = CGC_INIT(cgc_session_options);
  log_state state = {0, 0};
  CHECK(argc == 4);
  CHECK(strlen(cgc_version()) > 0);
  CHECK(strcmp(cgc_code_name(CGC_BUSY), "busy") == 0);
  CHECK(strcmp(cgc_dtype_name(CGC_BF16), "bf16") == 0 && cgc_dtype_name((cgc_dtype)10) == NULL);
  CHECK(cgc_dtype_size(CGC_F16) == 2 && cgc_dtype_size((cgc_dtype)-1) == 0);
  CHECK(cgc_error_code(NULL) == CGC_OK && strcmp(cgc_error_message(NULL), "") == 0);
  FAILS(cgc_plan_load("missing.cgplan", &plan, &error), CGC_INVALID_FILE, "missing.cgplan");
  FAILS(cgc_plan_load(NULL, &plan, &error), CGC_USAGE, "path is null");
  CHECK(cgc_plan_load(argv[1], &plan, NULL) == CGC_OK);
  CHECK(cgc_plan_load(argv[3], &larger, NULL) == CGC_OK);
  if (checkPlan(plan))
    return 1;
  FAILS(cgc_session_create(NULL, NULL, &session, &error), CGC_USAGE, "plan is null");
  options.struct_size = 1;
  FAILS(cgc_session_create(plan, &options, &session, &error), CGC_USAGE,
        "sizeof(cgc_session_options)");
  options.struct_size = sizeof options;
  options.contexts = -1;
  FAILS(cgc_session_create(plan, &options, &session, &error), CGC_USAGE, "at least one context");
  options.contexts = 2;
  options.capture_on_first_use = 1;
  options.executor = (cgc_executor)9;
  FAILS(cgc_session_create(plan, &options, &session, &error), CGC_USAGE, "no executor 9");
  options.executor = CGC_GRAPH;
  options.log = countMessage;
  options.log_user = &state;
  options.fallback_model = "missing.pt";
  FAILS(cgc_session_create(plan, &options, &session, &error), CGC_INVALID_FILE, "missing.pt");
  options.fallback_model = NULL;
  CHECK(cgc_session_create(plan, &options, &session, NULL) == CGC_OK);
  if (checkSession(plan, larger, session) || checkHealth(session, &state))
    return 1;
  if (checkReservation(session) || checkPool(plan))
    return 1;
  if (checkHostFunctions(argv[2]))
    return 1;
  cgc_plan_destroy(larger);
  cgc_plan_destroy(plan); /* The session keeps it. */
  cgc_session_destroy(session);
  cgc_session_destroy(NULL);
  cgc_plan_destroy(NULL);
  cgc_error_destroy(NULL);
  return 0;
}
