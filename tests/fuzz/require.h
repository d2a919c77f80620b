// CGC_REQUIRE: an assertion of a fuzz target, active in every build type. A failure aborts the run.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#define CGC_REQUIRE(condition, message)                                                            \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      std::fprintf(stderr, "%s:%d: %s\n%s\n", __FILE__, __LINE__, #condition,                      \
                   std::string(message).c_str());                                                  \
      std::abort();                                                                                \
    }                                                                                              \
  } while (false)
