// Machine: the driver, GPUs and libraries that cgc finds, and what of them a plan needs.
#pragma once

#include "runtime/plan/plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cgc::tool {

struct GpuFacts {
  int index = 0;
  std::string name; ///< "NVIDIA H200"
  int major = 0, minor = 0, multiprocessors = 0;
  uint64_t totalBytes = 0;
  std::optional<uint64_t> freeBytes; ///< None if the GPU cannot be used.
};

/// A library that cgc opens at run time.
struct LibraryFacts {
  std::string name;
  std::string path;    ///< Empty if it cannot be opened.
  std::string problem; ///< Why it cannot be opened, and the next step.
};

struct Machine {
  int driver = 0; ///< The CUDA version of the driver, as 13000; 0 without a driver.
  std::vector<GpuFacts> gpus;
  std::vector<LibraryFacts> libraries;
};

/// Looks at the machine. Opens the libraries, LibTorch among them, and creates a CUDA context on
/// each GPU to learn its free memory. Without a driver there are no GPUs.
Machine lookAtMachine();

/// Something that a plan needs.
struct Need {
  std::string what;    ///< "a GPU with sm_90a"
  std::string problem; ///< Empty if it is there, else what is wrong and the next step.
};

/// What `plan` needs to run here: a GPU, libraries, and memory for one context. `opLibraries` are
/// the files of op libraries that the user has.
std::vector<Need> needsOf(const PlanData &plan, const std::vector<std::string> &opLibraries);

/// The text of a CUDA version: "13.0".
std::string cudaVersionText(int version);

} // namespace cgc::tool
