// Stand-ins for what LibTorch's CUDA library registers: a model with streams can then be read
// without that library, and each use be refused by line. They are never run.
#pragma once

namespace cgc::frontend {

/// Declares the ops on devices. Harmless if the CUDA library is there or comes later.
void standInForCudaOps();

/// Declares the classes of streams and events, and the ops that take them. Only for a process that
/// does not open the CUDA library later: it would find its classes taken.
void standInForCudaClasses();

} // namespace cgc::frontend
