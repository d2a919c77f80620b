// Where the tests' libraries of ops and plug-ins lie: in ../lib beside the test's program.
#pragma once

#include <filesystem>
#include <string>

namespace cgc::test {

inline std::string builtLibrary(const std::string &name) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  return (program.parent_path().parent_path() / "lib" / name).string();
}

/// The op library of examples/plugin, built with the tests.
inline std::string exampleOps() {
  return builtLibrary("libcgc_test_ops.so");
}

} // namespace cgc::test
