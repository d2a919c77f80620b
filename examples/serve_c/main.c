/* serve_c PLAN ENTRY [THREADS [SECONDS]]: serves random batches of a tower from several threads. */
#include <cgc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_BATCH = 200, MAX_RANK = 16, MAX_THREADS = 64 };
static cgc_session *session;
static cgc_tensor_info input = CGC_INIT(cgc_tensor_info), output = CGC_INIT(cgc_tensor_info);
static time_t end;

static cgc_tensor make_rows(const cgc_tensor_info *info, int64_t *sizes) {
  size_t bytes = cgc_dtype_size(info->dtype);
  for (int32_t d = 0; d < info->rank; ++d)
    bytes *= (size_t)(sizes[d] = d == 0 ? MAX_BATCH : info->sizes[d]);
  return (cgc_tensor){calloc(1, bytes), sizes, info->rank, info->dtype, CGC_HOST};
}

static void *serve(void *entry) {
  int64_t in_sizes[MAX_RANK], out_sizes[MAX_RANK];
  cgc_tensor in = make_rows(&input, in_sizes), out = make_rows(&output, out_sizes);
  unsigned seed = (unsigned)(size_t)in.data; /* Another one in each thread. */
  for (cgc_error *error = NULL; time(NULL) < end; cgc_error_destroy(error), error = NULL) {
    in_sizes[0] = out_sizes[0] = 1 + rand_r(&seed) % MAX_BATCH;
    if (cgc_session_run(session, entry, &in, 1, &out, 1, NULL, &error))
      fprintf(stderr, "serve_c: %s\n", cgc_error_message(error));
  }
  return free(in.data), free(out.data), NULL;
}

int main(int argc, char **argv) {
  cgc_error *error = NULL;
  cgc_plan *plan = NULL;
  cgc_session_options options = {.struct_size = sizeof options, .contexts = 2};
  cgc_session_stats stats = CGC_INIT(cgc_session_stats);
  pthread_t threads[MAX_THREADS];
  const int count = argc > 3 ? atoi(argv[3]) : 4;
  size_t index = 0;
  if (argc < 3 || count < 1 || count > MAX_THREADS)
    return fprintf(stderr, "usage: serve_c PLAN ENTRY [THREADS [SECONDS]]\n"), 2;
  if (cgc_plan_load(argv[1], &plan, &error) || cgc_session_create(plan, &options, &session, &error))
    return fprintf(stderr, "serve_c: %s\n", cgc_error_message(error)), 1;
  while (index < cgc_plan_entry_count(plan) && strcmp(cgc_plan_entry_name(plan, index), argv[2]))
    ++index;
  if (cgc_plan_tensor_count(plan, index, CGC_INPUT) != 1 ||
      cgc_plan_tensor_count(plan, index, CGC_OUTPUT) != 1 ||
      cgc_plan_tensor(plan, index, 0, CGC_INPUT, 0, &input, NULL) ||
      cgc_plan_tensor(plan, index, 0, CGC_OUTPUT, 0, &output, NULL) || input.batch_dim != 0 ||
      output.batch_dim != 0 || !cgc_plan_takes_any_batch(plan, index))
    return fprintf(stderr,
                   "serve_c: the plan has no tower '%s', an entry with one input and one output "
                   "that takes any batch\n",
                   argv[2]),
           2;
  end = time(NULL) + (argc > 4 ? atoi(argv[4]) : 5);
  for (int i = 0; i < count; ++i)
    pthread_create(&threads[i], NULL, serve, argv[2]);
  for (int i = 0; i < count; ++i)
    pthread_join(threads[i], NULL);
  cgc_session_get_stats(session, &stats, NULL);
  printf("%u requests, %u failures\n", (unsigned)stats.requests, (unsigned)stats.failures);
  cgc_session_destroy(session);
  cgc_plan_destroy(plan);
  return stats.failures != 0;
}
