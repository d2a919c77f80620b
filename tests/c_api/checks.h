/* Checks of the programs in this folder, which print the line that failed and exit with 1. */
#pragma once

#include "runtime/cgc.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                              \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)
#define SUCCEEDS(call)                                                                             \
  do {                                                                                             \
    cgc_error *error = NULL;                                                                       \
    if ((call) != CGC_OK) {                                                                        \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cgc_error_message(error));                \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)
