// Test models: TorchScript files for tests, exported once for each build folder and kept there.
#pragma once

#include <string>

namespace cgc::test {

/// Returns the path of a file that small_models.py writes, for example "called_twice".
std::string smallModel(const std::string &name);

/// Returns the path of a file that core_ops.py writes: "core_ops.pt" or "core_ops.txt".
std::string coreOps(const std::string &name);

/// Returns the path of a file that training_models.py writes, for example "train_mlp".
std::string trainingModel(const std::string &name);

/// Returns the path of a tiny OpenCLIP model. `config` is a name in tests/data ("tiny"),
/// `precision` fp32, fp16 or bf16.
std::string openclipModel(const std::string &config, const std::string &precision);

/// Returns the folder in which generated_modules.py has written `count` modules of `seed`.
std::string generatedModules(int count, int seed);

} // namespace cgc::test
