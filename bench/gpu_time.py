"""The time of work that is enqueued on torch's current stream."""
import statistics
import time

import torch


def milliseconds(run, samples):
    """The median over `samples` samples of the time of one call of `run`, back-to-back for some 20 ms in each."""
    for _ in range(5):
        run()
    torch.cuda.synchronize()
    began = time.perf_counter()
    run()
    torch.cuda.synchronize()
    repeats = max(1, int(0.02 / (time.perf_counter() - began)))
    times = []
    for _ in range(samples):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(repeats):
            run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / repeats)
    return statistics.median(times)
