"""Loads trained weights into a model of open_clip, with plain errors for files that are not checkpoints."""
import logging
import os
import pickletools
import re
import shlex
import zipfile

from openclip_model import Failure, Usage, check_input, first_line, package

SAVE = "torch.save(model.state_dict(), 'weights.pt')"
# Constants that the state_dict of a TorchScript module may hold besides weights.
CONSTANTS = ("attn_mask", "input_resolution", "context_length", "vocab_size")
# The first object in a file of torch.save without the zip format.
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C


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


def content_of_pickle(file):
    """The content of a pickle: the class of its object, or the opcode that makes it."""
    strings = []
    for opcode, argument, _ in pickletools.genops(file):
        if opcode.name == "GLOBAL":
            return argument.replace(" ", ".")
        if opcode.name == "STACK_GLOBAL":
            return ".".join(strings[-2:])
        if opcode.name.startswith(("EMPTY", "BININT", "BINFLOAT", "NONE", "NEW")):
            return opcode.name
        if isinstance(argument, str):
            strings.append(argument)
    return ""


def pickled_object(content):
    return (f"is or holds a pickled object of class {content}, which runs code of its own when it is read; load it "
            f"where it was made and save the weights alone: {SAVE}")


def why_not_weights(content):
    if content in ("EMPTY_DICT", "collections.OrderedDict"):
        return None
    if content.startswith(("torch._utils._rebuild", "torch._tensor.", "torch.storage.")):
        return f"this is one tensor, not weights by name; save all of the model: {SAVE}"
    if "." in content:
        return f"this {pickled_object(content)}"
    return f"this is a list or a value, not weights by name; save those: {SAVE}"


def why_not_zip(path):
    with zipfile.ZipFile(path) as archive:
        records = {name.split("/")[-1]: name for name in archive.namelist()}
        if "constants.pkl" in records:
            return ("this is a TorchScript module, not a checkpoint; give the checkpoint that it was exported from, or "
                    "save its weights without its constants: torch.save({k: v for k, v in "
                    f"torch.jit.load({path!r}).state_dict().items() if k not in {CONSTANTS}}}, 'weights.pt')")
        if "data.pkl" not in records:
            return "this is a zip archive, not a checkpoint; give what torch.save or safetensors wrote"
        return why_not_weights(content_of_pickle(archive.read(records["data.pkl"])))


def why_not_pickle(file):
    """Without the zip format torch.save writes a magic number, a version and a description first."""
    header = [[argument for _, argument, _ in pickletools.genops(file)] for _ in range(3)]
    if LEGACY_MAGIC not in header[0]:
        return "this is a pickle, not a checkpoint; give what torch.save or safetensors wrote"
    return why_not_weights(content_of_pickle(file))


def is_text(head):
    try:
        return all(c.isprintable() or c.isspace() for c in head[:-3].decode("utf-8", "strict"))
    except UnicodeDecodeError:
        return False


def why_no_checkpoint(path):
    """A description of a file that is not a checkpoint, from its first bytes; nothing if it may be one."""
    with open(path, "rb") as file:
        head = file.read(4096)
        file.seek(0)
        safetensors = head[8:9] == b"{" and 8 + int.from_bytes(head[:8], "little") <= os.path.getsize(path)
        if not head:
            return "the file is empty, not a checkpoint; copy it again"
        if safetensors:
            return (None if path.endswith(".safetensors")
                    else "this is a safetensors file; give it a name that ends in .safetensors")
        if path.endswith(".safetensors"):
            return "this is no safetensors file, as its name says; copy it again"
        if head.startswith(b"CGCPLAN\0"):
            return "this is a cgc plan, not a checkpoint; give the weights that open_clip reads"
        if head.startswith(b"version https://git-lfs"):
            return "this is a pointer of Git LFS, not a checkpoint; fetch the file: git lfs pull"
        if head.startswith(b"PK\3\4"):
            return why_not_zip(path)
        if head[0] == 0x80 and head[1:2] <= b"\5":
            return why_not_pickle(file)
    return f"this is {'text' if is_text(head) else 'of no known kind'}, not a checkpoint; give what torch.save or " \
           "safetensors wrote"


def check_checkpoint(path, model):
    """Checks, before the slow imports, that a file is a checkpoint."""
    if path == "":
        raise Usage("--checkpoint '': the name is empty; give a file, or leave the option out for random weights")
    check_name(path, model)
    if path.endswith((".npz", ".npy")):
        return  # Weights of big_vision, which open_clip converts.
    try:
        why = why_no_checkpoint(path)
    except (ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
        why = f"this is not a checkpoint, or damaged or cut short ({first_line(error)}); copy it again"
    if why:
        raise Failure(f"{path}: {why}")


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
        refused = re.search(r"GLOBAL (\S+)", str(error)) if type(error).__name__ == "UnpicklingError" else None
        if refused:
            raise Failure(f"{args.checkpoint}: this {pickled_object(refused[1])}")
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
