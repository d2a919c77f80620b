"""Exceptions: codes, classes, and the failures that are not the caller's request."""
import importlib.util
import os

import cgc
import numpy
import pytest
from cgc import _arrays, _runtime, _session


@pytest.mark.parametrize(("error", "base"), [
    (cgc.UsageError, ValueError), (cgc.InvalidFileError, OSError), (cgc.UnsupportedError, NotImplementedError),
    (cgc.DeviceError, RuntimeError), (cgc.OutOfMemoryError, MemoryError), (cgc.BusyError, TimeoutError)])
def test_classes(error, base):
    assert issubclass(error, cgc.Error) and issubclass(error, base)
    assert str(error("a message")) == "a message"


def test_codes_are_those_of_the_runtime():
    for code in cgc.Code:
        assert _runtime.code_name(code) == code.name.lower()
    known = {code for code in range(256) if _runtime.code_name(code) not in ("unknown", "ok")}
    assert known == set(cgc.Code)


def test_missing_and_damaged_files(plans, tmp_path):
    with pytest.raises(cgc.InvalidFileError, match="nowhere.cgplan") as raised:
        cgc.load("nowhere.cgplan")
    assert raised.value.code is cgc.Code.INVALID_FILE
    damaged = tmp_path / "damaged.cgplan"
    damaged.write_bytes((plans / "tiny.cgplan").read_bytes()[:-100])
    with pytest.raises(cgc.InvalidFileError, match="damaged.cgplan"):
        cgc.load(damaged, executor="reference")
    with pytest.raises(TypeError):
        cgc.load(None)


def test_too_little_memory(plans):
    with pytest.raises(cgc.OutOfMemoryError) as raised:
        cgc.load(plans / "tiny.cgplan", executor="reference", memory_limit=1000)
    assert raised.value.code is cgc.Code.OUT_OF_MEMORY


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="has a GPU, so that the plan loads")
def test_no_gpu(plans):
    with pytest.raises(cgc.DeviceError):
        cgc.load(plans / "tiny.cgplan")


def test_plan_that_needs_libtorch(plans):
    assert importlib.util.find_spec("torch") is None
    with pytest.raises(cgc.DeviceError, match="LibTorch.*pip install torch"):
        cgc.load(plans / "host.cgplan")


def test_bfloat16_without_ml_dtypes(plans):
    assert importlib.util.find_spec("ml_dtypes") is None
    with cgc.load(plans / "bfloat.cgplan", executor="reference") as session:
        with pytest.raises(cgc.UsageError, match=r"takes bfloat16; give array.astype\(ml_dtypes.bfloat16\)"):
            session.run("encode_image", numpy.zeros((2, 16), numpy.float32))


def test_compile_without_torch():
    with pytest.raises(cgc.DeviceError, match="torch, which exports the model, is missing; pip install"):
        cgc.compile(None, [], output="never.cgplan")
    with pytest.raises(cgc.DeviceError, match="torch, which exports the model, is missing; pip install"):
        cgc.train(None, [], optimizer="sgd")


def test_time_outs_are_in_seconds():
    assert _session._milliseconds(None) == 0  # No limit, in cgc.h.
    assert _session._milliseconds(1.5) == 1500
    assert _session._milliseconds(1e-6) == 1


def test_stream_handles():
    class OfProtocol:
        def __cuda_stream__(self):
            return 0, 77

    class OfTorch:
        cuda_stream = 0

    assert _arrays.stream_handle(None) == 0
    assert _arrays.stream_handle(0) == 1  # The null stream becomes cudaStreamLegacy.
    assert _arrays.stream_handle(OfTorch()) == 1
    assert _arrays.stream_handle(5) == 5
    assert _arrays.stream_handle(OfProtocol()) == 77
