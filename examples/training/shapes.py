"""Draws shapes and their names as training data for a small CLIP model, whose configuration is shapes.json.

    shapes.py --out shapes
    shapes.py --out shapes --format tar --samples 640 --shards 4

The 64 captions, such as "a red circle", are eight colors of eight shapes; sample i has caption i modulo 64.
Place, size and background vary with --seed. An image is normalized as open_clip does it, a caption is one
token for each word between a first and a last token, which has the largest id.

The folder of --out gets image.npy and text.npy, or shapes.safetensors, or shapes-0.tar, ..., and captions.txt.
"""
import argparse
import io
import math
import os
import tarfile

import numpy

COLORS = {"red": (214, 39, 40), "green": (44, 160, 44), "blue": (31, 119, 220), "yellow": (240, 220, 40),
          "purple": (148, 70, 200), "orange": (255, 127, 14), "white": (245, 245, 245), "cyan": (23, 190, 207)}
# Corners as (angle in degrees, radius); a circle, a ring and a cross are drawn in another way.
CORNERS = {"square": [(a, 1.0) for a in range(45, 360, 90)], "diamond": [(a, 1.0) for a in range(0, 360, 90)],
           "triangle": [(a, 1.1) for a in (270, 30, 150)], "hexagon": [(a, 1.0) for a in range(0, 360, 60)],
           "star": [(270 + 36 * i, 1.1 if i % 2 == 0 else 0.45) for i in range(10)]}
SHAPES = ["circle", "ring", "cross", *CORNERS]
CAPTIONS = [f"a {color} {shape}" for color in COLORS for shape in SHAPES]
WORDS = ["a", *COLORS, *SHAPES]
PAD, FIRST, LAST = 0, 1, 31  # Tokens; words are between. A CLIP model pools at the largest token.
MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)  # Those of open_clip.


def tokens(caption, length):
    ids = [FIRST, *(WORDS.index(word) + FIRST + 1 for word in caption.split()), LAST]
    return ids + [PAD] * (length - len(ids))


def draw(caption, size, random):
    from PIL import Image, ImageDraw
    _, color, shape = caption.split()
    scale = 4  # Drawn larger, then reduced, for smooth edges.
    picture = Image.new("RGB", (size * scale, size * scale), (int(random.integers(10, 60)),) * 3)
    pen = ImageDraw.Draw(picture)
    radius = random.uniform(0.26, 0.36) * size * scale
    x, y = (random.uniform(radius, size * scale - radius) for _ in range(2))
    box, fill = (x - radius, y - radius, x + radius, y + radius), COLORS[color]
    if shape == "circle":
        pen.ellipse(box, fill)
    elif shape == "ring":
        pen.ellipse(box, outline=fill, width=int(radius * 0.4))
    elif shape == "cross":
        arm = radius * 0.3
        pen.rectangle((x - radius, y - arm, x + radius, y + arm), fill)
        pen.rectangle((x - arm, y - radius, x + arm, y + radius), fill)
    else:
        pen.polygon([(x + r * radius * math.cos(math.radians(a)), y + r * radius * math.sin(math.radians(a)))
                     for a, r in CORNERS[shape]], fill)
    pixels = numpy.asarray(picture.resize((size, size), Image.Resampling.BOX), numpy.float32) / 255
    return ((pixels - numpy.float32(MEAN)) / numpy.float32(STD)).transpose(2, 0, 1)


def write_tar(path, samples):
    with tarfile.open(path, "w") as archive:
        for key, arrays in samples:
            for name, array in arrays.items():
                file = io.BytesIO()
                numpy.save(file, array)
                member = tarfile.TarInfo(f"{key:06}.{name}.npy")
                member.size = file.tell()
                file.seek(0)
                archive.addfile(member, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, metavar="FOLDER")
    parser.add_argument("--format", choices=("npy", "safetensors", "tar"), default="npy")
    parser.add_argument("--samples", type=int, default=len(CAPTIONS))
    parser.add_argument("--shards", type=int, default=1, help="tar files")
    parser.add_argument("--image-size", type=int, default=32)
    parser.add_argument("--context-length", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random = numpy.random.default_rng(args.seed)
    captions = [CAPTIONS[i % len(CAPTIONS)] for i in range(args.samples)]
    image = numpy.ascontiguousarray(numpy.stack([draw(c, args.image_size, random) for c in captions]))
    text = numpy.array([tokens(c, args.context_length) for c in captions], numpy.int64)
    os.makedirs(args.out, exist_ok=True)

    def path(name):
        return os.path.join(args.out, name)
    if args.format == "npy":
        numpy.save(path("image.npy"), image)
        numpy.save(path("text.npy"), text)
    elif args.format == "safetensors":
        from safetensors.numpy import save_file
        save_file({"image": image, "text": text}, path("shapes.safetensors"))
    else:
        for shard in range(args.shards):
            write_tar(path(f"shapes-{shard}.tar"), [(i, {"image": image[i], "text": text[i]})
                                                    for i in range(shard, args.samples, args.shards)])
    with open(path("captions.txt"), "w", encoding="utf-8") as file:
        file.writelines(caption + "\n" for caption in captions)


if __name__ == "__main__":
    main()
