"""libtriton_cgc.so in a tritonserver of this machine, which has no GPU: plans for cuda run by the reference executor.

CGC_TRITON_SECONDS is how long clients load the server [3].
"""
import concurrent.futures
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import venv
from pathlib import Path

import cgc
import numpy
import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore")
ROOT = Path(__file__).resolve().parents[2]
SECONDS = float(os.environ.get("CGC_TRITON_SECONDS", 3))
TYPES = {"float32": "FP32", "float16": "FP16", "int64": "INT64", "int32": "INT32"}
REFERENCE = {"executor": "reference"}


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


class Connection:
    """A client of the server."""

    def __init__(self, port):
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def close(self):
        self._http.close()

    def call(self, method, path, body=b"", headers={}):
        """The status, the headers and the body of the answer."""
        self._http.request(method, path, body, headers)
        response = self._http.getresponse()
        return response.status, response.headers, response.read()

    def json(self, method, path, value=None):
        status, _, body = self.call(method, path, json.dumps(value).encode() if value is not None else b"")
        return status, json.loads(body) if body else None

    def infer(self, model, inputs, outputs=(), types={}):
        """The outputs by name, or the status and the message of an error."""
        data, listed = [], []
        for name, array in inputs.items():
            if array.dtype == object:  # Strings: each behind its length.
                data.append(b"".join(len(text).to_bytes(4, "little") + text for text in array.reshape(-1)))
            else:
                data.append(numpy.ascontiguousarray(array).tobytes())
            listed.append({"name": name, "shape": array.shape, "parameters": {"binary_data_size": len(data[-1])},
                           "datatype": types.get(name) or ("BYTES" if array.dtype == object else TYPES[str(array.dtype)])})
        request = {"inputs": listed, "parameters": {"binary_data_output": True}}
        if outputs:
            request["outputs"] = [{"name": name, "parameters": {"binary_data": True}} for name in outputs]
            del request["parameters"]
        header = json.dumps(request).encode()
        status, headers, body = self.call("POST", f"/v2/models/{model}/infer", b"".join([header, *data]),
                                          {"Inference-Header-Content-Length": str(len(header))})
        if status != 200:
            return status, json.loads(body)["error"]
        begin = int(headers["Inference-Header-Content-Length"])
        results = {}
        for output in json.loads(body[:begin])["outputs"]:
            dtype = next(name for name, datatype in TYPES.items() if datatype == output["datatype"])
            end = begin + output["parameters"]["binary_data_size"]
            results[output["name"]] = numpy.frombuffer(body[begin:end], dtype).reshape(output["shape"])
            begin = end
        assert begin == len(body)
        return results

    def run(self, model, inputs, **more):
        result = self.infer(model, inputs, **more)
        assert isinstance(result, dict), result
        return result

    def statistics(self, model):
        (found,) = self.json("GET", f"/v2/models/{model}/stats")[1]["model_stats"]
        return found


class Server:
    """A tritonserver with an empty repository."""

    def __init__(self, folder):
        tritonserver = Path(os.environ["CGC_TRITON_SERVER"])
        self.folder, self.repository = folder, folder / "models"
        self.repository.mkdir()
        (folder / "backends").mkdir()
        (folder / "backends" / "cgc").symlink_to(os.environ["CGC_TRITON_BACKEND"])
        (folder / "backends" / "python").symlink_to(tritonserver / "backends" / "python")
        self.port, metrics = free_port(), free_port()
        self.metrics = Connection(metrics)
        # The Python backend takes the first python3 in PATH, without PYTHONPATH, and needs NumPy 1.
        venv.create(folder / "venv", symlinks=True)
        (site,) = (folder / "venv/lib").glob("python3*/site-packages")
        (site / "tests.pth").write_text("\n".join([str(tritonserver.parents[1]), *(path for path in sys.path if "site" in Path(path).name)]))
        environment = {**os.environ, "PATH": os.pathsep.join([str(folder / "venv/bin"), os.environ["PATH"]])}
        environment.setdefault("CGC_LIBTORCH", str(next(iter((ROOT / ".venv/lib").glob("python3*/site-packages/torch")))))
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [tritonserver / "bin" / "tritonserver", "--model-repository", self.repository, "--backend-directory", folder / "backends",
                 "--model-control-mode", "explicit", "--http-address", "127.0.0.1", "--http-port", str(self.port), "--allow-grpc", "false",
                 "--metrics-address", "127.0.0.1", "--metrics-port", str(metrics), "--allow-gpu-metrics", "false"],
                stdout=log, stderr=subprocess.STDOUT, env=environment)
        while not self.is_ready():
            assert self.process.poll() is None, self.log()
            time.sleep(.05)
        self.connection = Connection(self.port)

    def is_ready(self):
        try:
            return Connection(self.port).call("GET", "/v2/health/ready")[0] == 200
        except OSError:
            return False

    def log(self):
        return (self.folder / "log").read_text()

    def write(self, name, plan, /, version=1, file="model.cgplan", config="", **parameters):
        """Makes a model in the repository."""
        folder = self.repository / name / str(version)
        folder.mkdir(parents=True, exist_ok=True)
        if plan:
            shutil.copyfile(plan, folder / file)
        lines = [f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in parameters.items()]
        (self.repository / name / "config.pbtxt").write_text("\n".join(['backend: "cgc"', *lines, config]))
        return name

    def load(self, name):
        """The error, or None."""
        status, answer = self.connection.json("POST", f"/v2/repository/models/{name}/load", {})
        return None if status == 200 else answer["error"]

    def add(self, name, plan, /, **more):
        self.write(name, plan, **more)
        error = self.load(name)
        assert error is None, error
        return name

    def stop(self):
        """Its exit status. It waits for connections, up to 30 seconds."""
        self.connection.close()
        self.metrics.close()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("triton"))
    yield running
    if running.process.poll() is None:
        running.stop()


@pytest.fixture(scope="module")
def tiny_model(server, plans):
    """encode_image of tiny.cgplan, with two instances."""
    return server.add("tiny", plans / "tiny.cgplan", entry="encode_image", config="instance_group { kind: KIND_CPU count: 2 }", **REFERENCE)


def test_the_configuration_is_completed(server, plans, tiny_model):
    server.add("both", plans / "tiny.cgplan", entry="forward", **REFERENCE)
    config = server.connection.json("GET", f"/v2/models/{tiny_model}/config")[1]
    assert config["max_batch_size"] == 4 and config["dynamic_batching"]["preferred_batch_size"] == [1, 4]
    (image,), (features,) = config["input"], config["output"]
    assert (image["name"], image["data_type"], image["dims"]) == ("image", "TYPE_FP32", [16])
    assert (features["data_type"], features["dims"]) == ("TYPE_FP32", [8])
    config = server.connection.json("GET", "/v2/models/both/config")[1]  # Its rows depend on each other.
    assert config["max_batch_size"] == 0 and "dynamic_batching" not in config
    assert [(each["name"], each["dims"]) for each in config["input"]] == [("image", [-1, 16]), ("text", [-1, 5])]


def test_results_equal_those_of_a_session(server, plans, expected, tiny_model):
    with cgc.load(plans / "tiny.cgplan", executor="reference") as session:
        for rows in (1, 2, 3, 4):
            image = expected["image"][:rows]
            (output,) = server.connection.run(tiny_model, {"image": image}).values()
            assert numpy.array_equal(output, session.run("encode_image", image))
        server.add("both", plans / "tiny.cgplan", entry="forward", **REFERENCE)
        inputs = {name: expected[name][:4] for name in ("image", "text")}
        results = server.connection.run("both", inputs)
        wanted = session.run("forward", inputs)
        names = [info.name for info in session.entries["forward"].outputs]
        assert len(wanted) == 3 and all(numpy.array_equal(results[name], each) for name, each in zip(names, wanted))
        some = server.connection.run("both", inputs, outputs=[names[2]])
        assert list(some) == [names[2]] and numpy.array_equal(some[names[2]], wanted[2])


def test_a_configuration_says_more_than_the_plan(server, plans, expected):
    image = expected["image"][:11]
    server.add("larger", plans / "tiny.cgplan", entry="encode_image", config="max_batch_size: 16", **REFERENCE)
    server.add("whole", plans / "tiny.cgplan", entry="encode_image", config='input { name: "image" data_type: TYPE_FP32 dims: [ -1, 16 ] }',
               **REFERENCE)
    for model in ("larger", "whole"):
        (output,) = server.connection.run(model, {"image": image}).values()
        assert numpy.allclose(output, expected["image_features"][:11], atol=1e-5)
    config = server.connection.json("GET", "/v2/models/whole/config")[1]
    assert config["max_batch_size"] == 0 and config["output"][0]["dims"] == [-1, 8]


def test_numbers(server, tmp_path):
    """Triton has no tensors without dims: a number has the shape [1]."""
    class Totals(torch.nn.Module):
        def forward(self, x):
            return x.sum(-1)

        def scale(self, x, factor):
            return x.sum() * factor

    x = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    cgc.compile(Totals().eval(), {"x": torch.ones(3, 4), "factor": torch.tensor(2.0)}, entries=["forward", "scale"],
                output=tmp_path / "totals.cgplan", options=["--require-native"])
    server.add("total", tmp_path / "totals.cgplan", entry="forward", **REFERENCE)
    server.add("scale", tmp_path / "totals.cgplan", entry="scale", **REFERENCE)
    (output,) = server.connection.run("total", {"x": x[:2]}).values()
    assert numpy.array_equal(output, x[:2].sum(-1, keepdims=True))
    (output,) = server.connection.run("scale", {"x": x, "factor": numpy.array([2], numpy.float32)}).values()
    assert numpy.array_equal(output, [2 * x.sum()])


def test_a_plan_for_the_host(server, plans, expected):
    server.add("host", plans / "host.cgplan", file="other name.cgplan", entry="encode_text", plan="other name.cgplan")
    (output,) = server.connection.run("host", {"text": expected["text"][:3]}).values()
    assert numpy.allclose(output, expected["text_features"][:3], atol=1e-5)


def test_half_precision(server, plans, expected):
    server.add("half", plans / "half.cgplan", **REFERENCE)
    image = expected["image"][:2].astype(numpy.float16)
    (output,) = server.connection.run("half", {"image": image}).values()
    assert output.dtype == numpy.float16 and numpy.allclose(output, expected["image_features"][:2], atol=2e-2)


def check_clients(server, model, expected, clients, seconds, wanted=("image_features",)):
    """Loads a model from `clients` threads, which compare every answer. The number of requests."""
    end = time.monotonic() + seconds
    go = threading.Barrier(clients)

    def client(number):
        connection, random, count = Connection(server.port), numpy.random.default_rng(number), 0
        go.wait()
        while time.monotonic() < end:
            begin = random.integers(0, 36)
            rows = slice(begin, begin + random.integers(1, 5))
            (output,) = connection.run(model, {"image": expected["image"][rows]}).values()
            assert any(numpy.allclose(output, expected[name][rows], atol=1e-5) for name in wanted)
            count += 1
        return count

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        return sum(pool.map(client, range(clients)))


def test_many_clients_share_batches(server, expected, tiny_model):
    before = server.connection.statistics(tiny_model)
    requests = check_clients(server, tiny_model, expected, 32, SECONDS)
    after = server.connection.statistics(tiny_model)
    successes, executions, rows = (
        get(after) - get(before) for get in (lambda stats: stats["inference_stats"]["success"]["count"],
                                             lambda stats: stats["execution_count"], lambda stats: stats["inference_count"]))
    print(f"{requests} requests, {rows} rows, {executions} executions in {SECONDS} s")
    assert successes == requests and requests <= rows and executions < requests
    assert max(batch["batch_size"] for batch in after["batch_stats"]) == 4
    assert after["inference_stats"]["compute_infer"]["ns"] > 0 and after["inference_stats"]["fail"]["count"] == before["inference_stats"]["fail"]["count"]


def test_bad_requests(server, plans, expected, tiny_model):
    image = expected["image"]
    for inputs, types, wanted in (({"image": image[:1, :15]}, {}, r"'image'.*\[-1,16\].*\[1,15\]"),
                                  ({"image": image[:1, None]}, {}, r"'image'.*\[-1,16\].*\[1,1,16\]"),
                                  ({"image": image[0]}, {}, "'image'|batch"),
                                  ({"image": image[:1].view(numpy.int32)}, {}, "INT32.*FP32"),
                                  ({"image": image[:1, :8]}, {}, "image"),
                                  ({}, {}, "inputs"),
                                  ({"picture": image[:1]}, {}, "picture"),
                                  ({"image": image[:5]}, {}, "<= 4"),
                                  ({"image": image[:0]}, {}, "image|batch")):
        status, message = server.connection.infer(tiny_model, inputs, types=types)
        assert status == 400 and re.search(wanted, message), (status, message)
    status, message = server.connection.infer(tiny_model, {"image": image[:1]}, outputs=["nothing"])
    assert status == 400 and "nothing" in message
    # What the plan alone knows.
    server.add("both", plans / "tiny.cgplan", entry="forward", **REFERENCE)
    status, message = server.connection.infer("both", {"image": image[:3], "text": expected["text"][:3]})
    assert status == 400 and "input 'image' has shape [3, 16], but entry 'forward' takes [1, 16] or [4, 16]" in message
    status, message = server.connection.infer("both", {"image": image[:4], "text": expected["text"][:1]})
    assert status == 400 and "input 'text' has shape [1, 5]" in message
    assert isinstance(server.connection.infer(tiny_model, {"image": image[:1]}), dict)


def test_a_bad_index_fails_its_own_request(server, plans, expected):
    server.add("text", plans / "tiny.cgplan", entry="encode_text",
               config="max_batch_size: 4 dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 300000 }", **REFERENCE)
    before = server.connection.statistics("text")["execution_count"]
    texts = [expected["text"][number:number + 1].copy() for number in range(4)]
    texts[2][0, -1] = 50
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda text: Connection(server.port).infer("text", {"text": text}), texts))
    for number in (0, 1, 3):
        (output,) = answers[number].values()
        assert numpy.allclose(output, expected["text_features"][number:number + 1], atol=1e-5)
    assert answers[2][0] == 400 and re.search(r"\b50\b", answers[2][1]), answers[2]
    assert server.connection.statistics("text")["execution_count"] == before + 3  # All four together, and then each alone.


def test_models_that_cannot_be_loaded(server, plans):
    damaged = server.folder / "damaged"
    damaged.write_bytes((plans / "tiny.cgplan").read_bytes()[:5000])
    tiny, good = plans / "tiny.cgplan", {"entry": "encode_image", **REFERENCE}
    cases = ((None, {}, "", r"there is no plan \S+/bad\d+/1/model.cgplan: put the plan of cgc compile there"),
             (tiny, {"plan": "a.cgplan"}, "", r"there is no plan \S+/1/a.cgplan"),
             (tiny, REFERENCE, "", "several entries: set the parameter 'entry' of config.pbtxt to one of encode_image, encode_text, forward"),
             (tiny, {"entry": "encode"}, "", "no entry 'encode': set the parameter 'entry'"),
             (damaged, good, "", "model.cgplan"),
             (tiny, {"entry": "encode_image"}, "", "the plan is for GPUs, but instance 'bad5_0.*KIND_CPU.*'executor' to 'reference'"),
             (tiny, {"entry": "encode_image", "executor": "fast"}, "", "'executor' is 'fast': use 'graph' or 'reference'"),
             (tiny, {"entri": "encode_image"}, "", "unknown parameter 'entri'"),
             (tiny, {"entry": "forward", **REFERENCE}, "max_batch_size: 8", "entry 'forward' cannot be batched"),
             (tiny, good, 'max_batch_size: 4 input { name: "image" data_type: TYPE_FP16 dims: [ 16 ] }',
              r"input 'image' has TYPE_FP16 \[16\], but the plan has TYPE_FP32 \[16\]"),
             (tiny, good, 'max_batch_size: 4 input { name: "picture" data_type: TYPE_FP32 dims: [ 16 ] }', "input 'picture' is none of entry"))
    for number, (plan, parameters, config, wanted) in enumerate(cases):
        name = f"bad{number}"
        server.write(name, plan, config=config, **{key: value for key, value in parameters.items() if key != "plan"})
        if "plan" in parameters:
            (server.repository / name / "config.pbtxt").write_text('backend: "cgc" parameters { key: "plan" value { string_value: "a.cgplan" } }')
        error = server.load(name)
        assert error and re.search(wanted, error), (name, error)
        index = server.connection.json("POST", "/v2/repository/index")[1]
        (row,) = [row for row in index if row["name"] == name]
        assert row["state"] == "UNAVAILABLE" and re.search(wanted, row["reason"]), row


def test_another_version_and_other_weights_under_load(server, plans, expected):
    server.add("changing", plans / "tiny.cgplan", entry="encode_image", **REFERENCE)
    both = ("image_features", "other_image_features")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        load = pool.submit(check_clients, server, "changing", expected, 4, 2, both)
        for number in range(4):
            time.sleep(.3)
            plan = plans / ("other.cgplan" if number % 2 == 0 else "tiny.cgplan")
            if number < 2:  # Another file of the same version, written beside it and renamed.
                shutil.copyfile(plan, server.folder / "new")
                os.replace(server.folder / "new", server.repository / "changing" / "1" / "model.cgplan")
            else:
                server.write("changing", plan, version=number, entry="encode_image", **REFERENCE)
            assert server.load("changing") is None
        load.result()
    image = expected["image"][:3]
    (output,) = server.connection.run("changing", {"image": image}).values()
    assert numpy.allclose(output, expected["image_features"][:3], atol=1e-5)
    assert server.connection.json("POST", "/v2/repository/models/changing/unload", {})[0] == 200
    while server.connection.call("GET", "/v2/models/changing/ready")[0] == 200:
        time.sleep(.02)
    assert server.connection.infer("changing", {"image": image})[0] in (400, 404)


def test_more_instances_of_a_loaded_model(server, plans, expected):
    """Triton adds them to the model that serves, and loads no other, if config.pbtxt alone has changed."""
    plan = plans / "tiny.cgplan"
    for count in (1, 3, 2):
        server.add("growing", plan, entry="encode_image", config=f"instance_group {{ kind: KIND_CPU count: {count} }}", **REFERENCE)
        check_clients(server, "growing", expected, 4, .2)
        plan = None
    assert "unloaded 'growing'" not in server.log()


def test_metrics_and_log(server, tiny_model):
    server.connection.run(tiny_model, {"image": numpy.zeros((1, 16), numpy.float32)})
    status, _, text = server.metrics.call("GET", "/metrics")
    (count,) = re.findall(rf'nv_inference_request_success{{model="{tiny_model}",version="1"}} (\d+)', text.decode())
    assert status == 200 and int(count) == server.connection.statistics(tiny_model)["inference_stats"]["success"]["count"] > 0
    server.connection.infer("text", {"text": numpy.full((1, 5), 50)})  # Of the test above.
    assert "model 'text', version 1: a request failed" in server.log()


def test_an_ensemble_from_jpegs_to_vectors(server, plans):
    made = subprocess.run([sys.executable, ROOT / "examples/triton/make_repository.py", plans / "clip", server.repository, "--executor", "reference"],
                          capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert server.load("embed_image") is None
    with cgc.load(plans / "clip", executor="reference") as model:
        pictures = [(plans / "pictures" / f"{number}.jpg").read_bytes() for number in range(3)]
        wanted = model.encode_image(pictures, normalize=False)
    vectors = server.connection.run("embed_image", {"picture": numpy.array(pictures, object)[:, None]})["vector"]
    assert numpy.allclose(vectors, wanted, atol=1e-5)
    status, message = server.connection.infer("embed_image", {"picture": numpy.array([b"no picture"], object)[:, None]})
    assert status == 400 and "picture" in message, (status, message)


def test_an_older_server_is_refused(tmp_path):
    backend = Path(os.environ["CGC_TRITON_BACKEND"]) / "libtriton_cgc.so"
    symbols = subprocess.run(["nm", "-D", "--undefined-only", backend], check=True, capture_output=True, text=True).stdout
    own = {"TRITONBACKEND_ApiVersion": "(unsigned *major, unsigned *minor) { *major = 1; *minor = 18; return 0; }",
           "TRITONSERVER_ErrorNew": "(int code, const char *message) { return strdup(message); }"}
    functions = [f"void *{name}{own.get(name, '() { return 0; }')}" for name in re.findall(r"U (TRITON\w+)", symbols)]
    (tmp_path / "server.c").write_text("\n".join(["#include <string.h>", *functions]))
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "server.c", "-o", tmp_path / "server.so"], check=True)
    program = ("import ctypes, sys; ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL); initialize = ctypes.CDLL(sys.argv[2]).TRITONBACKEND_Initialize\n"
               "initialize.restype = ctypes.c_char_p; print(initialize(None).decode())")
    answer = subprocess.run([sys.executable, "-c", program, tmp_path / "server.so", backend], check=True, capture_output=True, text=True).stdout
    assert "libtriton_cgc.so needs version 1.19 of the backend API or a later one of 1, but this server has 1.18: use " in answer


def test_the_server_ends(server):
    assert server.stop() == 0, server.log()[-3000:]
