#!/usr/bin/env python3
"""Makes the inputs of an OpenCLIP model for cgc run: image.npy from pictures, text.npy from prompts.

    preprocess_openclip.py --model ViT-B-32 --image cat.jpg dog.jpg --text "a cat" "a dog"

Pictures and prompts go through open_clip's own transform and tokenizer of this model, several to
one batch. A few models have pretrained weights that were trained with different transforms: for
these --tag chooses the weights.

stdout gets a line for each file, in the syntax of cgc's --input; errors go to stderr. Exit code:
0 done, 1 failed, 2 usage.
"""
import argparse
import logging
import os
import tempfile

from openclip_model import (Failure, Usage, add_arguments, cgc_type, check_input, check_model, check_output, first_line,
                            import_open_clip, model_name, run)

# The dtype of open_clip's images. NumPy has no bf16, which cgc reads from float32.
DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "float32"}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--image", nargs="+", metavar="FILE", default=[], help="pictures, one batch")
    parser.add_argument("--text", nargs="+", metavar="PROMPT", default=[], help="prompts, one batch")
    parser.add_argument("--tag", metavar="TAG", help="the pretrained weights whose transform to use")
    parser.add_argument("--precision", choices=tuple(DTYPES), default="fp32", help="that of the exported model")
    parser.add_argument("--out", metavar="FOLDER", default=".", help="where image.npy and text.npy go")
    args = parser.parse_args()
    if not args.image and not args.text:
        parser.error("nothing to do: give --image FILE, --text PROMPT or both")
    return args


def check_arguments(args):
    """Checks the arguments before the slow imports."""
    if args.out == "":
        raise Usage("--out '': the name is empty; give a folder")
    inputs = [*args.image, *([args.config] if args.config else [])]
    for name, wanted in (("image.npy", args.image), ("text.npy", args.text)):
        if wanted:
            check_output("--out", os.path.normpath(os.path.join(args.out, name)), inputs)
    check_model(args)
    for path in args.image:
        check_input("--image", path)


def transform_of(args, open_clip):
    """open_clip's image transform for inference."""
    from open_clip.transform import PreprocessCfg, image_transform_v2, merge_preprocess_dict
    name = model_name(args)
    base = PreprocessCfg(size=open_clip.get_model_config(name)["vision_cfg"].get("image_size", 224))
    tags = open_clip.list_pretrained_tags_by_model(name)
    if args.tag is not None and args.tag not in tags:
        raise Usage(f"--tag {args.tag}: {name} has no such pretrained weights; "
                    + (f"it has {', '.join(tags)}" if tags else "it has none: leave --tag out"))
    overlays = {tag: merge_preprocess_dict(base, open_clip.get_pretrained_cfg(name, tag))
                for tag in ([args.tag] if args.tag else tags)}
    different = [tag for tag, overlay in overlays.items() if overlay != next(iter(overlays.values()))]
    if different:
        raise Usage(f"the pretrained weights of {name} were trained with different transforms; give --tag, one of "
                    f"{', '.join(tags)}")
    overlay = next(iter(overlays.values()), {})
    return image_transform_v2(PreprocessCfg(**merge_preprocess_dict(base, overlay)), is_train=False)


def images(args, torch, open_clip):
    from PIL import Image
    transform = transform_of(args, open_clip)
    batch = []
    for path in args.image:
        try:
            with Image.open(path) as picture:
                batch.append(transform(picture))
        except Exception as error:
            raise Failure(f"{path}: this is no picture that Pillow reads ({first_line(error)}); give a PNG or JPEG")
    return torch.stack(batch).numpy().astype(DTYPES[args.precision])


def texts(args, open_clip):
    name = model_name(args)
    try:
        tokens = open_clip.get_tokenizer(name)(args.text)
    except Exception as error:
        raise Failure(f"the tokenizer of {name} cannot be had, open_clip downloads some of them ({first_line(error)}); "
                      "run it once where there is a network")
    text_cfg = open_clip.get_model_config(name)["text_cfg"]
    rows = text_cfg.get("vocab_size", open_clip.CLIPTextCfg.vocab_size)
    if "hf_model_name" not in text_cfg and int(tokens.max()) >= rows:
        raise Failure(f"{name}: its tokenizer makes the id {int(tokens.max())}, its vocab_size is {rows}; the "
                      "configuration does not fit the tokenizer")
    return tokens.numpy()


def write(path, array):
    """Writes the whole file or nothing."""
    import numpy
    with tempfile.TemporaryDirectory(dir=os.path.dirname(path) or ".", prefix=".preprocess-") as scratch:
        partial = os.path.join(scratch, "array.npy")
        numpy.save(partial, array)
        os.replace(partial, path)
    print(f"{path}: {os.path.splitext(os.path.basename(path))[0]}={cgc_type(array)}")


def main():
    args = parse_args()
    check_arguments(args)
    logging.disable(logging.WARNING)
    torch, open_clip = import_open_clip(args)
    arrays = {}
    if args.image:
        arrays["image.npy"] = images(args, torch, open_clip)
    if args.text:
        arrays["text.npy"] = texts(args, open_clip)
    for name, array in arrays.items():
        write(os.path.normpath(os.path.join(args.out, name)), array)


if __name__ == "__main__":
    run("preprocess_openclip", main)
