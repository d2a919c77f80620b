/* Trains from C99 with every function of a trainer, on the host: train PLAN FOLDER [reference].
 * PLAN is the step of examples/training/mlp.py with AdamW; one with target cuda needs the reference
 * executor. Exits with 1 and prints the line that failed. */
#include "tests/c_api/checks.h"

#include <string.h>

/* The call fails with `code` and a message that contains `text`. */
#define FAILS(call, code, text)                                                                    \
  do {                                                                                             \
    cgc_error *error = NULL;                                                                       \
    CHECK((call) == (code));                                                                       \
    if (!strstr(cgc_error_message(error), text))                                                   \
      fprintf(stderr, "%s\n", cgc_error_message(error));                                           \
    CHECK(strstr(cgc_error_message(error), text) != NULL);                                         \
    cgc_error_destroy(error);                                                                      \
  } while (0)

enum { kBatch = 16, kFeatures = 32, kClasses = 10 };

static float x[kBatch][kFeatures];
static int64_t y[kBatch];
static const int64_t x_sizes[2] = {kBatch, kFeatures}, y_sizes[1] = {kBatch};
static const int64_t weight_sizes[2] = {64, kFeatures};
static const cgc_tensor inputs[2] = {{x, x_sizes, 2, CGC_F32, CGC_HOST},
                                     {y, y_sizes, 1, CGC_I64, CGC_HOST}};

/* Makes 20 steps; `*first` and `*last` receive the losses of the first and the last one. */
static int train(cgc_trainer *trainer, double *first, double *last) {
  cgc_step_result results[16];
  size_t count = 0;
  for (int i = 0; i < 20; ++i)
    SUCCEEDS(cgc_trainer_step(trainer, inputs, 2, NULL, &error));
  SUCCEEDS(cgc_trainer_wait(trainer, &error));
  /* Results for which there is no room wait for the next call. */
  SUCCEEDS(cgc_trainer_poll(trainer, results, 16, &count, &error));
  CHECK(count == 16 && results[15].step == results[0].step + 15);
  *first = results[0].loss;
  SUCCEEDS(cgc_trainer_poll(trainer, results, 16, &count, &error));
  CHECK(count == 4);
  *last = results[3].loss;
  SUCCEEDS(cgc_trainer_poll(trainer, NULL, 0, &count, &error));
  CHECK(count == 0);
  return 0;
}

/* Makes two steps and polls the result of the first one only. */
static int leaveResult(cgc_trainer *trainer) {
  cgc_step_result result;
  size_t count = 0;
  for (int i = 0; i < 2; ++i)
    SUCCEEDS(cgc_trainer_step(trainer, inputs, 2, NULL, &error));
  SUCCEEDS(cgc_trainer_wait(trainer, &error));
  SUCCEEDS(cgc_trainer_poll(trainer, &result, 1, &count, &error));
  CHECK(count == 1);
  return 0;
}

/* The plan lists the states that the trainer reads by name. */
static int checkStates(const cgc_plan *plan) {
  size_t parameters = 0, found = 0;
  cgc_state_info info = CGC_INIT(cgc_state_info);
  for (size_t i = 0; i < cgc_plan_state_count(plan); ++i) {
    SUCCEEDS(cgc_plan_state(plan, i, &info, &error));
    parameters += strcmp(info.role, "parameter") == 0;
    if (strcmp(info.name, "layers.0.weight") == 0) {
      CHECK(strcmp(info.role, "parameter") == 0 && info.dtype == CGC_F32 && info.rank == 2);
      CHECK(info.sizes[0] == weight_sizes[0] && info.sizes[1] == weight_sizes[1]);
      ++found;
    }
    if (strcmp(info.name, "optimizer:step") == 0) {
      CHECK(strcmp(info.role, "control") == 0 && info.dtype == CGC_I64 && info.rank == 0);
      ++found;
    }
  }
  CHECK(parameters == 6 && found == 2); /* Three linear layers. */
  CHECK(cgc_plan_state_count(NULL) == 0);
  FAILS(cgc_plan_state(NULL, 0, &info, &error), CGC_USAGE, "plan is null");
  FAILS(cgc_plan_state(plan, 1000, &info, &error), CGC_USAGE, "no state of index 1000");
  return 0;
}

static int hasNoResult(cgc_trainer *trainer) {
  cgc_step_result result;
  size_t count = 1;
  SUCCEEDS(cgc_trainer_poll(trainer, &result, 1, &count, &error));
  CHECK(count == 0);
  return 0;
}

static int check(cgc_trainer *trainer, const char *folder) {
  static float weight[64][kFeatures], other[64][kFeatures], initial[64][kFeatures];
  static float loss;
  char model[4096];
  int64_t count = -1;
  double steps = 5, lr = 0.01, first = 0, last = 0, again = 0;
  const cgc_tensor weights = {weight, weight_sizes, 2, CGC_F32, CGC_HOST};
  const cgc_tensor others = {other, weight_sizes, 2, CGC_F32, CGC_HOST};
  const cgc_tensor initials = {initial, weight_sizes, 2, CGC_F32, CGC_HOST};
  const cgc_tensor output = {&loss, NULL, 0, CGC_F32, CGC_HOST};
  const cgc_tensor number = {&count, NULL, 0, CGC_I64, CGC_HOST};
  cgc_memory_report memory = CGC_INIT(cgc_memory_report);

  SUCCEEDS(cgc_trainer_set(trainer, "step", &steps, 1, &error));
  SUCCEEDS(cgc_trainer_read(trainer, "optimizer:step", &number, &error));
  CHECK(count == 5);
  SUCCEEDS(cgc_trainer_reset(trainer, &error));
  SUCCEEDS(cgc_trainer_set(trainer, "lr", &lr, 1, &error));
  FAILS(cgc_trainer_set(trainer, "rate", &lr, 1, &error), CGC_USAGE, "no control value 'rate'");
  FAILS(cgc_trainer_set(trainer, "lr", NULL, 1, &error), CGC_USAGE, "values is null");
  FAILS(cgc_trainer_step(trainer, inputs, 1, NULL, &error), CGC_USAGE, "input");
  FAILS(cgc_trainer_read(trainer, "layers.0.weight", NULL, &error), CGC_USAGE, "tensor is null");
  CHECK(cgc_trainer_step_number(trainer) == 0 && cgc_trainer_step_number(NULL) == 0);
  if (train(trainer, &first, &last))
    return 1;
  CHECK(last < first && cgc_trainer_step_number(trainer) == 20);
  CHECK(cgc_trainer_non_finite(trainer) == 0);
  SUCCEEDS(cgc_trainer_evaluate(trainer, inputs, 2, &output, 1, NULL, &error));
  CHECK((double)loss < first);

  SUCCEEDS(cgc_trainer_save(trainer, folder, &error));
  SUCCEEDS(cgc_trainer_read(trainer, "layers.0.weight", &weights, &error));
  if (train(trainer, &first, &last) || leaveResult(trainer))
    return 1;
  SUCCEEDS(cgc_trainer_load(trainer, folder, 0, &error));
  if (hasNoResult(trainer))
    return 1;
  CHECK(cgc_trainer_step_number(trainer) == 20);
  SUCCEEDS(cgc_trainer_read(trainer, "layers.0.weight", &others, &error));
  CHECK(memcmp(weight, other, sizeof weight) == 0);
  if (train(trainer, &first, &again))
    return 1;
  CHECK(again == last);

  if (leaveResult(trainer))
    return 1;
  SUCCEEDS(cgc_trainer_reset(trainer, &error));
  if (hasNoResult(trainer))
    return 1;
  /* A label of no class changes nothing, and the trainer goes on. */
  SUCCEEDS(cgc_trainer_read(trainer, "layers.0.weight", &initials, &error));
  for (int i = 0; i < 4; ++i) {
    static const int64_t labels[4] = {kClasses, 99, -7, 1000000000000};
    y[3] = labels[i];
    FAILS(cgc_trainer_step(trainer, inputs, 2, NULL, &error), CGC_USAGE, "input 'y': element 3 is");
    FAILS(cgc_trainer_accumulate(trainer, inputs, 2, NULL, &error), CGC_USAGE, "from 0 to 9");
    FAILS(cgc_trainer_evaluate(trainer, inputs, 2, &output, 1, NULL, &error), CGC_USAGE, "or -100");
  }
  CHECK(cgc_trainer_step_number(trainer) == 0 && cgc_trainer_micro_batches(trainer) == 0);
  SUCCEEDS(cgc_trainer_read(trainer, "optimizer:step", &number, &error));
  CHECK(count == 0);
  SUCCEEDS(cgc_trainer_read(trainer, "layers.0.weight", &others, &error));
  CHECK(memcmp(initial, other, sizeof initial) == 0);
  y[3] = -100; /* The loss ignores it. */
  SUCCEEDS(cgc_trainer_step(trainer, inputs, 2, NULL, &error));
  SUCCEEDS(cgc_trainer_wait(trainer, &error));
  y[3] = 3;

  SUCCEEDS(cgc_trainer_reset(trainer, &error));
  FAILS(cgc_trainer_update(trainer, NULL, &error), CGC_USAGE, "accumulate");
  for (int i = 0; i < 2; ++i)
    SUCCEEDS(cgc_trainer_accumulate(trainer, inputs, 2, NULL, &error));
  CHECK(cgc_trainer_micro_batches(trainer) == 2 && cgc_trainer_step_number(trainer) == 0);
  FAILS(cgc_trainer_step(trainer, inputs, 2, NULL, &error), CGC_USAGE, "update");
  SUCCEEDS(cgc_trainer_update(trainer, NULL, &error));
  CHECK(cgc_trainer_micro_batches(trainer) == 0 && cgc_trainer_step_number(trainer) == 1);

  SUCCEEDS(cgc_trainer_reset(trainer, &error));
  CHECK(cgc_trainer_step_number(trainer) == 0);
  SUCCEEDS(cgc_trainer_read(trainer, "layers.0.weight", &others, &error));
  CHECK(memcmp(weight, other, sizeof weight) != 0);
  snprintf(model, sizeof model, "%s/model.safetensors", folder);
  SUCCEEDS(cgc_trainer_load_model(trainer, model, &error));
  SUCCEEDS(cgc_trainer_read(trainer, "layers.0.weight", &others, &error));
  CHECK(memcmp(weight, other, sizeof weight) == 0);
  weight[0][0] = 7;
  SUCCEEDS(cgc_trainer_write(trainer, "layers.0.weight", &weights, &error));
  SUCCEEDS(cgc_trainer_read(trainer, "layers.0.weight", &others, &error));
  CHECK(other[0][0] == 7);
  FAILS(cgc_trainer_load(trainer, "missing", 0, &error), CGC_INVALID_FILE, "missing");
  SUCCEEDS(cgc_trainer_get_memory(trainer, &memory, &error));
  CHECK(memory.states > 0 && memory.peak >= memory.states);
  FAILS(cgc_trainer_get_memory(NULL, &memory, &error), CGC_USAGE, "trainer is null");
  return 0;
}

int main(int argc, char **argv) {
  cgc_plan *plan = NULL;
  cgc_trainer *trainer = NULL;
  cgc_trainer_options options = CGC_INIT(cgc_trainer_options);
  int failed = 0;
  CHECK(argc == 3 || (argc == 4 && strcmp(argv[3], "reference") == 0));
  for (int i = 0; i < kBatch; ++i) {
    y[i] = i % kClasses;
    for (int k = 0; k < kFeatures; ++k)
      x[i][k] = (float)((i * 7 + k * k * 3) % 11) / 11 - 0.5f;
  }
  SUCCEEDS(cgc_plan_load(argv[1], &plan, &error));
  if (checkStates(plan))
    return 1;
  FAILS(cgc_trainer_create(NULL, NULL, &trainer, &error), CGC_USAGE, "plan is null");
  options.steps_in_flight = 4096;
  FAILS(cgc_trainer_create(plan, &options, &trainer, &error), CGC_USAGE, "steps in flight");
  options.steps_in_flight = 0;
  options.executor = (cgc_executor)9;
  FAILS(cgc_trainer_create(plan, &options, &trainer, &error), CGC_USAGE, "no executor 9");
  options.executor = argc == 4 ? CGC_REFERENCE : CGC_GRAPH;
  SUCCEEDS(cgc_trainer_create(plan, &options, &trainer, &error));
  cgc_plan_destroy(plan); /* The trainer keeps it. */
  failed = check(trainer, argv[2]);
  cgc_trainer_destroy(trainer);
  cgc_trainer_destroy(NULL);
  return failed;
}
