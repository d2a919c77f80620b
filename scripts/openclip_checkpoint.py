"""Loads trained weights into a model of open_clip, with plain errors for files that are not checkpoints."""
import importlib
import logging
import os
import pathlib
import re
import shlex
import sys
import types

from openclip_model import Failure, Usage, check_input, first_line, package

# The extension that cgc loads is not built where this runs: its sources are found without it.
sys.modules.setdefault("cgc", types.ModuleType("cgc")).__path__ = [str(pathlib.Path(__file__).parents[1] / "python/cgc")]
_checkpoint = importlib.import_module("cgc._checkpoint")


def check_name(path, model):
    """Checks that the file exists; for pretrained weights of `model`, the error explains how to get them."""
    if not os.path.exists(path):
        download = "nothing is downloaded here; where there is a network, run "
        if path.startswith("hf-hub:"):
            repository = path.removeprefix("hf-hub:")
            raise Failure(f"--checkpoint {path}: {download}'.venv/bin/hf download {repository} --local-dir weights' "
                          "and give the file that holds the weights, *.safetensors or *.bin")
        tag = path.lower().replace("-", "_")
        if re.fullmatch(r"\w+", tag) and re.search(rf"\b{tag}\b[\"']?\s*[=:]\s*_\w*cfg\(",
                                                   (package() / "pretrained.py").read_text(encoding="utf-8")):
            raise Failure(f"--checkpoint {path}: this is a pretrained tag of open_clip, not a file, and {download}"
                          f"'.venv/bin/python -c \"from open_clip import *; print(download_pretrained("
                          f"get_pretrained_cfg('{model}', '{path}')))\"' and give the file that it prints")
    check_input("--checkpoint", path)


def check_checkpoint(path, model):
    """Checks, before the slow imports, that a file is a checkpoint."""
    if path == "":
        raise Usage("--checkpoint '': the name is empty; give a file, or leave the option out for random weights")
    check_name(path, model)
    if path.endswith((".npz", ".npy")):
        return  # Weights of big_vision, which open_clip converts.
    if why := _checkpoint.why_not(path):
        raise Failure(f"{path}: {why}")
    if _checkpoint.is_torchscript(path):
        raise Failure(f"{path}: this is a TorchScript module, not a checkpoint; give the checkpoint that it was exported from, "
                      "or save its weights without its constants: torch.save({k: v for k, v in "
                      f"torch.jit.load({path!r}).state_dict().items() if k not in {_checkpoint.NO_WEIGHTS}}}, 'weights.pt')")


class Resizes(logging.Handler):
    """A context manager that collects open_clip's log messages about interpolated positions."""

    def __init__(self):
        super().__init__(logging.INFO)
        self.lines = []

    def emit(self, record):
        if "position embedding" in str(record.msg):
            tower = "text" if "text" in record.msg else "image"
            before, after = record.args
            self.lines.append(f"the positions of the {tower} tower were resized from {before} to {after}")

    def __enter__(self):
        root = logging.getLogger()
        self.level_before, self.disabled_before = root.level, root.manager.disable
        root.addHandler(self)
        root.setLevel(logging.INFO)
        logging.disable(logging.NOTSET)
        return self

    def __exit__(self, *_):
        root = logging.getLogger()
        root.removeHandler(self)
        root.setLevel(self.level_before)
        logging.disable(self.disabled_before)


def check_finite(model, args):
    for name, value in model.state_dict().items():
        wrong = value.numel() - int(value.isfinite().sum())
        if wrong:
            raise Failure(f"{args.checkpoint}: {wrong} of {value.numel()} elements of the weight {name} are NaN or "
                          f"infinite in {args.precision}; give another checkpoint"
                          + (" or --precision fp32" if args.precision != "fp32" else ""))


def names_after(kind, text):
    """The names that load_state_dict() of torch lists as "Missing" or "Unexpected"."""
    listed = re.search(rf"{kind} key\(s\) in state_dict: (.*?)\. *$", text, re.MULTILINE)
    return set(re.findall(r'"([^"]*)"', listed[1])) if listed else set()


def why_other_names(path, text):
    """What to do about a checkpoint whose names differ from the model's, from torch's error; nothing if that is unknown."""
    missing, unexpected = names_after("Missing", text), names_after("Unexpected", text)
    if "size mismatch" in text:
        return None
    if missing:
        longest = max(missing, key=len)
        prefixes = [name.removesuffix(longest) for name in unexpected if name.endswith(longest)]
        prefix = next((prefix for prefix in prefixes if all(prefix + name in unexpected for name in missing)), None)
        if prefix is None:
            return None
        keep = (f"{{k.removeprefix({prefix!r}): v for k, v in load_state_dict({path!r}).items() "
                f"if k.startswith({prefix!r})}}")
        of = " and hold an average of weights" if "n_averaged" in unexpected else ""
        code = f"import torch; from open_clip.factory import load_state_dict; torch.save({keep}, 'weights.pt')"
        return (f"its names begin with '{prefix}'{of}; write the weights without it: .venv/bin/python -c "
                f"{shlex.quote(code)}")
    return None


def has_extra_bias(path, open_clip):
    """Whether a checkpoint that open_clip refused has a logit_bias, which it reads for models that have one only."""
    try:
        return "logit_bias" in open_clip.factory.load_state_dict(path)
    except Exception:  # No checkpoint; the first error says more.
        return False


def load_trained(args, name, open_clip):
    """The model with the weights of args.checkpoint; prints which positions were resized."""
    try:
        with Resizes() as resizes:
            # The absolute path: open_clip prefers a tag to a file of the same name.
            model = open_clip.create_model(name, pretrained=os.path.abspath(args.checkpoint),
                                           precision=args.precision, pretrained_text=False)
    except Exception as error:
        if refused := _checkpoint.why_refused(error):
            raise Failure(f"{args.checkpoint}: {refused}")
        if other_names := why_other_names(args.checkpoint, str(error)):
            raise Failure(f"{args.checkpoint}: {other_names}")
        if type(error) is AttributeError and has_extra_bias(args.checkpoint, open_clip):
            raise Failure(f"{args.checkpoint}: it was trained with a logit_bias, which {name} lacks; give the model's "
                          "configuration as --config, with \"init_logit_bias\": -10")
        # The errors of open_clip for a dictionary without weights.
        other = isinstance(error, (StopIteration, AttributeError, TypeError))
        raise Failure(f"{args.checkpoint}: no weights for {name}: "
                      f"{'it holds no weights by name' if other else first_line(error)}; give the --model or --config "
                      "that was trained")
    check_finite(model, args)
    for line in resizes.lines:
        print(f"{args.checkpoint}: {line}, so that results differ from those in training")
    return model
