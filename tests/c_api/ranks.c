/* Trains from C99 by two ranks, which are processes: ranks PLAN OTHER NCCL FOLDER. PLAN and OTHER
 * are steps of examples/training/mlp.py for --data-parallel, which the reference executor runs;
 * NCCL is the stand-in. Exits with 1 and prints the line that failed. */
#define _POSIX_C_SOURCE 200809L
#include "tests/c_api/checks.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The call fails with `code` and a message that begins with `begin` and contains `text`. */
#define FAILS(call, code, begin, text)                                                             \
  do {                                                                                             \
    cgc_error *error = NULL;                                                                       \
    CHECK((call) == (code));                                                                       \
    if (strncmp(cgc_error_message(error), begin, strlen(begin)) != 0 ||                            \
        !strstr(cgc_error_message(error), text)) {                                                 \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cgc_error_message(error));                \
      exit(1);                                                                                     \
    }                                                                                              \
    cgc_error_destroy(error);                                                                      \
  } while (0)

enum { kBatch = 16, kFeatures = 32, kClasses = 10 };

static float x[kBatch][kFeatures], weight[64][kFeatures];
static int64_t y[kBatch];
static const int64_t x_sizes[2] = {kBatch, kFeatures}, y_sizes[1] = {kBatch};
static const int64_t weight_sizes[2] = {64, kFeatures};
static const cgc_tensor inputs[2] = {{x, x_sizes, 2, CGC_F32, CGC_HOST},
                                     {y, y_sizes, 1, CGC_I64, CGC_HOST}};
static const cgc_tensor weights = {weight, weight_sizes, 2, CGC_F32, CGC_HOST};

static cgc_communicator *join(const cgc_communicator_id *id, int rank, const char *nccl) {
  cgc_communicator *communicator = NULL;
  cgc_communicator_options options = CGC_INIT(cgc_communicator_options);
  options.rank = rank;
  options.ranks = 2;
  options.device = -1;
  options.nccl_path = nccl;
  options.timeout_ms = 20000;
  SUCCEEDS(cgc_communicator_create(id, &options, &communicator, &error));
  CHECK(cgc_communicator_rank(communicator) == rank && cgc_communicator_ranks(communicator) == 2);
  return communicator;
}

/* Makes four steps on batches of this rank, and sends the last loss and a weight to `results`. */
static void train(const char *path, const cgc_communicator_id *id, int rank, const char *nccl,
                  const char *folder, FILE *results) {
  const char *const name = rank == 0 ? "rank 0: " : "rank 1: ";
  cgc_communicator *communicator = join(id, rank, nccl);
  cgc_trainer *trainer = NULL;
  cgc_trainer_options options = CGC_INIT(cgc_trainer_options);
  cgc_step_result last[4];
  cgc_plan *plan = NULL;
  size_t count = 0;
  for (int i = 0; i < kBatch; ++i) {
    y[i] = (i + rank) % kClasses;
    for (int k = 0; k < kFeatures; ++k)
      x[i][k] = (float)((i * 7 + k * k * 3 + rank * 5) % 11) / 11 - 0.5f;
  }
  options.executor = CGC_REFERENCE;
  options.communicator = communicator;
  SUCCEEDS(cgc_plan_load(path, &plan, &error));
  SUCCEEDS(cgc_trainer_create(plan, &options, &trainer, &error));
  for (int i = 0; i < 4; ++i)
    SUCCEEDS(cgc_trainer_step(trainer, inputs, 2, NULL, &error));
  SUCCEEDS(cgc_trainer_poll(trainer, last, 4, &count, &error));
  CHECK(count == 4);
  SUCCEEDS(cgc_trainer_read(trainer, "layers.0.weight", &weights, &error));
  CHECK(fwrite(&last[3].loss, sizeof(double), 1, results) == 1);
  CHECK(fwrite(weight, sizeof weight, 1, results) == 1);
  SUCCEEDS(cgc_trainer_save(trainer, rank == 0 ? folder : "never", &error));
  CHECK(access("never", F_OK) != 0);
  cgc_communicator_abort(communicator, "the test ends");
  FAILS(cgc_trainer_step(trainer, inputs, 2, NULL, &error), CGC_FAILED, name, "the test ends");
  cgc_communicator_destroy(communicator); /* The trainer keeps it. */
  cgc_trainer_destroy(trainer);
  cgc_plan_destroy(plan);
}

/* All ranks refuse a plan that is not that of the others. */
static void differ(const char *path, const cgc_communicator_id *id, int rank, const char *nccl) {
  cgc_trainer *trainer = NULL;
  cgc_trainer_options options = CGC_INIT(cgc_trainer_options);
  cgc_plan *plan = NULL;
  cgc_communicator *communicator = join(id, rank, nccl);
  options.executor = CGC_REFERENCE;
  options.communicator = communicator;
  SUCCEEDS(cgc_plan_load(path, &plan, &error));
  FAILS(cgc_trainer_create(plan, &options, &trainer, &error), CGC_USAGE,
        rank == 0 ? "rank 0: the ranks differ in the plan: " : "rank 1: the ranks differ in ",
        "rank 1 has 'a plan of the structure ");
  cgc_communicator_destroy(communicator);
  cgc_plan_destroy(plan);
}

static void refuse(const cgc_communicator_id *id, const char *nccl) {
  cgc_communicator_id other;
  cgc_communicator *none = NULL;
  cgc_communicator_options options = CGC_INIT(cgc_communicator_options);
  FAILS(cgc_communicator_make_id(nccl, NULL, &error), CGC_USAGE, "id is null", "");
  FAILS(cgc_communicator_make_id("missing", &other, &error), CGC_DEVICE, "several ranks need NCCL",
        "missing");
  FAILS(cgc_communicator_create(NULL, &options, &none, &error), CGC_USAGE, "id is null", "");
  FAILS(cgc_communicator_create(id, &options, NULL, &error), CGC_USAGE, "communicator is null", "");
  options.nccl_path = nccl;
  options.device = -1;
  options.rank = 1;
  FAILS(cgc_communicator_create(id, &options, &none, &error), CGC_USAGE, "rank 1 is not one of the",
        " 1 ranks");
  options.struct_size = 4;
  FAILS(cgc_communicator_create(id, &options, &none, &error), CGC_USAGE, "struct_size", "");
  CHECK(cgc_communicator_rank(NULL) == -1 && cgc_communicator_ranks(NULL) == 0);
  cgc_communicator_abort(NULL, "nothing");
  cgc_communicator_destroy(NULL);
}

int main(int argc, char **argv) {
  static struct {
    double loss;
    float weight[64][kFeatures];
  } of[2];
  cgc_communicator_id ids[2];
  int ends[2], status = 0;
  FILE *results = NULL;
  pid_t child = 0;
  CHECK(argc == 5);
  for (int i = 0; i < 2; ++i)
    SUCCEEDS(cgc_communicator_make_id(argv[3], &ids[i], &error));
  CHECK(pipe(ends) == 0);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    close(ends[0]);
    results = fdopen(ends[1], "wb");
    train(argv[1], &ids[0], 1, argv[3], argv[4], results);
    fclose(results);
    differ(argv[2], &ids[1], 1, argv[3]);
    return 0;
  }
  close(ends[1]);
  results = tmpfile();
  train(argv[1], &ids[0], 0, argv[3], argv[4], results);
  rewind(results);
  CHECK(fread(&of[0], sizeof of[0], 1, results) == 1);
  fclose(results);
  results = fdopen(ends[0], "rb");
  CHECK(fread(&of[1], sizeof of[1], 1, results) == 1);
  fclose(results);
  CHECK(memcmp(&of[0], &of[1], sizeof of[0]) == 0); /* The mean loss, and equal parameters. */
  differ(argv[1], &ids[1], 0, argv[3]);
  refuse(&ids[1], argv[3]);
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  return 0;
}
