// Allocations that fail on demand, in a test program that includes failing_operator_new.h.
#pragma once

/// The number of allocations of this thread that still succeed; negative: all. Those inside of the
/// fake GPU do not count, because they are none of the runtime.
extern thread_local long allocationsLeft;
