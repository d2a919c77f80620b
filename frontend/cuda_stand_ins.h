// CUDA stubs: declarations of the ops and classes that LibTorch's CUDA library registers, so that a
// model with streams can be read without that library and each use refused with its line. The stubs
// are never run.
#pragma once

namespace cgc::frontend {

/// Declares the device ops. Harmless if the CUDA library is loaded before or later.
void registerCudaOpStubs();

/// Declares the stream and event classes, and the ops that take them. Only for a process that does
/// not load the CUDA library later, which would find its classes already registered.
void registerCudaClassStubs();

} // namespace cgc::frontend
