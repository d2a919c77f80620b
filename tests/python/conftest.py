"""Fixtures: the plans of make_plans.py, and arrays that DLPack describes wrongly."""
import ctypes
import os
import tempfile
from pathlib import Path

import cgc
import numpy
import pytest


os.environ["CGC_CACHE"] = "off"  # Except in test_cache.py.


def pytest_addoption(parser):
    parser.addoption("--plans", required=True, help="the folder that make_plans.py wrote")


@pytest.fixture(scope="session")
def plans(request):
    return Path(request.config.getoption("--plans"))


@pytest.fixture(scope="session")
def short_folder():
    """A folder with a short path, for sockets, whose paths have at most 107 bytes: that of TMPDIR may have more."""
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def expected(plans):
    """Inputs and outputs of the model, as LibTorch computes them."""
    return dict(numpy.load(plans / "expected.npz"))


@pytest.fixture
def tiny(plans):
    """A session of tiny.cgplan, on the host."""
    with cgc.load(plans / "tiny.cgplan", executor="reference") as session:
        yield session


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Exporter:
    """An array of f32 that DLPack describes by these values, whatever memory there is."""

    def __init__(self, shape, data, device=(1, 0)):
        self._shape = (ctypes.c_int64 * len(shape))(*shape)
        self._managed = _DLManagedTensor(_DLTensor(data, *device, len(shape), 2, 32, 1, self._shape, None, 0), None, None)

    def __dlpack__(self, **_):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self._managed), b"dltensor", None)

    def __dlpack_device__(self):
        return self._managed.tensor.device_type, self._managed.tensor.device_id


@pytest.fixture
def exporter():
    return Exporter
