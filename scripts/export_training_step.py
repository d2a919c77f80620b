#!/usr/bin/env python3
"""Exports an OpenCLIP model with its loss as TorchScript: the training step that cgc compiles.

    export_training_step.py --model ViT-B-32 --checkpoint weights.safetensors --batch 64 --out step.pt
    export_training_step.py --config tests/data/tiny.json --freeze 'visual.*' --out step.pt
    export_training_step.py --model coca_ViT-B-32 --image-size 64 --width 128 --layers 2 --out step.pt

The method forward of (image, text) returns loss, image_features, text_features and logit_scale. It is
traced in train mode: dropout drops, and batch norms use and update the statistics of the batch. The loss is open_clip's own for one process, with one label for each pair: CoCaLoss for CoCa models
with open_clip's default weights, SigLipLoss for models with a logit_bias, else ClipLoss; --loss
chooses another. Parameters and buffers have the names of the model's state_dict, so that a
checkpoint of the trained model loads into open_clip. They are fp32; cgc compile --autocast lowers
the precision of the computation. --freeze marks parameters that are not trained.

Without --checkpoint the weights are open_clip's random initialization, made from --seed.
--image-size, --width, --layers and --context-length change the model's configuration, for a small
model of the same kind. The file holds the configuration in extra/open_clip_config.json and the
names of the outputs in extra/cgc.json (docs/scripted-modules.md).

The saved file is run once beside the eager model at another batch size: losses, gradients of all
parameters, and buffers after the step have to agree. The last line on stdout says what was written,
errors go to stderr. Exit code: 0 done, 1 failed, 2 usage.
"""
import argparse
import copy
import fnmatch
import json
import logging
import os
import tempfile

from export_openclip import create_initialized, example_inputs, save, weights_text
from openclip_checkpoint import check_checkpoint, load_trained
from openclip_model import (Failure, Usage, add_arguments, cgc_type, check_model, check_output, did_you_mean,
                            first_line, import_open_clip, model_name, run)

OUTPUTS = ("loss", "image_features", "text_features", "logit_scale")
# The losses by the value of --loss: the class in open_clip, its arguments, and the outputs of the model that it takes.
LOSSES = {"clip": ("ClipLoss", {}, ("image_features", "text_features", "logit_scale", "logit_bias")),
          "siglip": ("SigLipLoss", {}, ("image_features", "text_features", "logit_scale", "logit_bias")),
          "coca": ("CoCaLoss", {"caption_loss_weight": 2.0, "clip_loss_weight": 1.0},
                   ("image_features", "text_features", "logits", "labels", "logit_scale"))}
# The largest relative L2 of a loss, gradient or buffer between the reloaded file and the eager model.
TOLERANCE = 1e-4
# A gradient with a smaller share of the norm of all gradients is rounding noise, and is compared with this share.
NOISE = 1e-3


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--out", required=True, metavar="FILE.pt")
    parser.add_argument("--checkpoint", metavar="FILE", help="weights to start from; without it, RANDOM WEIGHTS")
    parser.add_argument("--loss", choices=tuple(LOSSES), help="the loss [the model's own]")
    parser.add_argument("--freeze", metavar="GLOB", action="append", default=[],
                        help="parameters that are not trained, by name, for example 'visual.*'; may be repeated")
    parser.add_argument("--batch", type=int, default=2, help="batch size of the traced example")
    parser.add_argument("--seed", type=int, default=0, help="of random weights and inputs")
    parser.add_argument("--image-size", type=int, metavar="N", help="of a small model: height and width of images")
    parser.add_argument("--width", type=int, metavar="N", help="of a small model: width of all towers and features")
    parser.add_argument("--layers", type=int, metavar="N", help="of a small model: layers of each tower")
    parser.add_argument("--context-length", type=int, metavar="N", help="tokens of a text")
    parser.set_defaults(precision="fp32", device="cpu")
    args = parser.parse_args()
    for name in ("batch", "image_size", "width", "layers", "context_length"):
        value = getattr(args, name)
        if value is not None and value < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    return args


def check_arguments(args):
    """Checks the arguments before the slow imports."""
    check_output("--out", args.out, [path for path in (args.config, args.checkpoint) if path])
    check_model(args)
    if args.checkpoint is not None:
        check_checkpoint(args.checkpoint, model_name(args))


def set_size(config, option, part, key, value):
    """Sets an integer of a part of a configuration."""
    if not isinstance(config[part].get(key), int):
        raise Usage(f"{option}: \"{part}\" of this model has no number \"{key}\"; write a configuration of your own "
                    "and give it as --config")
    config[part][key] = value


def head_width(width):
    """The width of one of the attention heads of a tower of this width."""
    return next(size for size in (64, 32, 16, 8, 4, 2, 1) if width % size == 0)


def change_config(config, args):
    """Applies --image-size, --width, --layers and --context-length to a configuration."""
    texts = [part for part in ("text_cfg", "multimodal_cfg") if part in config]
    if args.image_size is not None:
        set_size(config, "--image-size", "vision_cfg", "image_size", args.image_size)
    if args.layers is not None:
        for part in ("vision_cfg", *texts):
            set_size(config, "--layers", part, "layers", args.layers)
    if args.width is not None:
        heads = args.width // head_width(args.width)
        config["embed_dim"] = args.width
        for part in ("vision_cfg", *texts):
            set_size(config, "--width", part, "width", args.width)
        config["vision_cfg"]["head_width"] = head_width(args.width)
        for part in texts:
            config[part]["heads"] = heads
        for part in ("vision_cfg", "multimodal_cfg"):
            if "attn_pooler_heads" in config.get(part, {}):
                config[part]["attn_pooler_heads"] = heads
    if args.context_length is not None:
        for part in texts:
            config[part]["context_length"] = args.context_length


def configure(args, open_clip, folder):
    """Registers the changed configuration, if options change it, and makes it that of `args`. Returns
    the configuration of the model."""
    config = copy.deepcopy(open_clip.get_model_config(model_name(args)))
    if any(value is not None for value in (args.image_size, args.width, args.layers, args.context_length)):
        change_config(config, args)
        args.config = os.path.join(folder, f"{model_name(args)}-changed.json")
        with open(args.config, "w", encoding="utf-8") as file:
            json.dump(config, file)
        open_clip.add_model_config(args.config)
    return config


def create(args, torch, open_clip):
    """The model in train mode, with the weights to start from."""
    name = model_name(args)
    if args.checkpoint:
        model = load_trained(args, name, open_clip)
    else:
        model = create_initialized(args, name, torch, open_clip)
        with torch.no_grad():
            for value in model.state_dict().values():
                if value.is_floating_point() and value.isnan().any():  # open_clip initializes it nowhere
                    value.zero_()
    # What state_dict leaves out becomes a plain attribute, which TorchScript leaves out too.
    for module in model.modules():
        for buffer in [*module._non_persistent_buffers_set]:
            value = module._buffers[buffer]
            delattr(module, buffer)
            setattr(module, buffer, value)
    return model.float().train()


def freeze(model, globs):
    """Marks the parameters whose names match as not trained. Returns the number of trained and of all
    elements."""
    names = [name for name, _ in model.named_parameters()]
    for glob in globs:
        matches = fnmatch.filter(names, glob)
        if not matches:
            raise Usage(f"--freeze '{glob}': no parameter has such a name{did_you_mean(glob, names)}")
        for name in matches:
            model.get_parameter(name).requires_grad_(False)
    counts = [(p.numel(), p.requires_grad) for p in model.parameters()]
    trained = sum(count for count, needed in counts if needed)
    if not trained:
        raise Usage("--freeze: no parameter is left to train; freeze fewer")
    return trained, sum(count for count, _ in counts)


def make_loss(args, model, open_clip):
    """The value of --loss, or what it is for this model, and the loss of its arguments by name."""
    is_coca = isinstance(model, open_clip.CoCa)
    name = args.loss or ("coca" if is_coca else "clip" if getattr(model, "logit_bias", None) is None else "siglip")
    if (name == "coca") != is_coca:
        raise Usage(f"--loss {name}: this model is {'a' if is_coca else 'no'} CoCa model; leave --loss out")
    if name == "siglip" and getattr(model, "logit_bias", None) is None:
        raise Usage("--loss siglip: this model has no logit_bias; give a configuration with \"init_logit_bias\"")
    kind, options, taken = LOSSES[name]
    module = getattr(open_clip.loss, kind)(**options)

    def loss(outputs):
        parts = module(**{key: outputs[key] for key in taken if key in outputs}, output_dict=True)
        return sum(parts.values())
    return name, loss


def make_step(model, loss):
    """The method of the exported file."""
    compute = model.forward
    if hasattr(model, "output_dict"):
        model.output_dict = True

    def forward(image, text):
        outputs = compute(image, text)
        return (loss(outputs), *(outputs[name] for name in OUTPUTS[1:]))
    return forward


def trace(model, forward, inputs, torch):
    """Traces the model with another method forward. The model does not change."""
    buffers = {name: value.clone() for name, value in model.named_buffers()}
    model.forward = forward
    try:
        return torch.jit.trace(model, tuple(inputs.values()), check_trace=False)
    except Exception as error:
        raise Failure(f"torch.jit.trace refuses this model: {first_line(error)}")
    finally:
        del model.forward
        for name, value in model.named_buffers():
            value.copy_(buffers[name])  # batch norms have counted the traced batch


def tied(model):
    """The names of parameters that are one tensor, as a sorted list of lists."""
    groups = {}
    for name, value in model.named_parameters(remove_duplicate=False):
        groups.setdefault(value.data_ptr(), []).append(name)
    return sorted(sorted(names) for names in groups.values() if len(names) > 1)


def step(module, forward, inputs, seed, torch):
    """The loss of a step, and the gradients and buffers by name, after the seed has been set."""
    torch.manual_seed(seed)
    loss = forward(*inputs.values())[0]
    names, parameters = zip(*((name, p) for name, p in module.named_parameters() if p.requires_grad))
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    return loss.detach(), dict(zip(names, gradients)), dict(module.named_buffers())


def check(args, model, forward, path, torch, open_clip):
    """The largest relative L2 between the saved file and the eager model over loss, gradients and
    buffers. Runs both on a batch that is larger than the traced one."""
    saved = torch.jit.load(path).train()
    names = {name: value.requires_grad for name, value in saved.named_parameters()}
    if names != {name: value.requires_grad for name, value in model.named_parameters()}:
        raise Failure("the exported file has other trained parameters than the model")
    if saved.state_dict().keys() != model.state_dict().keys() or tied(saved) != tied(model):
        raise Failure("the exported file has other names in its state_dict than the model, or ties others")
    inputs = example_inputs(args, model, args.batch + 1, torch, open_clip)
    loss, gradients, buffers = step(model, forward, inputs, args.seed, torch)
    saved_loss, saved_gradients, saved_buffers = step(saved, saved.forward, inputs, args.seed, torch)
    norm = sum(g.norm() ** 2 for g in gradients.values() if g is not None).sqrt().item()
    worst = 0.0

    def compare(what, want, got, floor):
        nonlocal worst
        if want is None or got is None:
            if want is not got:
                raise Failure(f"{what} is there in only one of the exported file and the eager model")
            return
        error = (got.double() - want.double()).norm().item() / max(want.double().norm().item(), floor)
        if not error <= TOLERANCE:
            raise Failure(f"{what} of the exported file differs from eager: relative L2 {error:.1e}")
        worst = max(worst, error)
    compare("the loss", loss, saved_loss, 0)
    for name, gradient in gradients.items():
        compare(f"the gradient of {name}", gradient, saved_gradients[name], NOISE * norm)
    for name, value in buffers.items():
        compare(f"the buffer {name}", value, saved_buffers[name], 1e-30)
    return worst


def export(args):
    """Writes the step."""
    check_arguments(args)
    logging.disable(logging.WARNING)  # open_clip keeps saying that there are no trained weights
    what = args.model or args.config
    torch, open_clip = import_open_clip(args)
    with tempfile.TemporaryDirectory() as folder:
        config = configure(args, open_clip, folder)
    model = create(args, torch, open_clip)
    trained, parameters = freeze(model, args.freeze)
    name, loss = make_loss(args, model, open_clip)
    forward = make_step(model, loss)
    inputs = example_inputs(args, model, args.batch, torch, open_clip)
    exported = trace(model, forward, inputs, torch)
    extra = {"cgc.json": {"outputs": {"forward": OUTPUTS}},
             "open_clip_config.json": {"model_cfg": config}}
    size, error = save(exported, model, args.out, extra,
                       lambda path: check(args, model, forward, path, torch, open_clip))
    examples = " ".join(f"{name}={cgc_type(tensor)}" for name, tensor in inputs.items())
    print(f"{args.out}: {what} with {LOSSES[name][0]}, {size / 1e6:.0f} MB, {trained / 1e6:.2f} of "
          f"{parameters / 1e6:.2f} million parameters are trained, traced with {examples}, relative L2 to eager "
          f"{error:.1e}, {weights_text(args)}")


def main():
    export(parse_args())


if __name__ == "__main__":
    run("export_training_step", main)
