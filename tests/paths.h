// Paths: the folders of the repository and of the build, for tests. Functions, not definitions on
// the command lines of all tests: a compiler cache then serves the clones of one machine alike.
#pragma once

#include <filesystem>

namespace cgc::test {

/// The root of the repository.
std::filesystem::path sourceDir();
/// The build tree of this test program, with bin/ and lib/.
std::filesystem::path buildDir();
/// LibTorch: the folder with include/ and lib/.
std::filesystem::path torchDir();

} // namespace cgc::test
