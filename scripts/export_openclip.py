#!/usr/bin/env python3
"""Exports an OpenCLIP model as TorchScript with the methods forward, encode_image, encode_text.

    export_openclip.py --model ViT-B-32 --checkpoint weights.safetensors --precision fp16 --out model.pt
    export_openclip.py --config tests/data/tiny.json --out tiny.pt

With --script it scripts the model instead of tracing it. open_clip scripts a few of its families;
for CoCa the file then has only forward of these methods.

The precision is what open_clip itself gives its users: fp16 and bf16 keep LayerNorm, the
embeddings and logit_scale in fp32 and hold the other weights, and the image, in the low precision.

Without --checkpoint the weights are open_clip's random initialization, made from --seed, in which
every tensor that would be constant (LayerNorm, biases, logit_scale) is spread a little: no two
parameters are equal, so a mixed-up parameter changes the result. The weights do not depend on the
device, and those of fp16 and bf16 are those of fp32, rounded.

The file also holds the names of the outputs, in extra/cgc.json (docs/scripted-modules.md). Every
method of the saved file is run once against the eager model, at another batch size than the traced
one. The last line on stdout says what was written, errors go to stderr. Exit code: 0 done,
1 failed, 2 usage.
"""
import argparse
import json
import logging
import os
import shutil
import tempfile

from openclip_checkpoint import check_checkpoint, load_trained
from openclip_model import (Failure, add_arguments, cgc_type, check_model, check_output, first_line, import_open_clip,
                            model_name, run)

METHODS = {"forward": ("image", "text"), "encode_image": ("image",), "encode_text": ("text",)}
# The names of the outputs in the dicts of open_clip; logit_bias only if the model has one.
OUTPUTS = {"forward": ("image_features", "text_features", "logit_scale", "logit_bias"),
           "encode_image": ("image_features",), "encode_text": ("text_features",)}
# The largest relative L2 of an output between the reloaded file and the eager model.
TOLERANCE = {"fp32": 1e-5, "fp16": 1e-2, "bf16": 5e-2}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--precision", choices=tuple(TOLERANCE), default="fp32")
    parser.add_argument("--out", required=True, metavar="FILE.pt")
    parser.add_argument("--checkpoint", metavar="FILE", help="trained weights; without it, RANDOM WEIGHTS")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where to trace")
    parser.add_argument("--seed", type=int, default=0, help="of random weights and inputs")
    parser.add_argument("--script", action="store_true",
                        help="script the model (torch.jit.script) instead of tracing it")
    parser.add_argument("--batch", type=int, default=2, help="batch size of the traced example")
    args = parser.parse_args()
    if args.batch < 1:
        parser.error("--batch must be at least 1")
    return args


def check_arguments(args):
    """Checks the arguments before the slow imports."""
    check_output("--out", args.out, [path for path in (args.config, args.checkpoint) if path])
    check_model(args)
    if args.checkpoint is not None:
        check_checkpoint(args.checkpoint, model_name(args))


def spread_constants(model, torch, seed):
    """Spreads every constant tensor around its value, and NaN, which open_clip left uninitialized,
    around 0: with the same values on every machine."""
    generator = torch.Generator().manual_seed(seed)
    for value in model.state_dict().values():
        if value.is_floating_point() and value.isnan().any():
            value.zero_()
        if value.is_floating_point() and torch.all(value == value.flatten()[0]):
            noise = torch.randn(value.shape, generator=generator)
            old = value.float()
            value.copy_(torch.where(old == 0, 0.02 * noise, old * (1 + 0.1 * noise)))


def create_initialized(args, name, torch, open_clip):
    """The model with open_clip's random initialization. What that leaves uninitialized is NaN."""
    torch.manual_seed(args.seed)
    torch.use_deterministic_algorithms(True)  # fills memory that open_clip forgets to, with NaN
    try:
        return open_clip.create_model(name, precision=args.precision, pretrained_text=False)
    except Exception as error:
        raise Failure(f"cannot make {name}: {first_line(error)}")
    finally:
        torch.use_deterministic_algorithms(False)


def create_random(args, name, torch, open_clip):
    model = create_initialized(args, name, torch, open_clip)
    spread_constants(model, torch, args.seed)
    return model


def example_inputs(args, model, batch, torch, open_clip):
    generator = torch.Generator().manual_seed(args.seed)
    size = model.visual.image_size
    height, width = size if isinstance(size, (tuple, list)) else (size, size)
    image = torch.randn((batch, 3, height, width), generator=generator)
    tower = getattr(model, "text", model)
    # The number of tokens that open_clip's tokenizer of this model makes; towers of transformers take more.
    length = open_clip.get_model_config(model_name(args))["text_cfg"].get("context_length", 77)
    text = torch.randint(tower.vocab_size, (batch, length), generator=generator)
    dtype = open_clip.get_input_dtype(args.precision) or torch.float32
    return {"image": image.to(args.device, dtype), "text": text.to(args.device)}


def outputs(result, torch):
    """The outputs of a method, which returned a tensor, a tuple or a dict, by name or index."""
    if isinstance(result, torch.Tensor):
        result = (result,)
    return result if isinstance(result, dict) else dict(enumerate(result))


def check(args, model, path, torch, open_clip):
    """The largest relative L2 between the saved file and the eager model over all outputs."""
    saved = torch.jit.load(path, map_location=args.device)
    inputs = example_inputs(args, model, args.batch + 1, torch, open_clip)
    worst = 0.0
    for method, names in METHODS.items():
        if not hasattr(saved, method):
            continue
        arguments = [inputs[name] for name in names]
        expected, actual = getattr(model, method)(*arguments), getattr(saved, method)(*arguments)
        expected, actual = outputs(expected, torch), outputs(actual, torch)
        if expected.keys() != actual.keys():
            raise Failure(f"{method}: the exported model has the outputs {[*actual]} for {[*expected]}")
        for name, want in expected.items():
            got = actual[name]
            error = ((got.double() - want.double()).norm() / want.double().norm()).item()
            if got.shape != want.shape or not error <= TOLERANCE[args.precision]:
                raise Failure(f"{method}: output {name} of the exported model differs from eager: "
                              f"{[*got.shape]} for {[*want.shape]}, relative L2 {error:.1e}")
            worst = max(worst, error)
    return worst


def trace(model, inputs, torch):
    examples = {m: tuple(inputs[name] for name in names) for m, names in METHODS.items()}
    encode_image = model.encode_image
    # CoCa's argument is called images.
    model.encode_image = lambda image, **options: encode_image(image, **options)
    # Not strict: some families return a dict.
    return torch.jit.trace_module(model, examples, check_trace=False, strict=False)


def output_names(exported):
    """The names of the outputs by method. A dict already has names."""
    names = {}
    for method in METHODS:
        if hasattr(exported, method):
            result = getattr(exported, method).schema.returns[0].type
            if result.kind() != "DictType":
                names[method] = OUTPUTS[method][:len(result.elements()) if result.kind() == "TupleType" else 1]
    return names


def script(model, torch):
    try:
        return torch.jit.script(model)
    except Exception as error:
        raise Failure(f"torch.jit.script refuses this model; leave --script out: {first_line(error)}")


def check_space(folder, model):
    """Checks the free disk space first, because LibTorch aborts the process when the disk is full."""
    need = sum(t.nbytes for t in model.state_dict().values()) + 8_000_000
    free = shutil.disk_usage(folder).free
    if free < need:
        raise Failure(f"{folder}: {free / 1e6:.0f} MB free, {need / 1e6:.0f} MB needed")


def save(exported, model, out, extra, check):
    """Writes the file `out` with the extra files `extra` if check(path) of the written file does not
    fail; a failure leaves the old file. Returns the size of the file and the result of the check."""
    # A folder, because the file records the name under which it was written. It is beside the
    # result, so that the rename is atomic.
    folder = os.path.dirname(out) or "."
    check_space(folder, model)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".export-") as scratch:
        partial = os.path.join(scratch, os.path.basename(out))
        exported.save(partial, _extra_files={name: json.dumps(value) for name, value in extra.items()})
        result = check(partial)
        size = os.path.getsize(partial)
        os.replace(partial, out)
    return size, result


def weights_text(args):
    """Says where the weights come from."""
    return (f"weights of {args.checkpoint}" if args.checkpoint
            else f"RANDOM WEIGHTS of seed {args.seed}; --checkpoint FILE takes trained ones")


def export(args):
    """Writes the model and returns the inputs that it was traced with, by name."""
    check_arguments(args)
    logging.disable(logging.WARNING)  # open_clip keeps saying that there are no trained weights
    torch, open_clip = import_open_clip(args)
    if args.device == "cuda" and not torch.cuda.is_available():
        raise Failure("--device cuda: PyTorch sees no CUDA device here; leave --device out")

    with torch.no_grad():
        name = model_name(args)
        model = (load_trained(args, name, open_clip) if args.checkpoint
                 else create_random(args, name, torch, open_clip))
        model = model.to(args.device).eval().requires_grad_(False)
        inputs = example_inputs(args, model, args.batch, torch, open_clip)
        exported = script(model, torch) if args.script else trace(model, inputs, torch)
        size, error = save(exported, model, args.out, {"cgc.json": {"outputs": output_names(exported)}},
                           lambda path: check(args, model, path, torch, open_clip))

    examples = " ".join(f"{name}={cgc_type(tensor)}" for name, tensor in inputs.items())
    how = "scripted, run" if args.script else "traced"
    print(f"{args.out}: {args.model or args.config} {args.precision}, {size / 1e6:.0f} MB, {how} with {examples}, "
          f"relative L2 to eager {error:.1e}, {weights_text(args)}")
    return inputs


def main():
    export(parse_args())


if __name__ == "__main__":
    run("export_openclip", main)
