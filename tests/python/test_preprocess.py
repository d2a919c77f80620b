"""Preprocess: equal to the bit to open_clip's transform for inference, for all of its configurations and kinds of files.

CGC_PICTURES=2000 tests that many pictures, up to 8000 x 6000.
"""
import io
import os
import warnings
from dataclasses import asdict

import cgc
import numpy
import open_clip
import pytest
import torch
from cgc import _images
from open_clip.transform import PreprocessCfg, image_transform_v2, merge_preprocess_dict
from PIL import Image
from pictures import KINDS, pictures

OTHERS = [{"size": (224, 160)}, {"size": (160, 224), "interpolation": "bilinear"}, {"size": (96, 224), "resize_mode": "squash"},
          {"size": 224, "resize_mode": "longest"}, {"size": (160, 224), "resize_mode": "longest", "fill_color": 127},
          {"size": 64, "resize_mode": "longest", "interpolation": "bilinear", "fill_color": 255},
          {"size": 32, "interpolation": "random"}]


def _change(rng, file, first, last):
    for _ in range(int(rng.integers(1, 4))):
        file[int(rng.integers(first, last))] = int(rng.choice([0, 0xFF, rng.integers(256), 0xD0 + rng.integers(10)]))


def _scan(file):
    return file.index(b"\xff\xda") + 14


def _drop_scans(rng, file):
    """Ends a progressive file after some of its scans, as far as it has more than one."""
    scans = [at for at in range(len(file) - 1) if file[at:at + 2] == b"\xff\xda"]
    if len(scans) > 1:
        del file[scans[int(rng.integers(1, len(scans)))]:]
        file.extend(b"\xff\xd9")


#: What befalls a JPEG file.
DAMAGES = {
    "header": lambda rng, file: _change(rng, file, 0, _scan(file)),
    "scan": lambda rng, file: _change(rng, file, _scan(file), len(file)),
    "scan with more": lambda rng, file: file.insert(int(rng.integers(_scan(file), len(file))), int(rng.integers(256))),
    "fewer scans": _drop_scans,
    "cut": lambda rng, file: file.__delitem__(slice(int(rng.integers(len(file))), None)),
    "cut at the end": lambda rng, file: file.__delitem__(slice(len(file) - int(rng.integers(1, 12)), None)),
}


def configurations():
    """The distinct ones of open_clip's models and pretrained weights, and some more."""
    found = []
    for model in open_clip.list_models():
        base = PreprocessCfg(size=open_clip.get_model_config(model)["vision_cfg"].get("image_size", 224))
        tags = open_clip.list_pretrained_tags_by_model(model)
        for settings in ({}, *(open_clip.get_pretrained_cfg(model, tag) for tag in tags)):
            if (merged := merge_preprocess_dict(base, settings)) not in found:
                found.append(merged)
    assert len(found) >= 28
    return found + [{**asdict(PreprocessCfg()), **other} for other in OTHERS]


CONFIGURATIONS = configurations()


def wanted(config, source):
    """The tensor of open_clip's transform, or None if it fails."""
    transform = image_transform_v2(PreprocessCfg(**config), is_train=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if isinstance(source, bytes):
                source = Image.open(io.BytesIO(source))
            elif isinstance(source, numpy.ndarray):
                source = Image.fromarray(source)
            return transform(source).numpy()
        except Exception:
            return None


def mismatches(batch, config):
    """The names of the pictures that differ. batch: (name, source)."""
    result = cgc.Preprocess(config)([source for _, source in batch])
    wrong = []
    for (name, source), pixels, error in zip(batch, result.pixels, result.errors):
        want = wanted(config, source)
        if (want is None) != (error is not None) or not numpy.array_equal(pixels, numpy.zeros_like(pixels) if want is None else want):
            wrong.append(f"{name} with {config}: {error or (pixels != want).sum()}")
    return wrong


@pytest.mark.parametrize("avx2", [True, False])
def test_equals_open_clip(avx2):
    count = int(os.environ.get("CGC_PICTURES", 0))
    available = _images.uses_avx2()
    _images.set_avx2(avx2)
    try:
        assert _images.uses_avx2() == (avx2 and available)
        found = pictures(count or (350 if avx2 else 140), 1, (8000, 6000) if count else (700, 700))
        wrong = []
        for index, picture in enumerate(found):
            wrong += mismatches([picture], CONFIGURATIONS[index % len(CONFIGURATIONS)])
        assert wrong == []
    finally:
        _images.set_avx2(True)


@pytest.mark.parametrize("config", CONFIGURATIONS, ids=str)
def test_every_configuration(config):
    sizes = [(1, 1), (1, 300), (300, 1), (500, 375), (375, 500), (60, 900), (900, 60)]
    rng = numpy.random.default_rng(0)
    batch = [(str(size), rng.integers(0, 256, (*size, 3), numpy.uint8)) for size in sizes]
    assert mismatches(batch, config) == []


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files(damage):
    """Pillow decodes some of them, and refuses others."""
    kinds = [kind for kind in KINDS if kind.startswith("jpeg")]
    wrong = []
    for index in range(60):
        rng = numpy.random.default_rng([4, index])
        file = bytearray(KINDS[kinds[index % len(kinds)]](rng, *(int(edge) for edge in rng.integers(1, 260, 2))))
        DAMAGES[damage](rng, file)
        wrong += mismatches([(f"{index}", bytes(file))], CONFIGURATIONS[index % len(CONFIGURATIONS)])
    assert wrong == []


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precisions_are_rounded_as_torch_does(dtype):
    batch = [source for _, source in pictures(20, 2)]
    preprocess = cgc.Preprocess({"interpolation": "bilinear"})
    full = torch.from_numpy(preprocess(batch).pixels).to(getattr(torch, dtype)).view(torch.int16)
    for threads in (1, 3):
        half = preprocess(batch, dtype=dtype, threads=threads)
        assert str(half.pixels.dtype) == dtype
        numpy.testing.assert_array_equal(half.pixels.view(numpy.int16), full.numpy())
    last = preprocess(batch, dtype=dtype, layout="NHWC").pixels.view(numpy.int16)
    numpy.testing.assert_array_equal(last.transpose(0, 3, 1, 2), full.numpy())


def test_uint8_is_the_picture_before_normalization():
    batch = [source for _, source in pictures(20, 3)]
    plain = cgc.Preprocess({"mean": (0, 0, 0), "std": (1, 1, 1)})
    bytes_ = plain(batch, dtype="uint8").pixels
    assert bytes_.shape == (20, 224, 224, 3)
    numpy.testing.assert_array_equal((plain(batch).pixels * 255).round().astype(numpy.uint8).transpose(0, 2, 3, 1), bytes_)
    numpy.testing.assert_array_equal(plain(batch, dtype="uint8", layout="NCHW").pixels, bytes_.transpose(0, 3, 1, 2))


def test_a_picture_of_pillow_has_a_limit_too():
    image = Image.new("RGB", (5, 4))
    file = io.BytesIO()
    image.save(file, "PNG")
    preprocess = cgc.Preprocess({"size": 8})
    for source in (image, file.getvalue(), file.getvalue()[:45]):  # Before there are pixels.
        (error,) = preprocess([source], max_pixels=19).errors
        assert "has 5 x 4 pixels, more than the limit of 19" in str(error)
    assert preprocess([image, file.getvalue()], max_pixels=20).errors == [None, None]
