"""Loads trained weights into a model of open_clip, with plain errors for files that are not checkpoints."""
import importlib
import os
import pathlib
import re
import sys
import tempfile
import types

from openclip_model import Failure, Usage, check_input, first_line, package

# The extension that cgc loads is not built where this runs: its sources are found without it.
sys.modules.setdefault("cgc", types.ModuleType("cgc")).__path__ = [str(pathlib.Path(__file__).parents[1] / "python/cgc")]
_checkpoint, _errors = importlib.import_module("cgc._checkpoint"), importlib.import_module("cgc._errors")


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


def check_finite(model, args):
    for name, value in model.state_dict().items():
        wrong = value.numel() - int(value.isfinite().sum())
        if wrong:
            raise Failure(f"{args.checkpoint}: {wrong} of {value.numel()} elements of the weight {name} are NaN or "
                          f"infinite in {args.precision}; give another checkpoint"
                          + (" or --precision fp32" if args.precision != "fp32" else ""))


def load_trained(args, name, open_clip):
    """The model with the weights of args.checkpoint; prints which positions were resized."""
    def create(**settings):
        return open_clip.create_model(name, precision=args.precision, pretrained_text=False, **settings)

    path, resized = os.path.abspath(args.checkpoint), []  # open_clip prefers a tag to a file of the same name.
    try:
        if path.endswith((".npz", ".npy")):
            model = create(pretrained=path)
        else:
            with tempfile.TemporaryDirectory(prefix="cgc-weights-") as scratch:
                model, resized = _checkpoint.load(pathlib.Path(args.checkpoint), False, open_clip, name, create, pathlib.Path(scratch))
    except _errors.Error as error:
        raise Failure(str(error))
    except Exception as error:
        raise Failure(f"{args.checkpoint}: no weights for {name}: {first_line(error)}; give the --model or --config that was trained")
    check_finite(model, args)
    print("\n".join(resized), end="\n" * bool(resized))
    return model
