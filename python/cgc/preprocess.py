"""Preprocess: pictures as the inputs of an image model, equal to the bit to open_clip's transform for inference."""
from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy

from ._arrays import new_numpy
from ._errors import Error, InvalidFileError, OutOfMemoryError, UnsupportedError, UsageError, error_of
from ._images import Sizes

if TYPE_CHECKING:
    from PIL import Image

#: The release of Pillow whose results are equalled.
PILLOW = "13.0.0"
#: The most pixels of a picture by default: where Pillow refuses a decompression bomb.
MAX_PIXELS = 178_956_970
DTYPES = ("float32", "float16", "bfloat16", "uint8")
_INTERPOLATIONS = ("bicubic", "bilinear", "random")
_RESIZE_MODES = ("shortest", "longest", "squash")
#: open_clip's PreprocessCfg.
_DEFAULTS: dict[str, Any] = {
    "size": 224, "mode": "RGB", "mean": (0.48145466, 0.4578275, 0.40821073), "std": (0.26862954, 0.26130258, 0.27577711),
    "interpolation": "bicubic", "resize_mode": "shortest", "fill_color": 0}
#: What transformers' processors have besides.
_EDGE = "edge"


@dataclass(frozen=True)
class Images:
    """The result of a Preprocess."""

    #: [n, 3, height, width], or [n, height, width, 3]. The row of a picture that failed is zeros.
    pixels: numpy.ndarray
    #: For each picture None, or why it failed: an Error that was not raised.
    errors: list[Error | None]
    #: The messages of the errors without number and path of the picture, by that number.
    reasons: dict[int, str]


@dataclass(frozen=True)
class Packed:
    """The result of Preprocess.pack(): what a plan with the op cgc.resize takes."""

    #: uint8 [n, size of a picture in bytes]: the pixels that the results need, RGB, row by row.
    pixels: numpy.ndarray
    #: int32 [n, integers]: how each picture is resized. Zeros, which give the color of value 0, for one that failed.
    table: numpy.ndarray
    #: As those of Images.
    errors: list[Error | None]
    reasons: dict[int, str]


class Preprocess:
    """open_clip's transform for inference, with these settings. Any number of threads may call it.

    config: a mapping with keys of open_clip's PreprocessCfg, whose defaults apply to missing keys and None:
        size: of the result in pixels, an int or [height, width].
        mode: "RGB".
        mean, std: 3 numbers each, in units of 255.
        interpolation: "bicubic" or "bilinear"; "random" is that of training, and bicubic in inference.
        resize_mode: "shortest" resizes the shorter edge to `size` and crops the center, "longest" resizes the longer
            edge and pads, "squash" resizes both edges. "shortest" with two different edges is always bicubic.
        fill_color: the value of all channels beside a picture that is padded, 0 to 255.
        edge: with "shortest", the length of the shorter edge after the resize, of which `size` is cropped as the processors of
            transformers on Pillow do: offsets are rounded down. Not of open_clip; at least as long as both edges of `size`.
    Raises UsageError for other keys and values.
    """

    def __init__(self, config: Mapping[str, Any]):
        if not isinstance(config, Mapping):
            raise UsageError(f"the configuration is a {type(config).__name__}; give a mapping with keys of {_listed(_DEFAULTS)}")
        if unknown := [key for key in config if key not in _DEFAULTS and key != _EDGE]:
            raise UsageError(f"the configuration has the key {unknown[0]!r}; it may have {_listed([*_DEFAULTS, _EDGE])}")
        given = {key: default if config.get(key) is None else config[key] for key, default in _DEFAULTS.items()}
        self.size = _size(given["size"])  #: Of the result: (height, width), in pixels.
        _one_of("mode", given["mode"], ("RGB",))
        _one_of("interpolation", given["interpolation"], _INTERPOLATIONS)
        _one_of("resize_mode", given["resize_mode"], _RESIZE_MODES)
        fill = given["fill_color"]
        if not _is_int(fill) or not 0 <= fill <= 255:
            raise UsageError(f"fill_color is {fill!r}; give an int from 0 to 255")
        self._config = {**given, "size": list(self.size), "mean": _numbers("mean", given["mean"]),
                        "std": _numbers("std", given["std"]), "fill_color": int(fill)}
        if 0 in numpy.asarray(self._config["std"], numpy.float32):
            raise UsageError(f"std is {self._config['std']}; it divides, and must not be 0")
        mode, filter, edge = given["resize_mode"], given["interpolation"], config.get(_EDGE)
        if edge is not None:
            if not _is_int(edge) or mode != "shortest" or not max(self.size) <= edge <= 8192:
                raise UsageError(f"edge is {edge!r}; give an int from {max(self.size)} to 8192, with resize_mode \"shortest\"")
            self._config[_EDGE] = int(edge)
        elif mode == "shortest" and self.size[0] != self.size[1]:
            filter = "bicubic"
        self._bilinear = filter == "bilinear"
        # torchvision's CenterCrop pads with 0.
        self._fill = self._config["fill_color"] if mode == "longest" else 0
        self._tables: dict[str, Any] = {}  # By dtype.
        self._sizes = Sizes(*self.size, "bilinear" if self._bilinear else "bicubic", mode, self._fill,
                            edge or 0)

    def to_json(self) -> dict[str, Any]:
        """The settings for json.dumps, and as "pillow" the release of Pillow whose results are equalled."""
        return {**self._config, "pillow": PILLOW}

    @classmethod
    def from_json(cls, settings: Mapping[str, Any]) -> Preprocess:
        """The Preprocess whose to_json() gave `settings`. Raises UsageError for those of another release of Pillow."""
        if settings.get("pillow") != PILLOW:
            raise UsageError(f"the settings are those of Pillow {settings.get('pillow')}, and this cgc equals Pillow {PILLOW}; "
                             "make them anew with this cgc")
        return cls({key: value for key, value in settings.items() if key != "pillow"})

    def of_results(self) -> Preprocess:
        """The Preprocess of pictures in the size of the result: it only normalizes."""
        return Preprocess({**{key: value for key, value in self._config.items() if key != _EDGE}, "resize_mode": "squash"})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Preprocess) and self._config == other._config

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"cgc.Preprocess({self._config!r})"

    def __call__(self, sources: Iterable[Any], dtype: str = "float32", layout: str | None = None, threads: int | None = None,
                 max_pixels: int = MAX_PIXELS) -> Images:
        """Preprocesses pictures.

        sources: paths (str or os.PathLike), files in memory (bytes, bytearray, memoryview), file objects, which are read
            to their end, images of PIL, and arrays uint8 [height, width, 3]. They are not changed.
        dtype: "float32", "float16" and "bfloat16" are normalized, and are open_clip's float32 rounded to the nearest even.
            "uint8" is the picture before the division by 255. bfloat16 needs ml_dtypes.
        layout: "NCHW" or "NHWC" [NHWC for uint8, else NCHW].
        threads: on how many pictures work goes on at a time [the processors that this process may use].
        max_pixels: a picture with more is refused before memory for its pixels is allocated.
        JPEG files need nothing else; other formats, and progressive JPEG files that lack scans, need Pillow.
        A picture that cannot be used has its error in the result, and does not keep others from it. Raises UsageError
        for the other arguments.
        """
        _one_of("dtype", dtype, DTYPES)
        channels_last = _one_of("layout", layout or ("NHWC" if dtype == "uint8" else "NCHW"), ("NCHW", "NHWC")) == "NHWC"
        named, threads = _checked(sources, threads, max_pixels)
        shape = (*self.size, 3) if channels_last else (3, *self.size)
        pixels = new_numpy((len(named), *shape), dtype, "the result")
        if dtype not in self._tables:
            self._tables[dtype] = self.values(pixels.dtype).reshape(-1).view(numpy.uint8)
        table = self._tables[dtype]

        def run(some: Sequence[Any], start: int, threads: int) -> list[tuple[int, str] | None]:
            rows = pixels[start:start + len(some)].reshape(-1).view(numpy.uint8)
            return self._sizes.run(some, table, channels_last, rows, threads, max_pixels)

        errors, reasons = self._read(named, run, threads, max_pixels)
        pixels[list(reasons)] = 0
        return Images(pixels, errors, reasons)

    def pack(self, sources: Iterable[Any], size: int, taps: int, threads: int | None = None, max_pixels: int = MAX_PIXELS) -> Packed:
        """Decodes pictures for a plan that resizes and normalizes them with equal results, as the entry encode_pictures of a
        model folder.

        size: bytes of a picture, at least those of the result. A picture of which the result needs more is resized here,
            and so is one that needs more than `taps` taps for a pixel and one of CMYK.
        sources, threads, max_pixels: as in a call.
        """
        least = 3 * self.size[0] * self.size[1]
        if not _is_int(size) or size < least:
            raise UsageError(f"size is {size!r}; give an int of at least {least}, the bytes of a result")
        if not _is_int(taps) or not 1 <= taps <= 8192:
            raise UsageError(f"taps is {taps!r}; give an int from 1 to 8192")
        named, threads = _checked(sources, threads, max_pixels)
        pixels = new_numpy((len(named), size), "uint8", "the pixels")
        table = new_numpy((len(named), 3 + sum(self.size) * (1 + taps)), "int32", "the table")

        def run(some: Sequence[Any], start: int, threads: int) -> list[tuple[int, str] | None]:
            end = start + len(some)
            return self._sizes.pack(some, pixels[start:end], table[start:end], threads, max_pixels)

        errors, reasons = self._read(named, run, threads, max_pixels)
        pixels[list(reasons)] = 0
        table[list(reasons)] = 0
        return Packed(pixels, table, errors, reasons)

    def _read(self, named: list[Any], run: Callable[[Sequence[Any], int, int], list[tuple[int, str] | None]], threads: int,
              max_pixels: int) -> tuple[list[Error | None], dict[int, str]]:
        """Has the extension read the pictures: run(sources, the number of the first, threads). Returns the errors of Images."""
        errors: list[Error | None] = [None] * len(named)
        reasons: dict[int, str] = {}

        def fail(index: int, error: Error) -> None:
            reasons[index] = str(error)
            errors[index] = type(error)(f"{_name(index, named[index])} {error}")

        # What the extension takes, and what is left to Pillow.
        prepared: dict[int, Any] = {}
        others: dict[int, Any] = {}
        for index, source in enumerate(named):
            try:
                if _is_pil(source):
                    others[index] = source
                else:
                    prepared[index] = _prepare(source)
            except Error as error:
                fail(index, error)
        # Neighbors go to the extension in one call: those that it cannot take are pictures of no pixels to it.
        failures = run([prepared.get(index, _NO_PIXELS) for index in range(len(named))], 0, threads)
        for index, source in prepared.items():
            if (failure := failures[index]) is None:
                continue
            code, message = failure
            if code == 0:
                others[index] = source
            else:
                fail(index, error_of(code, message))

        def finish(index: int) -> None:
            try:
                (failure,) = run([self._load(others[index], max_pixels)], index, 1)
                if failure is not None:
                    raise error_of(*failure)
            except Error as error:
                fail(index, error)
            except MemoryError:
                fail(index, OutOfMemoryError("does not fit into memory"))
            except Exception as error:  # Of Pillow, which raises many kinds.
                kind = type(error).__name__  # The text of an UnidentifiedImageError is a path, or the address of an object.
                cause = kind if kind == "UnidentifiedImageError" else f"{kind}: {error}"
                fail(index, InvalidFileError(f"cannot be decoded by Pillow ({cause})"))

        if others:
            with ThreadPoolExecutor(min(threads, len(others))) as pool:
                list(pool.map(finish, others))
        return errors, dict(sorted(reasons.items()))

    def values(self, dtype: Any = "float32") -> Any:
        """[3, 256]: the result for each value of each channel: (value / 255 - mean) / std in float32, as torch computes it."""
        values = numpy.tile(numpy.arange(256, dtype=numpy.uint8), (3, 1))
        if dtype != numpy.uint8:
            mean, std = (numpy.asarray(self._config[name], numpy.float32)[:, None] for name in ("mean", "std"))
            values = ((values.astype(numpy.float32) / numpy.float32(255) - mean) / std).astype(dtype)
        return values

    def _load(self, source: Any, max_pixels: int) -> Any:
        """uint8 [height, width, 3] of a picture that Pillow decodes."""
        if not _is_pil(source):
            try:
                from PIL import Image
            except ImportError:
                raise UnsupportedError("is no JPEG, or lacks scans of one, which is left to Pillow; pip install pillow") from None
            file = os.fsdecode(source) if isinstance(source, bytes) else io.BytesIO(source)
            with Image.open(file) as image:
                return self._pixels_of(image, max_pixels)
        return self._pixels_of(source, max_pixels)

    def _pixels_of(self, image: Image.Image, max_pixels: int) -> Any:
        if image.width * image.height > max_pixels:
            raise InvalidFileError(f"has {image.width} x {image.height} pixels, more than the limit of {max_pixels}")
        # open_clip resizes in the picture's own mode and then converts to RGB. With grey the order does not matter.
        if image.mode not in ("RGB", "L"):
            image = self._resized_by_pillow(image)
        return numpy.asarray(image if image.mode == "RGB" else image.convert("RGB"))

    def _resized_by_pillow(self, image: Image.Image) -> Image.Image:
        """A picture of any mode in the size of the result. Pillow resizes palettes, alpha and 16 bits each in its own way."""
        from PIL import Image, ImageOps
        height, width, top, left = self._sizes.place(image.height, image.width)
        if image.size != (width, height):
            image = image.resize((width, height), Image.Resampling.BILINEAR if self._bilinear else Image.Resampling.BICUBIC)
        border = (max(0, -left), max(0, -top), max(0, self.size[1] - width + min(left, 0)),
                  max(0, self.size[0] - height + min(top, 0)))
        if any(border):
            palette = image.getpalette() if image.mode == "P" else None
            bands = len(image.getbands())
            image = ImageOps.expand(image, border, self._fill if bands == 1 else (self._fill,) * bands)
            if palette:
                image.putpalette(palette)
        top, left = max(top, 0), max(left, 0)
        return image.crop((left, top, left + self.size[1], top + self.size[0]))


def _checked(sources: Any, threads: int | None, max_pixels: int) -> tuple[list[Any], int]:
    """The sources and the threads. UsageError for what __call__() does not take."""
    if threads is None:
        threads = len(os.sched_getaffinity(0))
    for name, value, most in (("threads", threads, 1024), ("max_pixels", max_pixels, 2**31 - 1)):
        if not _is_int(value) or not 1 <= value <= most:
            raise UsageError(f"{name} is {value!r}; give an int from 1 to {most}")
    if isinstance(sources, (str, bytes, bytearray, memoryview, os.PathLike)) or not isinstance(sources, Iterable):
        raise UsageError(f"sources is of type {type(sources).__name__}; give a list of pictures, such as [picture]")
    return list(sources), threads


_NO_PIXELS = numpy.empty((0, 0, 3), numpy.uint8)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _one_of(key: str, value: Any, accepted: Sequence[str]) -> str:
    if value not in accepted:
        raise UsageError(f"{key} is {value!r}; give {'one of ' if len(accepted) > 1 else ''}{_listed(accepted)}")
    return str(value)


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, numpy.integer)) and not isinstance(value, bool)


def _size(value: Any) -> tuple[int, int]:
    edges = [value, value] if _is_int(value) else value
    if not isinstance(edges, (list, tuple)) or len(edges) != 2 or not all(_is_int(edge) and 1 <= edge <= 8192 for edge in edges):
        raise UsageError(f"size is {value!r}; give an int or [height, width], of 1 to 8192 pixels")
    return int(edges[0]), int(edges[1])


def _numbers(key: str, value: Any) -> list[float]:
    if not isinstance(value, (list, tuple)) or len(value) != 3 or not all(
            isinstance(number, (int, float)) and numpy.isfinite(number) for number in value):
        raise UsageError(f"{key} is {value!r}; give 3 numbers, for red, green and blue")
    return [float(number) for number in value]


def _is_pil(source: Any) -> bool:
    # While another thread imports Pillow, the module has no Image yet.
    image = getattr(sys.modules.get("PIL.Image"), "Image", None)
    return image is not None and isinstance(source, image)


def _prepare(source: Any) -> Any:
    """What the extension takes: a path as bytes, a file as uint8 [n], or uint8 [height, width, 3]."""
    if isinstance(source, (str, os.PathLike)):
        try:
            path = os.fsencode(source)
        except UnicodeEncodeError as error:
            raise InvalidFileError(f"has a path that no file has ({error.reason})") from None
        if b"\0" in path:
            raise InvalidFileError("has a path with a null byte")
        if not os.path.isfile(path) and not os.path.isdir(path) and os.path.exists(path):  # Opening a FIFO would wait.
            raise InvalidFileError("is no regular file")
        return path
    if isinstance(source, numpy.ndarray):
        if source.dtype != numpy.uint8 or source.ndim != 3 or source.shape[2] != 3:
            raise UsageError(f"is an array {source.dtype} {list(source.shape)}; give uint8 [height, width, 3]")
        return numpy.ascontiguousarray(source)
    if hasattr(source, "read"):
        try:
            source = source.read()
        except Exception as error:
            raise InvalidFileError(f"cannot be read: {error}") from None
    if isinstance(source, (bytes, bytearray, memoryview)):
        return numpy.frombuffer(source, numpy.uint8) if len(source) else numpy.empty(0, numpy.uint8)
    raise UsageError(f"is of type {type(source).__name__}; give a path, the bytes of a file, a file object, an image of PIL, or an "
                     "array uint8 [height, width, 3]")


def _name(index: int, source: Any) -> str:
    """The begin of a message about a picture."""
    return f"picture {index}, {os.fspath(source)!r}," if isinstance(source, (str, os.PathLike)) else f"picture {index}"
