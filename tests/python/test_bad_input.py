"""Wrong requests: each is a UsageError that says why, and the session goes on."""
import cgc
import numpy
import pytest

GOOD = numpy.ones((4, 16), numpy.float32)


@pytest.fixture(autouse=True)
def goes_on(tiny):
    before = tiny.run("encode_image", GOOD)
    yield
    numpy.testing.assert_array_equal(tiny.run("encode_image", GOOD), before)


def refused(match):
    return pytest.raises(cgc.UsageError, match=match)


def read_only(shape):
    array = numpy.zeros(shape, numpy.float32)
    array.setflags(write=False)
    return array


@pytest.mark.parametrize(("array", "match"), [
    (GOOD.astype(numpy.float64), r"is float64, and the plan takes float32; give array.astype\('float32'\)"),
    (GOOD.astype(numpy.float16), "is float16, and the plan takes float32"),
    (GOOD.astype(numpy.uint16), "'image' of entry 'encode_image' has an element type that no plan has"),
    (GOOD.astype(numpy.complex64), "element type that no plan has"),
    (numpy.ones((4, 32), numpy.float32)[:, ::2], r"is strided; give a dense copy, such as np\.ascontiguousarray"),
    (numpy.asfortranarray(GOOD), "is strided"),
    (GOOD[::-1], "is strided"),
    (numpy.broadcast_to(GOOD[:1], (4, 16)), "is strided"),
    (GOOD[:0], "the batch is empty"),
    (GOOD[:, :8], "is strided"),
    (GOOD[:, :8].copy(), "encode_image"),
    (GOOD[0], "encode_image"),
    (GOOD[..., None], "encode_image"),
    (GOOD.reshape((4, 16) + 15 * (1,)), "rank 17 is above 16"),
    (None, "is of type NoneType, which is no array"),
    ("picture.jpg", "is of type str, which is no array"),
    ([[1.0, 2.0]], "is of type list, which is no array"),
    ([], "has 1 inputs"),
    ([GOOD, GOOD], "has 1 inputs"),
    ({"picture": GOOD}, "the inputs of entry 'encode_image' are image, and picture were given"),
])
def test_inputs(tiny, array, match):
    with refused(match):
        tiny.run("encode_image", array)


@pytest.mark.parametrize(("array", "match"), [
    (read_only((4, 8)), "output 'output' of entry 'encode_image' is read-only"),
    (numpy.zeros((4, 8)), "f32"),
    (numpy.zeros((8, 4), numpy.float32).T, "is strided"),
    (numpy.zeros((3, 8), numpy.float32), "output"),
    (None, None),
    ([], "has 1 outputs"),
    (b"bytes", "is read-only"),
])
def test_outputs(tiny, array, match):
    if match is None:  # No out.
        assert tiny.run("encode_image", GOOD, out=array).shape == (4, 8)
        return
    with refused(match):
        tiny.run("encode_image", GOOD, out=array)


def test_output_that_overlaps_an_input(tiny):
    memory = numpy.ones(96, numpy.float32)
    with refused("overlaps"):
        tiny.run("encode_image", memory[:64].reshape(4, 16), out=memory[60:92].reshape(4, 8))
    assert (memory == 1).all()


def test_freed_array(tiny, exporter):
    with refused("has no memory: it was freed"):
        tiny.run("encode_image", exporter((4, 16), None))


def test_array_that_gives_no_memory(tiny):
    class Deleted:
        def __dlpack__(self, **_):
            raise RuntimeError("Array has been deleted.")

    with refused("is of type Deleted, which does not give its memory: Array has been deleted."):
        tiny.run("encode_image", Deleted())


def test_used_capsule(tiny):
    capsule = GOOD.__dlpack__()
    tiny.run("encode_image", capsule)
    with refused("is of type PyCapsule, which is no array"):
        tiny.run("encode_image", capsule)


@pytest.mark.parametrize(("device", "match"), [
    ((2, 3), "is on GPU 3, on which the session does not run; move the array, or load the plan with device=3"),
    ((2, 0), "GPU"),
    ((10, 0), "is on a device of DLPack's type 10"),
])
def test_array_on_another_device(tiny, exporter, device, match):
    array = exporter((4, 16), GOOD.ctypes.data, device)
    with refused(match):
        tiny.run("encode_image", array, out=numpy.empty((4, 8), numpy.float32))
    with refused(match):
        tiny.run("encode_image", GOOD, out=exporter((4, 8), GOOD.ctypes.data, device))


def test_batches(plans, tiny):
    with cgc.load(plans / "tiny.cgplan", executor="reference", max_batch=8) as small:
        assert small.run("encode_image", numpy.ones((8, 16), numpy.float32)).shape == (8, 8)
        with refused("above the session's limit of 8"):
            small.run("encode_image", numpy.ones((9, 16), numpy.float32))
    text = numpy.zeros((3, 5), numpy.int64)
    with refused("the rows depend on each other"):
        tiny.run("forward", [GOOD[:3], text])
    with refused("batch"):
        tiny.run("forward", [GOOD[:4], text])


def test_indices_out_of_range(tiny):
    for index in (-1, 50):
        with refused("text"):
            tiny.run("encode_text", numpy.full((2, 5), index))


def test_entry_that_is_not_there(tiny):
    with refused("the plan has no entry 'encode'; it has encode_image, encode_text, forward"):
        tiny.run("encode", GOOD)
    with refused("encode"):
        tiny.prepare("encode", 1)


def test_streams(tiny):
    with refused("input 'image' of entry 'encode_image' is in host memory, and a stream orders work on GPUs"):
        tiny.run("encode_image", GOOD, stream=0)
    for wrong in ("stream", -1, 1.5, True):
        with refused("stream is"):
            tiny.run("encode_image", GOOD, stream=wrong)


@pytest.mark.parametrize(("options", "match"), [
    ({"executor": "cpu"}, "executor is 'cpu'; give one of graph, stream, reference"),
    ({"capture": "never"}, "capture is 'never'"),
    ({"contexts": 0}, "contexts is 0; it must be at least 1"),
    ({"max_batch": 0}, "max_batch is 0"),
    ({"max_waiting": -1}, "max_waiting is -1"),
    ({"timeout": 0}, "timeout is 0"),
    ({"timeout": float("inf")}, "timeout is inf"),
    ({"device": 0}, "the plan runs on the host"),
    ({"device": [1, 1]}, "GPU 1 is given twice"),
])
def test_options(plans, options, match):
    with refused(match):
        cgc.load(plans / "tiny.cgplan", **{"executor": "reference", **options})
