"""Trained weights of open_clip models, from checkpoints as trainers and hubs write them."""
from __future__ import annotations

import hashlib
import os
import pickletools
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from ._errors import InvalidFileError, UsageError

#: What wrappers put before the names of all weights: DistributedDataParallel and AveragedModel, torch.compile, Lightning.
_PREFIXES = ("module.", "_orig_mod.", "model.")
#: The members of checkpoints that hold the weights, and their averages.
_WEIGHTS = ("state_dict", "model", "model_state_dict", "module")
_AVERAGES = ("state_dict_ema", "model_ema", "ema", "ema_state_dict", "ema_model")
#: What the state of a TorchScript module of CLIP holds besides weights, and what AveragedModel counts.
_NO_WEIGHTS = ("attn_mask", "input_resolution", "context_length", "vocab_size", "n_averaged")
#: The first object in a file of torch.save without the zip format.
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_SAVE = "torch.save(model.state_dict(), 'weights.pt')"


def read(path: Path, average: bool) -> dict[str, Any]:
    """The weights of a checkpoint by the model's own names; those of 16 bits in float32. `average` takes the moving
    averages that it holds. InvalidFileError if it is no checkpoint; UsageError if it has no averages."""
    import torch
    content = _load(path)
    members = _AVERAGES if average else _WEIGHTS
    seen: list[Any] = []  # A pickle may hold itself.
    while isinstance(content, Mapping) and not _is_weights(content):
        seen.append(content)
        found = [name for name in members if isinstance(content.get(name), Mapping)
                 and not any(content[name] is each for each in seen)]
        if not found and average and any(isinstance(content.get(name), Mapping) for name in _WEIGHTS):
            break
        if not found:
            raise InvalidFileError(f"{path}: it holds {', '.join(map(str, list(content)[:8])) or 'nothing'}, and no weights by name "
                                   f"under {', '.join(members)}; save them: {_SAVE}")
        content, average, members = content[found[0]], False, _WEIGHTS
    if average and not (isinstance(content, Mapping) and "n_averaged" in content):
        raise UsageError(f"{path}: it has no averages of weights ({', '.join(_AVERAGES)}); leave ema (--ema) out")
    if not isinstance(content, Mapping):
        raise InvalidFileError(f"{path}: it holds {type(content).__name__}, not weights by name; save those: {_SAVE}")
    weights = {name: value for name, value in content.items()
               if isinstance(value, torch.Tensor) and str(name).rsplit(".", 1)[-1] not in _NO_WEIGHTS}
    while weights and (prefix := next((each for each in _PREFIXES if all(name.startswith(each) for name in weights)), None)):
        weights = {name.removeprefix(prefix): value for name, value in weights.items()}
    for name, value in weights.items():
        if value.layout != torch.strided or value.device.type != "cpu" or value.is_quantized or value.is_complex():
            kind = "on the device meta" if value.is_meta else "quantized" if value.is_quantized else \
                "complex" if value.is_complex() else f"of the layout {value.layout}"
            raise InvalidFileError(f"{path}: the weight {name} is {kind}; save dense weights of real numbers")
    weights = {name: value.float() if value.is_floating_point() else value for name, value in weights.items()}
    check_finite(path, weights)
    return weights


def load(path: Path, average: bool, open_clip: Any, name: str, create: Callable[..., Any], scratch: Path) -> tuple[Any, list[str]]:
    """The model `name` of open_clip, which `create` makes with the settings that it needs besides, with the weights of read(), and
    which positions were resized. `scratch` is a folder for a file of that size. UsageError for the weights of another model."""
    import torch
    weights = read(path, average)
    model = create(**({"init_logit_bias": 0.0} if "logit_bias" in weights else {}))
    shapes = {key: value.shape for key, value in weights.items()}
    cleaned = scratch / "weights.pt"  # open_clip's conversions take a file.
    try:
        torch.save(weights, cleaned)
        open_clip.load_checkpoint(model, str(cleaned))
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines()] or [type(error).__name__]
        raise UsageError(f"{path}: the weights are not those of {name}: {' '.join(lines[:3])[:500]}; give the model that was "
                         "trained") from error
    finally:
        cleaned.unlink(missing_ok=True)
    return model, [f"{path}: {key} was resized from {list(shapes[key])} to {list(value.shape)}, so that results differ from those in "
                   "training" for key, value in model.state_dict().items()
                   if key in shapes and "positional_embedding" in key and shapes[key] != value.shape]


def check_finite(source: object, weights: Mapping[str, Any]) -> None:
    """InvalidFileError for weights with NaN or infinity."""
    for name, value in weights.items():
        if value.is_floating_point() and not value.isfinite().all():
            raise InvalidFileError(f"{source}: the weight {name} has elements that are NaN or infinite; give other weights")


def digest(weights: Mapping[str, Any]) -> str:
    """A SHA-256 of weights: names, dtypes, shapes and elements."""
    content = hashlib.sha256()
    for name, value in sorted(weights.items()):
        content.update(f"{name}\0{value.dtype}\0{list(value.shape)}\0".encode())
        content.update(value.detach().cpu().contiguous().flatten().view(_bytes()).numpy())
    return content.hexdigest()


def _bytes() -> Any:
    import torch
    return torch.uint8


def _is_weights(content: Mapping[Any, Any]) -> bool:
    import torch
    weights = {name: value for name, value in content.items() if str(name).rsplit(".", 1)[-1] not in _NO_WEIGHTS}
    return bool(weights) and all(isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in weights.items())


def _load(path: Path) -> Any:
    """The object in the file. Nothing that a pickle names is run."""
    import torch
    if not path.is_file():
        raise InvalidFileError(f"{path}: no such file; give a checkpoint that torch.save or safetensors wrote")
    why = why_not(path)
    if why is None:
        try:
            if path.suffix == ".safetensors":
                from safetensors.torch import load_file
                return load_file(path)
            if _is_torchscript(path):
                return torch.jit.load(path, map_location="cpu").state_dict()
            return torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:
            why = _why_refused(error) or _damaged(error)
    raise InvalidFileError(f"{path}: {why}")


def _is_torchscript(path: str | os.PathLike[str]) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def why_not(path: str | os.PathLike[str]) -> str | None:
    """Why a file is no checkpoint, from its first bytes, and what to do; None if it may be one."""
    is_named_safetensors = str(path).endswith(".safetensors")
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            if not head:
                return "the file is empty, not a checkpoint; copy it again"
            if head[8:9] == b"{" and 8 + int.from_bytes(head[:8], "little") <= size:
                return None if is_named_safetensors else "this is a safetensors file; give it a name that ends in .safetensors"
            if head.startswith(b"CGCPLAN\0"):
                return "this is a cgc plan, not a checkpoint; give the weights that open_clip reads"
            if head.startswith(b"version https://git-lfs"):
                return "this is a pointer of Git LFS, not a checkpoint; fetch the file: git lfs pull"
            if is_named_safetensors:
                return "this is no safetensors file, as its name says; copy it again"
            if head.startswith(b"PK\3\4"):
                with zipfile.ZipFile(file) as archive:
                    records = {name.split("/")[-1]: name for name in archive.namelist()}
                    if "constants.pkl" in records:
                        return None
                    if "data.pkl" not in records:
                        return "this is a zip archive, not a checkpoint; give what torch.save or safetensors wrote"
                    return _why_no_weights(_content_of_pickle(archive.read(records["data.pkl"])))
            if head[0] == 0x80 and head[1:2] <= b"\5":
                # Without the zip format torch.save writes a magic number, a version and a description first.
                header = [[argument for _, argument, _ in pickletools.genops(file)] for _ in range(3)]
                if _LEGACY_MAGIC not in header[0]:
                    return "this is a pickle, not a checkpoint; give what torch.save or safetensors wrote"
                return _why_no_weights(_content_of_pickle(file))
            kind = "text" if head.isascii() and b"\0" not in head else "of no known kind"
            return f"this is {kind}, not a checkpoint; give what torch.save or safetensors wrote"
    except (ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        return _damaged(error)


def _why_refused(error: Exception) -> str | None:
    """What torch.load says of a class that it does not make; None if the error is another."""
    refused = re.search(r"GLOBAL (\S+)", str(error)) if type(error).__name__ == "UnpicklingError" else None
    return f"this {_pickled(refused[1])}" if refused else None


def _damaged(error: Exception) -> str:
    said = str(error).split("WeightsUnpickler error:")[-1]  # Before it torch advises to run the pickle.
    reason = (said.strip() or type(error).__name__).splitlines()[0]
    return f"this is not a checkpoint, or damaged or cut short ({reason}); copy it again"


def _content_of_pickle(file: bytes | IO[bytes]) -> str:
    """The content of a pickle: the class of its object, or the opcode that makes it."""
    strings: list[str] = []
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


def _pickled(content: str) -> str:
    return (f"is or holds a pickled object of class {content}, which runs code of its own when it is read; load it where it was "
            f"made and save the weights alone: {_SAVE}")


def _why_no_weights(content: str) -> str | None:
    if content in ("EMPTY_DICT", "collections.OrderedDict"):
        return None
    if content.startswith(("torch._utils._rebuild", "torch._tensor.", "torch.storage.")):
        return f"this is one tensor, not weights by name; save all of the model: {_SAVE}"
    if "." in content:
        return f"this {_pickled(content)}"
    return f"this is a list or a value, not weights by name; save those: {_SAVE}"
