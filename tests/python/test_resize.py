"""The op cgc.resize in a plan: equal to the bit to Preprocess, by the reference executor."""
import io
from pathlib import Path

import cgc
import numpy
import pytest
import torch
from PIL import Image
from cgc import _towers
from cgc import preprocess as preprocess_module

#: Width and height: single pixels, extreme ratios, up- and downscaling, many times, and as large as the result.
SIZES = [(1, 1), (2, 1), (1, 40), (300, 9), (9, 300), (31, 33), (32, 32), (24, 32), (48, 24), (70, 55), (97, 41), (41, 97), (79, 78),
         (500, 375), (33, 400)]
CONFIGS = {
    "shortest": {"size": 32}, "bilinear": {"size": 32, "interpolation": "bilinear"}, "squash": {"size": 32, "resize_mode": "squash"},
    "squash to a rectangle": {"size": [24, 40], "resize_mode": "squash", "interpolation": "bilinear"},
    "crop of a rectangle": {"size": [24, 40]}, "longest": {"size": 32, "resize_mode": "longest", "fill_color": 77},
    "edge": {"size": 28, "edge": 37}}


def jpeg(width, height, seed, **options):
    """Noise on a gradient as a JPEG file."""
    random = numpy.random.default_rng(seed)
    pixels = numpy.add.outer(numpy.linspace(0, 200, height), numpy.linspace(0, 55, width))[..., None] + random.integers(-60, 60, (height, width, 3))
    file = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8)).convert(options.pop("mode", "RGB")).save(file, "JPEG", **options)
    return file.getvalue()


def pictures():
    return [*(jpeg(*size, index, subsampling=index % 3, progressive=index % 2 == 0) for index, size in enumerate(SIZES)),
            jpeg(60, 50, 100, mode="L"), jpeg(60, 50, 101, mode="CMYK"),
            numpy.random.default_rng(102).integers(0, 256, (64, 51, 3), numpy.uint8)]


def plan_of(preprocess, folder, precision="fp32"):
    """A session whose entry encode_pictures gives the pixels themselves."""
    _, tower = _towers.with_resize(_towers.Tower("encode_image", lambda image: image + 0, []), preprocess, "cuda")
    _towers.compile_towers(torch.nn.Module(), [tower], [1, 4], precision, "cuda", ["--require-native"], Path(folder))
    return cgc.load(folder / "model.cgplan", executor="reference")


def packed(preprocess, session, sources):
    (_, size), (_, integers) = (info.shape for info in session.entries[session_entry(session)].inputs)
    return preprocess.pack(sources, size, (integers - 3) // sum(preprocess.size) - 1)


def session_entry(session):
    (name,) = session.entries
    return name


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_pixels_equal_those_of_preprocess_to_the_bit(tmp_path, config, precision):
    preprocess = cgc.Preprocess(config)
    sources = [*pictures(), b"", jpeg(40, 40, 103)]
    want = preprocess(sources, dtype={"fp32": "float32", "fp16": "float16"}[precision])
    with plan_of(preprocess, tmp_path, precision) as session:
        given = packed(preprocess, session, sources)
        got = session.run(session_entry(session), [given.pixels, given.table])
    good = [index for index, error in enumerate(want.errors) if error is None]
    assert got.dtype == want.pixels.dtype and len(good) > 12
    assert [str(error) for error in given.errors] == [str(error) for error in want.errors] and given.reasons == want.reasons
    for index in good:
        numpy.testing.assert_array_equal(got[index], want.pixels[index], err_msg=f"picture {index}")
    # Few are too large, or CMYK, and resized on the host.
    on_host = sum(table[0] == preprocess.size[1] and (numpy.diff(table[3:3 + preprocess.size[1]]) == 1).all() for table in given.table[good])
    assert 0 < on_host <= 8


def test_a_table_reads_nothing_but_its_picture(tmp_path):
    preprocess = cgc.Preprocess({"size": 8})
    with plan_of(preprocess, tmp_path) as session:
        (_, size), (_, integers) = (info.shape for info in session.entries[session_entry(session)].inputs)
        random = numpy.random.default_rng(0)
        pixels = numpy.repeat(numpy.arange(3, dtype=numpy.uint8)[:, None] * 100, size, 1)
        table = random.integers(-2**31, 2**31, (3, integers), numpy.int32)
        table[:, 3:11] = [2**31 - 1, -2**31, 0, 5, 10**6, 2**31 - 9, 1, 2]
        whole = session.run(session_entry(session), [pixels, table])
        for row in range(3):  # Memory around a picture is that of others.
            alone = session.run(session_entry(session), [pixels[row:row + 1], table[row:row + 1]])
            numpy.testing.assert_array_equal(whole[row], alone[0])
        values = preprocess.values()
        table[:, 3:] = 0
        table[:, 3 + 16:3 + 24] = 1 << 22  # The first tap of each column, and of each row.
        table[:, 3 + 8 * 16 + 8:3 + 8 * 16 + 16] = 1 << 22
        for at in (2**31 - 1, 10**6, 0):
            table[:, :3], table[:, 3:11] = (at, 0, 0), at
            got = session.run(session_entry(session), [pixels, table])
            numpy.testing.assert_array_equal(got[:, :, 0, 0], values[:, [0, 100, 200]].T)


def test_a_picture_that_failed_is_zeros(monkeypatch):
    monkeypatch.setattr(preprocess_module, "new_numpy", lambda shape, dtype, _: numpy.ones(shape, dtype))
    whole = jpeg(60, 50, 0)
    given = cgc.Preprocess({"size": 8}).pack([whole, whole[:len(whole) // 2], b"", whole], 3 * 20 * 20, 15)
    assert list(given.reasons) == [1, 2] and not given.pixels[1:3].any() and not given.table[1:3].any()
    assert given.pixels[3].any() and given.table[3].any()


def test_what_does_not_fit_is_refused():
    preprocess = cgc.Preprocess({"size": 8})
    for size, taps, message in ((191, 5, "size is 191; give an int of at least 192"), (192, 0, "taps is 0"), (192.0, 5, "size is 192.0")):
        with pytest.raises(cgc.UsageError, match=message):
            preprocess.pack([], size, taps)
    assert preprocess.pack([], 192, 5).pixels.shape == (0, 192)
