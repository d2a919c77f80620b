"""cgc embed --ray and cgc.ray.deployment, on a Ray of this machine."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
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
from cgc import _commands, _embed
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
    return [table[name].to_pylist() for name in ("key", "vector", "error")]


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
    (keys, vectors, errors), (own_keys, own_vectors, own_errors) = rows(tmp_path / "ray"), rows(tmp_path / "alone")
    assert keys == own_keys and errors == own_errors and errors.count(None) == PICTURES - 20
    different = [key for key, one, other in zip(keys, vectors, own_vectors)
                 if (one is None) != (other is None) or one is not None and not numpy.allclose(one, other, atol=1e-6)]
    assert not different


@pytest.fixture
def connected(cluster, monkeypatch):
    """This process stays connected."""
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    monkeypatch.setattr(ray, "init", lambda *_, **__: None)


@pytest.mark.parametrize("resources", [None, {"CPU": 4.0}], ids=["with a GPU", "without GPUs"])
def test_results_equal_those_of_one_process(plans, folder, connected, tmp_path, monkeypatch, capsys, resources):
    if resources:
        monkeypatch.setattr(ray, "cluster_resources", lambda: resources)
    monkeypatch.chdir(folder.parent)
    few, shard = folder.parent / "few", tmp_path / "0.tar"
    shutil.copytree(plans / "pictures", few, dirs_exist_ok=True)
    (few / "bad.jpg").write_bytes(b"no picture")
    with tarfile.open(shard, "w") as archive:
        archive.add(few / "1.jpg", "1.jpg")
        archive.add(few / "bad.jpg", "bad.jpg")
    (tmp_path / "texts").write_bytes("a cat\n\xff\nein Hund".encode("latin-1"))
    for index, sources in enumerate((["--images", "few", "--no-normalize"], ["--images", str(shard)], ["--texts", str(tmp_path / "texts")])):
        outs = [tmp_path / f"{index} {name}" for name in ("alone", "ray")]
        for out, ray_options in zip(outs, ([], ["--ray", "auto"])):
            command = [*sources, "--model", str(plans / "clip"), "--executor", "reference", "--max-errors", "1", "--out", str(out), *ray_options]
            assert _commands.run("embed", command) == 0
        (keys, vectors, errors), (own_keys, own_vectors, own_errors) = map(rows, outs)
        assert keys == own_keys and errors == own_errors and len(keys) - errors.count(None) == 1
        assert all(one is other is None or numpy.allclose(one, other, atol=1e-6) for one, other in zip(vectors, own_vectors))
        assert _commands.run("embed", command) == 0 and "1 errors; 0 of them now" in capsys.readouterr().out


def test_an_error_of_an_actor_is_that_of_cgc(plans, folder, connected, tmp_path, monkeypatch, capsys):
    command = ["--images", str(folder), "--model", str(plans / "clip"), "--out", str(tmp_path), "--ray", "auto"]
    if not os.path.exists("/dev/nvidiactl"):
        assert _commands.run("embed", command) == cgc.Code.DEVICE
        error = capsys.readouterr().err.splitlines()[-1]
        assert error.startswith("cgc embed: the plan has target cuda, and ") and "--executor reference" in error

    class Fails(cgc.ray._Encoder):
        def encode(self, values):
            raise ValueError("of the test")

    monkeypatch.setattr(cgc.ray, "_Encoder", Fails)
    assert _commands.run("embed", command) == cgc.Code.FAILED
    assert capsys.readouterr().err.splitlines()[-1] == "cgc embed: the process that embeds failed: ValueError('of the test')"


def test_no_cluster(plans, folder, tmp_path):
    for address in ("127.0.0.1:1", "somewhere"):
        done = subprocess.run(command(plans, folder, tmp_path / "out", "--ray", address), capture_output=True, text=True,
                              env={**os.environ, "RAY_gcs_rpc_server_connect_timeout_s": "1", "RAY_NUM_REDIS_GET_RETRIES": "1"})
        assert done.returncode == cgc.Code.DEVICE and f"no Ray cluster answers at {address}" in done.stderr, done.stderr


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


def test_requests_share_a_batch(plans, connected, monkeypatch):
    sizes, encode = [], cgc.Model.encode_text

    def counted(self, texts, **options):
        sizes.append(len(texts))
        return encode(self, texts, **options)

    monkeypatch.setattr(cgc.Model, "encode_text", counted)
    config = types.SimpleNamespace(max_ongoing_requests=256)  # Which batches ask for, and local tests do not have.
    monkeypatch.setattr(serve, "get_replica_context", lambda: types.SimpleNamespace(_deployment_config=config))
    application = cgc.ray.deployment(str(plans / "clip"), options={"executor": "reference"}, batch_wait=60)
    handle = serve.run(application, name="batches", route_prefix="/batches", _local_testing_mode=True)
    answers = [handle._text.remote(text) for text in ("a cat", "a dog", "a cat", "") * 2]  # Twice as many as the largest bucket.
    answers = [answer.result() for answer in answers]
    assert sizes == [4, 4] and numpy.array_equal(answers[0], answers[2]) and not numpy.array_equal(answers[0], answers[1])


def test_a_process_that_always_dies_is_an_error(plans, cluster, connected, tmp_path, monkeypatch):
    class Dies(cgc.ray._Encoder):
        def encode(self, values):
            os._exit(1)

    monkeypatch.setattr(cgc.ray, "_Encoder", Dies)
    monkeypatch.setattr(cgc.ray, "_RETRIES", 1)
    parts = _embed.Parts(tmp_path, types.SimpleNamespace(identity="id", name="model", size=2), "text")
    with pytest.raises(cgc.DeviceError, match="the process that embeds died 2 times at the inputs from a to a"):
        cgc.ray.embed([("a", "a.jpg")], parts, str(plans / "clip"), "text", True, cluster, {"executor": "reference"})
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
