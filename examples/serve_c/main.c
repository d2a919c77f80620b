/* serve_c PLAN ENTRY [THREADS [SECONDS]]: serves random batches of an entry from several threads. */
#include <cgc.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_BATCH = 200, MAX_TENSORS = 8, MAX_THREADS = 64 };

static cgc_plan *plan;
static cgc_session *session;
static size_t entry;
static time_t end;

/* The inputs or outputs of a request: zeros, with room for MAX_BATCH rows. Returns their number. */
typedef struct tensors {
  size_t count;
  cgc_tensor tensors[MAX_TENSORS];
  int64_t sizes[MAX_TENSORS][16];
  int32_t batch_dims[MAX_TENSORS];
} tensors;

static void set_batch(tensors *t, int64_t batch) {
  for (size_t i = 0; i < t->count; ++i)
    if (t->batch_dims[i] >= 0)
      t->sizes[i][t->batch_dims[i]] = batch;
}

static void make_tensors(tensors *t, cgc_io io) {
  memset(t, 0, sizeof *t);
  t->count = cgc_plan_tensor_count(plan, entry, io);
  if (t->count > MAX_TENSORS)
    exit(2);
  for (size_t i = 0; i < t->count; ++i) {
    cgc_tensor_info info = CGC_INIT(cgc_tensor_info);
    size_t bytes;
    cgc_plan_tensor(plan, entry, 0, io, i, &info, NULL);
    bytes = cgc_dtype_size(info.dtype);
    t->batch_dims[i] = info.batch_dim;
    for (int32_t d = 0; d < info.rank; ++d) {
      t->sizes[i][d] = info.sizes[d];
      bytes *= (size_t)(d == info.batch_dim ? MAX_BATCH : info.sizes[d]);
    }
    t->tensors[i] = (cgc_tensor){calloc(1, bytes), t->sizes[i], info.rank, info.dtype, CGC_HOST};
  }
}

static void *serve(void *seed) {
  tensors in, out;
  unsigned state = (unsigned)(uintptr_t)seed;
  make_tensors(&in, CGC_INPUT);
  make_tensors(&out, CGC_OUTPUT);
  while (time(NULL) < end) {
    cgc_error *error = NULL;
    const int64_t batch = 1 + rand_r(&state) % MAX_BATCH;
    set_batch(&in, batch);
    set_batch(&out, batch);
    if (cgc_session_run(session, cgc_plan_entry_name(plan, entry), in.tensors, in.count, out.tensors, out.count, NULL,
                        &error))
      fprintf(stderr, "serve_c: %s\n", cgc_error_message(error));
    cgc_error_destroy(error);
  }
  for (size_t i = 0; i < in.count; ++i)
    free(in.tensors[i].data);
  for (size_t i = 0; i < out.count; ++i)
    free(out.tensors[i].data);
  return NULL;
}

int main(int argc, char **argv) {
  cgc_error *error = NULL;
  cgc_session_options options = CGC_INIT(cgc_session_options);
  cgc_session_stats stats = CGC_INIT(cgc_session_stats);
  pthread_t threads[MAX_THREADS];
  const int count = argc > 3 ? atoi(argv[3]) : 4;
  if (argc < 3 || count < 1 || count > MAX_THREADS)
    return fprintf(stderr, "usage: serve_c PLAN ENTRY [THREADS [SECONDS]]\n"), 2;
  options.contexts = 2;
  if (cgc_plan_load(argv[1], &plan, &error) || cgc_session_create(plan, &options, &session, &error))
    return fprintf(stderr, "serve_c: %s\n", cgc_error_message(error)), 1;
  while (entry < cgc_plan_entry_count(plan) && strcmp(cgc_plan_entry_name(plan, entry), argv[2]) != 0)
    ++entry;
  if (entry == cgc_plan_entry_count(plan))
    return fprintf(stderr, "serve_c: the plan has no entry '%s'\n", argv[2]), 2;
  end = time(NULL) + (argc > 4 ? atoi(argv[4]) : 5);
  for (int i = 0; i < count; ++i)
    pthread_create(&threads[i], NULL, serve, (void *)(uintptr_t)(i + 1));
  for (int i = 0; i < count; ++i)
    pthread_join(threads[i], NULL);
  cgc_session_get_stats(session, &stats, NULL);
  printf("%llu requests, %llu rows, %llu failures\n", (unsigned long long)stats.requests,
         (unsigned long long)stats.rows, (unsigned long long)stats.failures);
  cgc_session_destroy(session);
  cgc_plan_destroy(plan);
  return stats.failures ? 1 : 0;
}
