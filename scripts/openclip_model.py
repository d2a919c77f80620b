"""Chooses an OpenCLIP model by name or by configuration file, and reports errors to the user.

Importing open_clip takes seconds, so everything that its files tell is checked before.
"""
import ast
import difflib
import functools
import importlib.util
import json
import os
import pathlib
import re
import signal
import sys
import textwrap
import warnings


class Failure(Exception):
    """An error with a message for the user."""
    status = 1


class Usage(Failure):
    """An error in the command line."""
    status = 2


def first_line(error):
    """The first line of an exception's message without colors, with the next line if the first only
    introduces it; the type if there is no message."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = text.strip().splitlines() or [type(error).__name__]
    if lines[0].rstrip().endswith(":") and len(lines) > 1:
        return f"{lines[0].rstrip()} {textwrap.shorten(lines[1], 200)}"
    return lines[0].rstrip(":")


def run(program, work):
    """Calls `work`. An exception becomes one line on stderr and the exit status."""
    warnings.simplefilter("ignore")  # TorchScript is deprecated, and tracing says so at every call
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # lets scratch folders be removed
    try:
        work()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # one line for whatever LibTorch or open_clip refuse
        print(f"{program}: {first_line(error)}", file=sys.stderr)
        sys.exit(getattr(error, "status", 1))


def did_you_mean(word, known):
    """"; did you mean ...?", or an empty string if no known word is similar."""
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), by_lower, n=3, cutoff=0.5)
    return f"; did you mean {', '.join(by_lower[n] for n in near)}?" if near else ""


def check_input(option, path):
    if path == "":
        raise Usage(f"{option} '': the name is empty; give a file")
    if os.path.isdir(path):
        raise Failure(f"{path}: is a directory; {option} takes a file")
    if not os.path.isfile(path):
        raise Failure(f"{path}: no such file")


def check_output(option, path, inputs):
    """Fails if a path cannot be written or is a file of `inputs` under any name."""
    if path == "":
        raise Usage(f"{option} '': the name is empty; give a file")
    for source in inputs:
        if os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
            raise Usage(f"{option} {path}: this is the input {source}, which would be lost; give another name")
    if os.path.isdir(path):
        raise Failure(f"{path}: is a directory; give a file name")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise Failure(f"{path}: the folder {folder} does not exist; make it first")
    if not os.access(folder, os.W_OK):
        raise Failure(f"{path}: the folder {folder} is not writable; give another one")


@functools.cache
def package():
    """The folder of the package open_clip."""
    found = importlib.util.find_spec("open_clip")
    if not found:
        raise Failure("there is no open_clip; run it with .venv/bin/python, which scripts/setup.sh makes")
    return pathlib.Path(found.origin).parent


def add_arguments(parser):
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--model", metavar="NAME", help="a model of open_clip, for example ViT-B-32")
    what.add_argument("--config", metavar="FILE.json", help="an open_clip model configuration")


def model_name(args):
    """The name of the model in open_clip."""
    return args.model if args.config is None else os.path.splitext(os.path.basename(args.config))[0]


def check_model(args):
    """Fails if open_clip does not have the model or cannot read the configuration."""
    if args.config is not None:
        check_input("--config", args.config)
        check_config(args.config)
        return
    if ":" in args.model:
        raise Failure(f"--model {args.model}: this needs a download, and nothing is downloaded here; give the "
                      "model's name, or \"model_cfg\" of its open_clip_config.json as --config")
    known = [path.stem for path in (package() / "model_configs").glob("*.json")]
    if args.model not in known:
        raise Failure(f"open_clip has no model '{args.model}'{did_you_mean(args.model, known)}")


def known_keys():
    """The keys of a configuration and of its parts, as open_clip's source declares them."""
    classes = {node.name: node for file in ("model.py", "coca_model.py")
               for node in ast.parse((package() / file).read_text(encoding="utf-8")).body
               if isinstance(node, ast.ClassDef)}

    def fields(name):
        return {item.target.id for item in classes[name].body if isinstance(item, ast.AnnAssign)}

    def arguments(name):
        init = next(item for item in classes[name].body if getattr(item, "name", "") == "__init__")
        return {argument.arg for argument in init.args.args[1:]}

    text = fields("CLIPTextCfg")
    return {"": arguments("CLIP") | arguments("CoCa") | {"custom_text"}, "text_cfg": text,
            "vision_cfg": fields("CLIPVisionCfg"), "multimodal_cfg": text | fields("MultimodalCfg")}


def check_config(path):
    if os.path.splitext(path)[1] != ".json":
        raise Failure(f"{path}: the name must end in .json")
    try:
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
    except ValueError as error:
        raise Failure(f"{path}: not JSON: {error}" if os.path.getsize(path) else f"{path}: the file is empty")
    if not isinstance(config, dict):
        raise Failure(f"{path}: not a JSON object")
    known = known_keys()
    parts = {"": config, **{name: config[name] for name in known if name in config}}
    for name, part in parts.items():
        if not isinstance(part, dict):
            raise Failure(f"{path}: \"{name}\" is not a JSON object")
        for key in part:
            if key not in known[name]:
                where = f" of \"{name}\"" if name else ""
                raise Failure(f"{path}: open_clip knows no key \"{key}\"{where}{did_you_mean(key, known[name])}")
    missing = sorted({"embed_dim", "vision_cfg", "text_cfg"} - config.keys())
    if missing:
        raise Failure(f"{path}: lacks {', '.join(missing)}")


def cgc_type(tensor):
    """The type of a tensor or array in the syntax of cgc's --input: f32[2,3,224,224]."""
    names = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64"}
    return f"{names[str(tensor.dtype).removeprefix('torch.')]}[{','.join(map(str, tensor.shape))}]"


def import_open_clip(args):
    """Imports torch and open_clip, and registers the configuration with open_clip."""
    try:
        import torch
        import open_clip
    except ImportError as error:
        raise Failure(f"{error}; run it with .venv/bin/python, which scripts/setup.sh makes")
    if args.config is not None:
        open_clip.add_model_config(args.config)
    return torch, open_clip
