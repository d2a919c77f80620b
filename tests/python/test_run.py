"""Requests with NumPy arrays: results, batches, forms of inputs and outputs, entries."""
import cgc
import numpy
import pytest
from numpy.testing import assert_allclose

TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.mark.parametrize("batch", [1, 2, 4, 5, 16, 40])
def test_any_batch_agrees_with_libtorch(tiny, expected, batch):
    result = tiny.run("encode_image", expected["image"][:batch])
    assert isinstance(result, numpy.ndarray) and result.dtype == numpy.float32
    assert_allclose(result, expected["image_features"][:batch], **TOLERANCE)
    assert_allclose(tiny.run("encode_text", expected["text"][:batch]), expected["text_features"][:batch], **TOLERANCE)


def test_several_outputs_are_a_tuple(tiny, expected):
    image, text = expected["image"][:4], expected["text"][:4]
    results = tiny.run("forward", [image, text])
    assert isinstance(results, tuple)
    for result, name in zip(results, ("image_features", "text_features", "products"), strict=True):
        assert_allclose(result, expected[name][:4], **TOLERANCE)
    for by_name in tiny.run("forward", {"text": text, "image": image}), tiny.run("forward", (image, text)):
        for a, b in zip(results, by_name, strict=True):
            numpy.testing.assert_array_equal(a, b)


def test_out_is_written_and_returned(tiny, expected):
    image, out = expected["image"][:3], numpy.empty((3, 8), numpy.float32)
    assert tiny.run("encode_image", image, out=out) is out
    assert_allclose(out, expected["image_features"][:3], **TOLERANCE)
    listed, named = [numpy.zeros_like(out)], {"output": numpy.zeros_like(out)}
    assert tiny.run("encode_image", [image], out=listed) is listed
    assert tiny.run("encode_image", {"image": image}, out=named) is named
    numpy.testing.assert_array_equal(listed[0], out)
    numpy.testing.assert_array_equal(named["output"], out)


def test_results_own_their_memory(tiny, expected):
    first = tiny.run("encode_image", expected["image"][:4])
    kept = first.copy()
    tiny.run("encode_image", expected["image"][4:8])
    numpy.testing.assert_array_equal(first, kept)
    assert first.flags.owndata and first.flags.writeable


def test_inputs_need_not_be_writable_or_numpy(tiny, expected):
    image = expected["image"][:2].copy()
    plain = tiny.run("encode_image", image)
    image.setflags(write=False)
    numpy.testing.assert_array_equal(tiny.run("encode_image", image), plain)
    numpy.testing.assert_array_equal(tiny.run("encode_image", memoryview(image)), plain)


def test_inputs_are_read_in_place(tiny, exporter):
    image = numpy.ones((2, 16), numpy.float32)
    shared = exporter((2, 16), image.ctypes.data)
    before = tiny.run("encode_image", shared)
    image[1] = 3
    after = tiny.run("encode_image", shared)
    numpy.testing.assert_array_equal(before[0], after[0])
    assert not numpy.array_equal(before[1], after[1])


def test_arrays_of_other_libraries(tiny, exporter, expected):
    """A library with the array API gets its own arrays back."""
    class Other(exporter):
        def __array_namespace__(self):
            return OtherLibrary

    class OtherLibrary:
        from_dlpack = staticmethod(lambda array: ("from_dlpack", numpy.from_dlpack(array)))

    image, text = expected["image"][:4].copy(), expected["text"][:4]
    kind, features = tiny.run("encode_image", Other((4, 16), image.ctypes.data))
    assert kind == "from_dlpack"
    assert_allclose(features, expected["image_features"][:4], **TOLERANCE)
    results = tiny.run("forward", [Other((4, 16), image.ctypes.data), text])
    assert [result[0] for result in results] == ["from_dlpack"] * 3


def test_half_precision(plans, expected):
    with cgc.load(plans / "half.cgplan", executor="reference") as session:
        result = session.run("encode_image", expected["image"][:2].astype(numpy.float16))
    assert result.dtype == numpy.float16
    assert_allclose(result.astype(numpy.float32), expected["image_features"][:2], rtol=0.02, atol=0.02)


def test_entries_describe_the_plan(tiny):
    assert list(tiny.entries) == ["encode_image", "encode_text", "forward"]
    image = tiny.entries["encode_image"]
    assert image.any_batch
    assert image.inputs == (cgc.TensorInfo("image", "float32", ("N", 16)),)
    assert image.outputs == (cgc.TensorInfo("output", "float32", ("N", 8)),)
    assert [bucket.batch for bucket in image.buckets] == [1, 4]
    assert image.buckets[1] == cgc.Bucket(4, ((4, 16),), ((4, 8),))
    assert tiny.entries["encode_text"].inputs[0].dtype == "int64"
    assert not tiny.entries["forward"].any_batch
    assert len(tiny.entries["forward"].outputs) == 3
