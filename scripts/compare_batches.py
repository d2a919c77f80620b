#!/usr/bin/env python3
"""Serves every batch of a range from several threads and compares each row with LibTorch:

    compare_batches.py PLAN MODEL.pt --entry encode_image --batches 1-200 --threads 2

Needs the packages cgc and torch. Prints the largest relative error (L2) of a row. Exit code: 0 if it is at most
--tolerance and no call failed, 1 otherwise, 2 usage.
"""
import argparse
import queue
import sys
import threading

import cgc
import numpy
import torch

VOCABULARY = 49408  # Of CLIP's tokenizer.


def parse_range(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def random_rows(tensor, rows):
    """Random values for an input whose first dimension is the batch."""
    random = numpy.random.default_rng(1)
    shape = (rows, *tensor.shape[1:])
    if numpy.issubdtype(numpy.dtype(tensor.dtype), numpy.integer):
        return random.integers(1, VOCABULARY, shape, tensor.dtype)
    return random.standard_normal(shape, numpy.float32).astype(tensor.dtype)


def reference(model, entry, rows, device):
    """The entry's output for all rows, in chunks that need little memory."""
    module = torch.jit.load(model, map_location=device).eval()
    with torch.inference_mode():
        chunks = [getattr(module, entry)(chunk.to(device)).cpu() for chunk in torch.from_numpy(rows).split(32)]
    return torch.cat(chunks).float().numpy()


def serve(session, entry, rows, expected, batches, errors, failures):
    """Takes batches from a queue until it is empty."""
    while True:
        try:
            batch = batches.get_nowait()
        except queue.Empty:
            return
        begin = (batch * 7) % (len(rows) - batch + 1)  # Not always the first rows.
        want = expected[begin:begin + batch]
        try:
            got = session.run(entry, rows[begin:begin + batch]).astype(numpy.float32)
        except cgc.Error as error:
            failures.append(f"batch {batch}: {error}")
            continue
        norms = numpy.linalg.norm(got - want, axis=-1) / numpy.linalg.norm(want, axis=-1)
        errors.append((float(norms.max()), batch))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan")
    parser.add_argument("model")
    parser.add_argument("--entry", default="encode_image")
    parser.add_argument("--batches", type=parse_range, default=range(1, 201))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--contexts", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="LibTorch's device [%(default)s]")
    parser.add_argument("--tolerance", type=float, default=1e-5)
    arguments = parser.parse_args()
    with cgc.load(arguments.plan, contexts=arguments.contexts) as session:
        (tensor,) = session.entries[arguments.entry].inputs
        rows = random_rows(tensor, max(arguments.batches) + 3)
        expected = reference(arguments.model, arguments.entry, rows, arguments.device)
        batches, errors, failures = queue.SimpleQueue(), [], []
        for batch in arguments.batches:
            batches.put(batch)
        threads = [threading.Thread(target=serve, args=(session, arguments.entry, rows, expected, batches, errors,
                                                        failures)) for _ in range(arguments.threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(session.stats())
    for failure in failures:
        print(failure, file=sys.stderr)
    worst, batch = max(errors, default=(0.0, 0))
    print(f"{len(errors)} batches, {len(failures)} failures, largest relative error {worst:.3g} (batch {batch})")
    return 0 if not failures and len(errors) == len(arguments.batches) and worst <= arguments.tolerance else 1


if __name__ == "__main__":
    sys.exit(main())
