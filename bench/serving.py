#!/usr/bin/env python3
"""Requests per second and latency of Triton and of Ray Serve beside a bare session, on one model folder for cpu.

    serving.py FOLDER --part session
    serving.py FOLDER --part triton    # CGC_TRITON_SERVER and CGC_TRITON_BACKEND as for tests/python/test_triton.py
    serving.py FOLDER --part ray       # In a Python with Ray; CGC_LIBTORCH as in docs/deployment.md

A request is one picture. Session and Triton get its pixels as float32 and return the vector; session-jpeg, which is
Model.encode_image, and Ray Serve get a JPEG file of 500 x 375 pixels. Prints a line for each number of clients.
"""
import argparse
import contextlib
import io
import os
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import cgc
import numpy
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]


def jpeg():
    random = numpy.random.default_rng(0)
    coarse = Image.fromarray(random.integers(0, 256, (24, 32, 3), dtype=numpy.uint8)).resize((500, 375), Image.Resampling.BICUBIC)
    file = io.BytesIO()
    Image.fromarray((numpy.asarray(coarse) + random.normal(0, 12, (375, 500, 3))).clip(0, 255).astype(numpy.uint8)).save(file, "JPEG", quality=90)
    return file.getvalue()


def measure(name, clients, seconds, connect):
    """connect() gives each client a function that sends a request."""
    times, failures, begin = [], [], time.perf_counter()

    def work():
        try:
            call = connect()
            while time.perf_counter() < begin + seconds:
                start = time.perf_counter()
                call()
                times.append(time.perf_counter() - start)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    p50, p99 = 1e3 * numpy.quantile(times, (.5, .99))
    print(f"{name}, {clients} clients: {len(times) / (time.perf_counter() - begin):.1f} requests/s, p50 {p50:.1f} ms, p99 {p99:.1f} ms", flush=True)


@contextlib.contextmanager
def session(folder):
    with cgc.load(folder) as model:
        picture = jpeg()
        pixels = model.preprocess([picture]).pixels
        yield {"session": lambda: lambda: model.session.run("encode_image", pixels),
               "session-jpeg": lambda: lambda: model.encode_image([picture])}


@contextlib.contextmanager
def triton(folder):
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    from test_triton import Connection, Server
    with cgc.load(folder) as model:
        pixels = model.preprocess([jpeg()]).pixels
    with tempfile.TemporaryDirectory() as name:
        server = Server(Path(name))
        server.add("encode_image", folder / "model.cgplan", entry="encode_image", config="instance_group { kind: KIND_CPU count: 1 }")

        def connect():
            connection = Connection(server.port)
            return lambda: connection.run("encode_image", {"image": pixels})

        try:
            yield {"triton": connect}
        finally:
            server.stop()


@contextlib.contextmanager
def serve(folder):
    os.environ.setdefault("RAY_SERVE_ENABLE_HA_PROXY", "1")
    os.environ.setdefault("RAY_SERVE_THROUGHPUT_OPTIMIZED", "1")
    import http.client

    import cgc.ray
    import ray
    from ray import serve
    picture = jpeg()
    ray.init(num_cpus=4, include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False, logging_level="ERROR",
             runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}})
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": 8129})
        serve.run(cgc.ray.deployment(str(folder), ray_actor_options={"num_cpus": 1}))

        def connect():
            connection = http.client.HTTPConnection("127.0.0.1", 8129, timeout=60)

            def call():
                connection.request("POST", "/image", picture, {"Accept": "application/octet-stream"})
                response = connection.getresponse()
                body = response.read()
                assert response.status == 200, body
            return call

        yield {"ray serve, jpeg": connect}
    finally:
        serve.shutdown()
        ray.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what cgc export --target cpu wrote")
    parser.add_argument("--part", required=True, choices=("session", "triton", "ray"))
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    folder = args.folder.resolve()
    with {"session": session, "triton": triton, "ray": serve}[args.part](folder) as parts:
        for name, connect in parts.items():
            connect()()
            for clients in args.clients:
                measure(name, clients, args.seconds, connect)


if __name__ == "__main__":
    main()
