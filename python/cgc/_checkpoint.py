"""Trained weights of open_clip models, from checkpoints as trainers and hubs write them."""
from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ._errors import InvalidFileError, UsageError

#: What wrappers put before the names of all weights: DistributedDataParallel and AveragedModel, torch.compile, Lightning.
_PREFIXES = ("module.", "_orig_mod.", "model.")
#: The members of checkpoints that hold the weights, and their averages.
_WEIGHTS = ("state_dict", "model", "model_state_dict", "module")
_AVERAGES = ("state_dict_ema", "model_ema", "ema", "ema_state_dict", "ema_model")
#: What the state of a TorchScript module of CLIP holds besides weights, and what AveragedModel counts.
_NO_WEIGHTS = ("attn_mask", "input_resolution", "context_length", "vocab_size", "n_averaged")


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
                                   f"under {', '.join(members)}; save them: torch.save(model.state_dict(), 'weights.pt')")
        content, average, members = content[found[0]], False, _WEIGHTS
    if average and not (isinstance(content, Mapping) and "n_averaged" in content):
        raise UsageError(f"{path}: it has no averages of weights ({', '.join(_AVERAGES)}); leave ema (--ema) out")
    if not isinstance(content, Mapping):
        raise InvalidFileError(f"{path}: it holds {type(content).__name__}, not weights by name; save those: "
                               "torch.save(model.state_dict(), 'weights.pt')")
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
    values = [value for name, value in content.items() if str(name).rsplit(".", 1)[-1] not in _NO_WEIGHTS]
    return bool(values) and all(isinstance(name, str) for name in content) and all(isinstance(value, torch.Tensor) for value in values)


def _load(path: Path) -> Any:
    """The object in the file. Nothing that a pickle names is run."""
    import torch
    if not path.is_file():
        raise InvalidFileError(f"{path}: no such file; give a checkpoint that torch.save or safetensors wrote")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file
            return load_file(path)
        if _is_torchscript(path):
            return torch.jit.load(path, map_location="cpu").state_dict()
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        hint = "; load it where it was made, and save the weights alone: torch.save(model.state_dict(), 'weights.pt')" \
            if "weights_only" in str(error) or "Unsupported" in str(error) else ""
        raise InvalidFileError(f"{path}: this is no checkpoint that torch or safetensors reads ({first}){hint}") from None


def _is_torchscript(path: Path) -> bool:
    import zipfile
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())
