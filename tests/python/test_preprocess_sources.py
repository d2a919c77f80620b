"""Preprocess: sources, one error for each bad picture, and settings. Without torch, open_clip and Pillow."""
import base64
import importlib.util
import io
import os
import struct
import sys
import types

import cgc
import numpy
import pytest

#: 16 x 16 pixels, RGB, 4:2:0, arithmetic coding.
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAYEBQYFBAYGBQYHBwYIChAKCgkJChQODwwQFxQYGBcUFhYaHSUfGhsjHBYWICwgIyYnKSopGR8tMC0oMCUo"
    "KSj/2wBDAQcHBwoIChMKChMoGhYaKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCj/yQARCAAQABADASIAAhEB"
    "AxEB/8wACgAQEAUBEBEF/9oADAMBAAIRAxEAPwD/ALtWE8J0Tn6vHOfqLijcqs8rohRFJaePxdyU/9k=")
NO_PILLOW = importlib.util.find_spec("PIL") is None


def header(height, width):
    """JPEG, but its header says other sizes."""
    at = JPEG.index(b"\xff\xc9") + 5
    return JPEG[:at] + struct.pack(">HH", height, width) + JPEG[at + 4:]


@pytest.fixture
def preprocess():
    return cgc.Preprocess({"size": 16})


def test_sources_are_equal(preprocess, tmp_path):
    path = tmp_path / "a b ü.jpg"
    path.write_bytes(JPEG)
    sources = [JPEG, bytearray(JPEG), memoryview(JPEG), path, str(path), io.BytesIO(JPEG), open(path, "rb")]
    result = preprocess(sources, dtype="uint8")
    assert result.errors == [None] * len(sources)
    assert (result.pixels == result.pixels[0]).all()
    # The picture has values of 9 y + 5 x + 20 c, and a few more or less from its compression.
    want = numpy.add.outer(numpy.arange(16) * 9, numpy.arange(16) * 5)[..., None] + numpy.array([0, 20, 40])
    assert abs(result.pixels[0].astype(int) - want).max() < 24 and abs(result.pixels[0].astype(int) - want).mean() < 5
    again = preprocess([result.pixels[0], result.pixels[0][::-1][::-1], numpy.asfortranarray(result.pixels[0])], dtype="uint8")
    assert (again.pixels == result.pixels[0]).all()


def test_normalization(preprocess):
    picture = numpy.full((16, 16, 3), 51, numpy.uint8)
    pixels = preprocess([picture] * 3).pixels
    assert pixels.shape == (3, 3, 16, 16) and pixels.dtype == numpy.float32
    mean, std = (numpy.asarray(preprocess.to_json()[name], numpy.float32)[:, None, None] for name in ("mean", "std"))
    numpy.testing.assert_array_equal(pixels[1], numpy.broadcast_to((numpy.float32(51) / numpy.float32(255) - mean) / std, (3, 16, 16)))
    numpy.testing.assert_array_equal(preprocess([picture], "float16").pixels[0], pixels[0].astype(numpy.float16))
    assert preprocess([]).pixels.shape == (0, 3, 16, 16)


@pytest.mark.parametrize(("source", "kind", "match"), [
    (b"", cgc.InvalidFileError, "picture 1 is empty: it has 0 bytes"),
    (JPEG[:2], None, "picture 1"),
    (JPEG[:20], cgc.InvalidFileError, "picture 1 is cut short"),
    (JPEG[:-30], cgc.InvalidFileError, "picture 1 is no JPEG that can be decoded: "),
    (b"not a picture", None, "is no JPEG, or lacks scans of one, which is left to Pillow; pip install pillow" if NO_PILLOW
     else "cannot be decoded by Pillow"),
    (b"\xff\xd8\xff\xd9", cgc.InvalidFileError, "is no JPEG that can be decoded: "),
    (JPEG.replace(b"\xff\xc9", b"\xff\xc3"), cgc.InvalidFileError, "is no JPEG that can be decoded: Unsupported"),
    (header(20000, 20000), cgc.InvalidFileError, "picture 1 has 20000 x 20000 pixels, more than the limit of 178956970"),
    (header(65500, 65500), cgc.InvalidFileError, "has 65500 x 65500 pixels"),
    ("/nowhere/cat.jpg", cgc.InvalidFileError, "picture 1, '/nowhere/cat.jpg', cannot be read: No such file or directory"),
    ("a\0b", cgc.InvalidFileError, "has a path with a null byte"),
    (os.curdir, cgc.InvalidFileError, "cannot be read: Is a directory"),
    (open(os.devnull, "w"), cgc.InvalidFileError, "cannot be read: not readable"),
    (None, cgc.UsageError, "picture 1 is of type NoneType; give a path, the bytes of a file"),
    (7, cgc.UsageError, "is of type int"),
    (numpy.zeros((3, 4, 4), numpy.uint8), cgc.UsageError, r"is an array uint8 \[3, 4, 4\]; give uint8 \[height, width, 3\]"),
    (numpy.zeros((4, 4, 3), numpy.float32), cgc.UsageError, "is an array float32"),
    (numpy.zeros((0, 4, 3), numpy.uint8), cgc.InvalidFileError, "is empty: it has 4 x 0 pixels"),
])
def test_a_bad_picture_has_its_own_error(preprocess, source, kind, match):
    alone = preprocess([JPEG]).pixels[0]
    for threads in (1, 4):
        result = preprocess([JPEG, source, JPEG], threads=threads)
        assert result.errors[0] is result.errors[2] is None
        assert (result.pixels[[0, 2]] == alone).all() and (result.pixels[1] == 0).all()
        with pytest.raises(kind or cgc.Error, match=match):
            raise result.errors[1]


def test_limits(preprocess):
    picture = numpy.zeros((4, 5, 3), numpy.uint8)
    (error, fine) = preprocess([picture, picture[:, :4]], max_pixels=16).errors
    assert "has 5 x 4 pixels, more than the limit of 16" in str(error) and fine is None
    longest = cgc.Preprocess({"size": 16, "resize_mode": "longest"})
    (error,) = longest([numpy.zeros((1, 100, 3), numpy.uint8)]).errors
    assert "is too narrow: 100 x 1 pixels are resized to 16 x 0" in str(error)


@pytest.mark.parametrize(("config", "match"), [
    ({"sizes": 224}, "the configuration has the key 'sizes'; it may have size, mode, mean, std, interpolation"),
    ({"size": 0}, r"size is 0; give an int or \[height, width\]"),
    ({"size": [224]}, r"size is \[224\]"),
    ({"size": 224.0}, "size is 224.0"),
    ({"mode": "L"}, "mode is 'L'; give RGB"),
    ({"mean": 0.5}, "mean is 0.5; give 3 numbers"),
    ({"std": [1, 1]}, r"std is \[1, 1\]"),
    ({"std": [1, 0, 1]}, "must not be 0"),
    ({"interpolation": "nearest"}, "interpolation is 'nearest'; give one of bicubic, bilinear"),
    ({"resize_mode": "crop"}, "resize_mode is 'crop'; give one of shortest, longest, squash"),
    ({"fill_color": 256}, "fill_color is 256"),
    ({"edge": 200}, "edge is 200; give an int from 224"),
    ({"edge": 256, "resize_mode": "squash"}, "with resize_mode"),
    ("ViT-B-32", "the configuration is a str; give a mapping"),
])
def test_settings_that_are_refused(config, match):
    with pytest.raises(cgc.UsageError, match=match):
        cgc.Preprocess(config)


@pytest.mark.parametrize(("options", "match"), [
    ({"dtype": "float64"}, "dtype is 'float64'; give one of float32, float16, bfloat16, uint8"),
    ({"layout": "HWC"}, "layout is 'HWC'; give one of NCHW, NHWC"),
    ({"threads": 0}, "threads is 0; give an int from 1"),
    ({"max_pixels": -1}, "max_pixels is -1"),
    ({"sources": "cat.jpg"}, r"sources is of type str; give a list of pictures, such as \[picture\]"),
    ({"sources": JPEG}, "sources is of type bytes"),
    ({"sources": None}, "sources is of type NoneType"),
])
def test_arguments_that_are_refused(preprocess, options, match):
    with pytest.raises(cgc.UsageError, match=match):
        preprocess(**{"sources": [JPEG], **options})


def test_json():
    settings = {"size": 32, "mean": (0.5, 0.5, 0.5), "interpolation": "bilinear", "resize_mode": None}
    preprocess = cgc.Preprocess(settings)
    json = preprocess.to_json()
    assert json == {"size": [32, 32], "mode": "RGB", "mean": [0.5, 0.5, 0.5], "std": [0.26862954, 0.26130258, 0.27577711],
                    "interpolation": "bilinear", "resize_mode": "shortest", "fill_color": 0, "pillow": "13.0.0"}
    assert cgc.Preprocess.from_json(json) == preprocess != cgc.Preprocess({})
    with pytest.raises(cgc.UsageError, match="those of Pillow 11.3.0, and this cgc equals Pillow 13.0.0"):
        cgc.Preprocess.from_json({**json, "pillow": "11.3.0"})


def test_another_thread_may_be_importing_pillow(preprocess, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", types.ModuleType("PIL.Image"))  # As its import begins.
    assert preprocess([JPEG]).errors == [None]


def progressive(scans):
    """16 x 16 grey pixels as a progressive JPEG of so many scans: one of AC coefficients, and others of DC coefficients."""
    def segment(marker, content):
        return struct.pack(">BBH", 0xff, marker, len(content) + 2) + content

    tables = segment(0xdb, bytes([0]) + bytes([1] * 64)) + b"".join(segment(0xc4, bytes([kind, 1] + [0] * 16)) for kind in (0, 0x10))
    dc, ac = segment(0xda, bytes([1, 1, 0, 0, 0, 0])) + b"\0", segment(0xda, bytes([1, 1, 0, 1, 63, 0])) + b"\x0f"
    return b"\xff\xd8" + segment(0xc2, struct.pack(">BHHB", 8, 16, 16, 1) + bytes([1, 0x11, 0])) + tables + dc * (scans - 1) + ac \
        + b"\xff\xd9"


def test_a_jpeg_of_many_scans_is_refused(preprocess):
    good, bad = preprocess([progressive(100), progressive(101)], dtype="uint8").errors
    assert good is None
    assert isinstance(bad, cgc.InvalidFileError) and str(bad) == "picture 1 is a JPEG of more than 100 scans, the limit; save it again"
