"""Deterministic pictures of every kind that Pillow writes, and JPEG files of kinds that it does not write."""
import io
import struct

import numpy
from PIL import Image, ImageCms, ImageFile

#: Samplings (horizontal, vertical) of the components of JPEG files: 4:1:1, 4:4:0, 4:1:0, 4:2:0 with one fine chroma, and others.
SAMPLINGS = (((4, 1), (1, 1), (1, 1)), ((1, 2), (1, 1), (1, 1)), ((4, 2), (1, 1), (1, 1)), ((2, 2), (2, 2), (1, 1)),
             ((2, 2), (1, 2), (2, 1)), ((1, 1), (2, 1), (2, 1)), ((2, 1), (1, 1), (1, 1)), ((2, 2), (1, 1), (1, 1)),
             ((3, 1), (1, 1), (1, 1)), ((1, 4), (1, 1), (1, 1)), ((2, 2),), ((2, 2), (1, 1), (1, 1), (2, 2)))


def segment(marker, data):
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def segments(jpeg):
    """(marker, data) of the segments before the scan."""
    at = 2
    while jpeg[at + 1] != 0xDA:
        size = struct.unpack(">H", jpeg[at + 2:at + 4])[0]
        yield jpeg[at + 1], jpeg[at + 4:at + 2 + size]
        at += 2 + size


def encoded(image, format, **options):
    file = io.BytesIO()
    ImageFile.MAXBLOCK = max(65536, 8 * image.width * image.height)  # Noise is larger than Pillow expects.
    image.save(file, format, **options)
    return file.getvalue()


def huffman_tables():
    """The standard tables: {class and slot: {symbol: bits as text}}, and their segments."""
    jpeg = encoded(Image.new("RGB", (8, 8)), "JPEG")
    tables, kept = {}, b""
    for marker, data in segments(jpeg):
        if marker in (0xC4, 0xDB):
            kept += segment(marker, data)
        while marker == 0xC4 and data:
            counts, code, at, table = data[1:17], 0, 17, tables.setdefault(data[0], {})
            for length, count in enumerate(counts, 1):
                for _ in range(count):
                    table[data[at]] = f"{code:0{length}b}"
                    code, at = code + 1, at + 1
                code *= 2
            data = data[at:]
    return tables, kept


def _signed(value, size):
    return f"{value if value > 0 else value + (1 << size) - 1:0{size}b}" if size else ""


def random_jpeg(rng, width, height, samplings, ids=(1, 2, 3, 4), adobe=None, restart=0):
    """A baseline JPEG file of random coefficients. adobe: the transform in Adobe's marker, or no marker."""
    tables, kept = huffman_tables()
    wide, high = max(h for h, _ in samplings), max(v for _, v in samplings)
    columns, rows = -(-width // (8 * wide)), -(-height // (8 * high))
    if len(samplings) == 1:  # A scan of one component has no multiples.
        columns, rows, samplings = -(-width // 8), -(-height // 8), [(1, 1)]
    dc, scan, bits, last = [0] * len(samplings), b"", [], columns * rows - 1
    for unit in range(columns * rows):
        for component, (h, v) in enumerate(samplings):
            slot = int(component > 0)
            for _ in range(h * v):
                value = int(numpy.clip(dc[component] + rng.integers(-20, 21), -60, 60))
                difference, dc[component] = value - dc[component], value
                size = abs(difference).bit_length()
                bits.append(tables[slot][size] + _signed(difference, size))
                for run, coefficient in zip(rng.integers(0, 12, 4).tolist(), rng.integers(-9, 10, 4).tolist()):
                    if coefficient:
                        size = abs(coefficient).bit_length()
                        bits.append(tables[16 + slot][run * 16 + size] + _signed(coefficient, size))
                bits.append(tables[16 + slot][0])
        if unit == last or restart and unit % restart == restart - 1:
            text = "".join(bits)
            text += "1" * (-len(text) % 8)
            scan += int(text, 2).to_bytes(len(text) // 8, "big").replace(b"\xff", b"\xff\x00")
            if unit != last:
                scan += bytes([0xFF, 0xD0 + unit // restart % 8])
            bits, dc = [], [0] * len(samplings)
    head = kept if adobe is None else segment(0xEE, b"Adobe" + struct.pack(">HHHB", 100, 0, 0, adobe)) + kept
    frame = struct.pack(">BHHB", 8, height, width, len(samplings))
    frame += b"".join(bytes([ids[i], h * 16 + v, int(i > 0)]) for i, (h, v) in enumerate(samplings))
    start = bytes([len(samplings)]) + b"".join(bytes([ids[i], 17 * int(i > 0)]) for i in range(len(samplings))) + b"\0\x3f\0"
    return (b"\xff\xd8" + head + segment(0xC0, frame) + segment(0xDD, struct.pack(">H", restart)) + segment(0xDA, start) + scan
            + b"\xff\xd9")


def noise(rng, width, height, mode):
    """Noise of some scale: the smaller `mode` has bands of, the larger the areas."""
    bands = len(Image.new(mode, (1, 1)).getbands())
    coarse = 2 ** int(rng.integers(0, 6))
    values = rng.integers(0, 256, (height // coarse + 1, width // coarse + 1, bands), numpy.uint8)
    values = values.repeat(coarse, 0).repeat(coarse, 1)[:height, :width]
    if coarse > 1:
        values = values ^ rng.integers(0, 16, (height, width, 1), numpy.uint8)
    return Image.frombytes(mode, (width, height), numpy.ascontiguousarray(values).tobytes())


def _jpeg(rng, width, height, mode="RGB", **options):
    return encoded(noise(rng, width, height, mode), "JPEG", quality=int(rng.integers(20, 100)), **options)


def _rotated(rng, width, height):
    exif = Image.Exif()
    exif[0x0112] = 6
    return _jpeg(rng, width, height, exif=exif)


def _ycck(rng, width, height):
    return _jpeg(rng, width, height, "CMYK").replace(b"Adobe\0\x64\0\0\0\0\0", b"Adobe\0\x64\0\0\0\0\2")


def _palette(rng, width, height, **options):
    return encoded(noise(rng, width, height, "RGB").quantize(int(rng.integers(2, 200))), "PNG", **options)


def _deep(rng, width, height):
    return encoded(Image.fromarray(rng.integers(0, 65536, (height, width), numpy.uint16)), "PNG")


def _animation(rng, width, height):
    first, *others = (noise(rng, width, height, "RGB").quantize(64) for _ in range(3))
    return encoded(first, "GIF", save_all=True, append_images=others)


def _sampled(rng, width, height, **options):
    width, height = min(width, 120), min(height, 120)  # Slow.
    samplings = SAMPLINGS[int(rng.integers(len(SAMPLINGS)))]
    if len(samplings) == 4:
        options["adobe"] = int(rng.choice([0, 2]))
    return random_jpeg(rng, width, height, samplings, restart=int(rng.integers(0, 4)), **options)


#: Name: a function of (random numbers, width, height) to a source.
KINDS = {
    "jpeg 4:4:4": lambda *a: _jpeg(*a, subsampling=0),
    "jpeg 4:2:2": lambda *a: _jpeg(*a, subsampling=1),
    "jpeg 4:2:0": lambda *a: _jpeg(*a, subsampling=2),
    "jpeg progressive 4:2:0": lambda *a: _jpeg(*a, progressive=True),
    "jpeg progressive 4:2:2": lambda *a: _jpeg(*a, progressive=True, subsampling=1, optimize=True),
    "jpeg restarts 4:2:0": lambda *a: _jpeg(*a, restart_marker_blocks=3),
    "jpeg restarts 4:2:2": lambda *a: _jpeg(*a, restart_marker_rows=1, subsampling=1),
    "jpeg grey": lambda *a: _jpeg(*a, mode="L"),
    "jpeg grey progressive": lambda *a: _jpeg(*a, mode="L", progressive=True),
    "jpeg CMYK": lambda *a: _jpeg(*a, mode="CMYK"),
    "jpeg YCCK": _ycck,
    "jpeg rotated by EXIF": _rotated,
    "jpeg ICC": lambda *a: _jpeg(*a, icc_profile=ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()),
    "jpeg RGB": lambda *a: _jpeg(*a, keep_rgb=True),
    "jpeg other samplings": _sampled,
    "jpeg other samplings RGB": lambda *a: _sampled(*a, adobe=0),
    "jpeg named components": lambda *a: _sampled(*a, ids=b"RGBA"),
    "png": lambda *a: encoded(noise(*a, "RGB"), "PNG"),
    "png alpha": lambda *a: encoded(noise(*a, "RGBA"), "PNG"),
    "png grey": lambda *a: encoded(noise(*a, "L"), "PNG"),
    "png grey alpha": lambda *a: encoded(noise(*a, "LA"), "PNG"),
    "png palette": _palette,
    "png palette transparent": lambda *a: _palette(*a, transparency=1),
    "png 1 bit": lambda *a: encoded(noise(*a, "L").convert("1"), "PNG"),
    "png 16 bits": _deep,
    "gif animated": _animation,
    "webp": lambda *a: encoded(noise(*a, "RGB"), "WEBP", quality=60, method=0),
    "webp alpha": lambda *a: encoded(noise(*a, "RGBA"), "WEBP", quality=60, method=0),
    "bmp": lambda *a: encoded(noise(*a, "RGB"), "BMP"),
    "tiff CMYK": lambda *a: encoded(noise(*a, "CMYK"), "TIFF"),
    "tiff float": lambda rng, w, h: encoded(Image.fromarray(rng.uniform(0, 300, (h, w)).astype(numpy.float32)), "TIFF"),
    "image YCbCr": lambda *a: noise(*a, "YCbCr"),
    "image HSV": lambda *a: noise(*a, "HSV"),
    "array": lambda *a: numpy.asarray(noise(*a, "RGB")),
}
#: Those that take little time for millions of pixels.
FAST = [name for name in KINDS if name.startswith(("jpeg", "array", "bmp"))]


def pictures(count, seed=0, largest=(700, 700)):
    """(name, source) of `count` pictures, from 1 x 1 to `largest` (width, height), mostly small, of all aspect ratios."""
    for index in range(count):
        rng = numpy.random.default_rng([seed, index])
        width, height = (int(edge ** rng.uniform(0, 1) + 0.5) for edge in largest)
        if index % 3 == 0:  # Near the sizes of models, and typical ones.
            width, height = (int(rng.choice([223, 224, 225, 256, 336, 384, 500, 640])) for _ in range(2))
            width, height = min(width, largest[0]), min(height, largest[1])
        kinds = list(KINDS) if width * height < 4_000_000 else FAST
        kind = kinds[index % len(kinds)]
        yield f"{index}: {kind} {width} x {height}", KINDS[kind](rng, width, height)
