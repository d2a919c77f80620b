"""cgc embed --ray and cgc.ray.deployment, on a Ray of this machine."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import types
import urllib.error
import urllib.request

import cgc
import cgc.ray
import numpy
import pyarrow.parquet
import pytest
import ray
from cgc import _embed
from ray import serve

pytestmark = pytest.mark.filterwarnings("ignore")
PICTURES = 3000


@pytest.fixture(scope="module")
def cluster(short_folder):
    """A Ray with a GPU that does not exist, which an actor asks for."""
    context = ray.init(_temp_dir=str(short_folder), num_cpus=4, num_gpus=1, include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False,
                       logging_level="ERROR", runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}})
    yield context.address_info["address"]
    serve.shutdown()
    ray.shutdown()


@pytest.fixture(scope="module")
def folder(plans, tmp_path_factory):
    """3,000 pictures of which 20 are bad."""
    made = tmp_path_factory.mktemp("ray") / "pictures"
    shutil.copytree(plans / "pictures", made)
    for number in range(PICTURES - 7):
        os.link(made / f"{number % 5}.jpg", made / f"{number:05}.jpg")
    for number in range(20):
        (made / f"{number * 149:05}.jpg").unlink()
        (made / f"{number * 149:05}.jpg").write_bytes([b"", b"no picture", (made / "4.jpg").read_bytes()[:200]][number % 3])
    return made


def command(plans, folder, out, *arguments):
    return [sys.executable, "-c", "from cgc._program import main; main()", "embed", "--model", plans / "clip", "--executor", "reference",
            "--images", folder, "--out", out, "--max-errors", "20", *arguments]


def rows(out):
    table = pyarrow.parquet.read_table(out).sort_by("key")
    return table["key"].to_pylist(), table["vector"].to_pylist(), [error is None for error in table["error"].to_pylist()]


def encoders():
    """The processes of the actors that embed."""
    found = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [int(pid) for pid in re.findall(r"^ *(\d+) ray::_Encoder", found, re.MULTILINE)]


def test_an_actor_that_is_killed_loses_nothing(plans, folder, cluster, tmp_path):
    alone = subprocess.run(command(plans, folder, tmp_path / "alone"), capture_output=True, text=True)
    assert alone.returncode == 0 and f"{PICTURES} inputs, {PICTURES - 20} vectors, 20 errors" in alone.stdout, alone.stderr
    running = subprocess.Popen(command(plans, folder, tmp_path / "ray", "--ray", cluster), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    while not encoders() and running.poll() is None:
        time.sleep(.02)
    time.sleep(.3)
    for process in encoders():
        os.kill(process, signal.SIGKILL)
    output, errors = running.communicate()
    assert running.returncode == 0 and f"{PICTURES} inputs, {PICTURES - 20} vectors, 20 errors" in output, errors
    (keys, vectors, good), (own_keys, own_vectors, own_good) = rows(tmp_path / "ray"), rows(tmp_path / "alone")
    assert keys == own_keys and good == own_good and good.count(False) == 20
    different = [key for key, one, other in zip(keys, vectors, own_vectors)
                 if (one is None) != (other is None) or one is not None and not numpy.allclose(one, other, atol=1e-6)]
    assert not different


def test_no_cluster(plans, folder, tmp_path):
    done = subprocess.run(command(plans, folder, tmp_path / "out", "--ray", "127.0.0.1:1"), capture_output=True, text=True,
                          env={**os.environ, "RAY_gcs_rpc_server_connect_timeout_s": "1", "RAY_NUM_REDIS_GET_RETRIES": "1"})
    assert done.returncode == cgc.Code.DEVICE and "no Ray cluster answers at 127.0.0.1:1" in done.stderr


def post(path, data, **headers):
    request = urllib.request.Request(f"http://127.0.0.1:8123{path}", data, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_serve(plans, cluster):
    vectors = numpy.load(plans / "clip.npz")
    serve.start(http_options={"host": "127.0.0.1", "port": 8123})
    serve.run(cgc.ray.deployment(str(plans / "clip"), options={"executor": "reference"}))
    status, body = post("/image", (plans / "pictures" / "1.jpg").read_bytes())
    answer = json.loads(body)
    assert status == 200 and answer["identity"].startswith("RANDOM-WEIGHTS-")
    assert numpy.linalg.norm(answer["vector"] - vectors["images"][1]) < 1e-5
    status, body = post("/text", b"a cat", Accept="application/octet-stream")
    assert status == 200 and numpy.linalg.norm(numpy.frombuffer(body, numpy.float32) - vectors["texts"][0]) < 1e-5
    for path, data, wanted in (("/image", b"no picture", 400), ("/text", b"\xff", 400), ("/other", b"", 404)):
        status, body = post(path, data)
        assert status == wanted and json.loads(body)["error"], path


def test_a_process_that_always_dies_is_an_error(plans, cluster, tmp_path, monkeypatch):
    class Dies(cgc.ray._Encoder):
        def encode(self, values):
            os._exit(1)

    monkeypatch.setattr(cgc.ray, "_Encoder", Dies)
    monkeypatch.setattr(cgc.ray, "_RETRIES", 1)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    monkeypatch.setattr(ray, "init", lambda *_, **__: None)
    parts = _embed.Parts(tmp_path, types.SimpleNamespace(identity="id", name="model", size=2), "text")
    with pytest.raises(cgc.DeviceError, match="the process that embeds died 2 times at the inputs from a to a"):
        cgc.ray.embed([("a", "a.jpg")], parts, str(plans / "clip"), "text", True, cluster, {"executor": "reference"})
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
