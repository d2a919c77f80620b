// DefaultFloat32Precision: LibTorch's process-wide settings of f32 GEMMs, for tests that change
// them.
#pragma once

#include <ATen/Context.h>

namespace cgc::test {

/// Gives the settings of f32 GEMMs on CUDA, and those they inherit from, the values with which a
/// process starts, now and at the end of its life, also after a failed assertion. A test that
/// depends on inheritance needs the first, since a comparison with LibTorch in the same process
/// sets the GEMMs' own value.
class DefaultFloat32Precision {
public:
  DefaultFloat32Precision() { reset(); }
  ~DefaultFloat32Precision() { reset(); }
  DefaultFloat32Precision(const DefaultFloat32Precision &) = delete;
  DefaultFloat32Precision &operator=(const DefaultFloat32Precision &) = delete;

private:
  static void reset() {
    using at::Float32Backend, at::Float32Op, at::Float32Precision;
    at::Context &host = at::globalContext();
    host.setAllowTF32CuBLAS(false);
    host.setFloat32Precision(Float32Backend::CUDA, Float32Op::MATMUL, Float32Precision::NONE);
    host.setFloat32Precision(Float32Backend::CUDA, Float32Op::ALL, Float32Precision::NONE);
    host.setFloat32Precision(Float32Backend::GENERIC, Float32Op::ALL, Float32Precision::NONE);
  }
};

} // namespace cgc::test
