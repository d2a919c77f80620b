"""export(): writes a model folder of a model of open_clip."""
from __future__ import annotations

import contextlib
import difflib
import json
import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from . import _checkpoint, _compile, _folder, _tokenizer
from ._errors import InvalidFileError, UsageError
from ._towers import Tower, compile_towers, with_resize
from .preprocess import Preprocess


def export(folder: str | os.PathLike[str], name: str, *, checkpoint: str | os.PathLike[str] | None = None,
           pretrained: str | None = None, ema: bool = False, transform: str | None = None,
           batch: int | Sequence[int] = (1, 8, 64), precision: str = "fp32", target: str = "cuda", seed: int = 0,
           force: bool = False, options: Sequence[str] = ()) -> Path:
    """Writes a model folder, which cgc.load() takes, of a model of open_clip, and returns its path.

    name: a model of open_clip.list_models(), "hf-hub:OWNER/NAME", "local-dir:PATH" or the path of a configuration (.json).
    checkpoint: a file of trained weights: of torch.save, TorchScript or safetensors, with the prefixes that
        DistributedDataParallel, torch.compile and Lightning add, in any precision; of big_vision (.npz).
    pretrained: a tag of open_clip.list_pretrained(), which open_clip downloads.
        Without `checkpoint` and `pretrained`, and of a name without weights of its own: RANDOM WEIGHTS, made from `seed`.
    ema: whether the moving averages in the checkpoint are taken.
    transform: with `checkpoint`, the pretrained tag whose transform of pictures the weights were trained with. It is needed
        only where the tags of the model differ in it.
    batch, precision, target, options: those of compile().
    force: whether an existing model folder is replaced.

    UsageError for what does not fit, InvalidFileError for a file that is no checkpoint, and the error of the program cgc.
    Nothing is left of a folder that cannot be completed.
    """
    folder = Path(folder)
    if checkpoint is not None and pretrained is not None:
        raise UsageError("both a checkpoint and a pretrained tag are given; give one of them")
    if checkpoint is None and (ema or transform is not None):
        option = "ema" if ema else "transform"
        raise UsageError(f"{option} (--{option}) says how to take a checkpoint; give the checkpoint, too")
    if not -2 ** 63 <= seed < 2 ** 64:
        raise UsageError(f"the seed is {seed}; give a number of at most 64 bits")
    with contextlib.ExitStack() as stack:
        scratch, complete = stack.enter_context(_folder.writing(folder, force))
        torch = _compile.import_torch()
        open_clip = _import_open_clip()
        if name.endswith(".json"):
            name = stack.enter_context(_named(open_clip, Path(name)))
        torch.manual_seed(seed)
        if checkpoint is not None:
            model = _with_checkpoint(open_clip, name, Path(checkpoint), ema, _transform_of(open_clip, name, transform), scratch)
            source = Path(checkpoint).name
        else:
            model = _created(open_clip, name, pretrained)
            source = pretrained if pretrained else name if ":" in name else None
        tokenizer = _tokenizer_of(open_clip, name)
        _check_vocabulary(name, model, tokenizer)
        preprocess = Preprocess(_transform(open_clip, model))
        (scratch / _folder.PREPROCESS).write_text(json.dumps(preprocess.to_json(), indent=2) + "\n")
        _tokenizer.write(tokenizer, scratch / _folder.TOKENIZER)
        towers = _towers(model.eval(), preprocess, _tokenizer.read(scratch / _folder.TOKENIZER), target)
        size, read = compile_towers(model, towers, batch, precision, target, options, scratch, name)
        complete(_folder.card_of(scratch, model, read, source, architecture=open_clip.get_model_config(name), precision=precision,
                                 versions={"open_clip": open_clip.__version__}, name=name, target=target, size=size))
    return folder


def _import_open_clip() -> Any:
    try:
        import open_clip
    except ImportError:
        raise UsageError("open_clip, which has the model, is missing; pip install 'cgc[openclip]'") from None
    return open_clip


def _existing(path: Path, what: str) -> Path:
    if not path.is_file():
        raise InvalidFileError(f"{path}: no such file; give {what}")
    return path


@contextlib.contextmanager
def _named(open_clip: Any, path: Path) -> Iterator[str]:
    """A name by which open_clip knows the model of a configuration, in the context alone."""
    config = _folder.read_json(_existing(path, "a configuration of open_clip"), "give a configuration of open_clip")
    if not isinstance(config, dict) or (missing := {"embed_dim", "vision_cfg", "text_cfg"} - config.keys()):
        what = f"it has no {', '.join(sorted(missing))}" if isinstance(config, dict) else "it is no object"
        raise InvalidFileError(f"{path} is no configuration of open_clip: {what}; give one as in open_clip's model_configs")
    configs = open_clip.factory._MODEL_CONFIGS
    before = dict(configs)
    configs[path.stem] = config
    try:
        yield path.stem
    finally:
        configs.clear()
        configs.update(before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without open_clip's messages: that weights are random, which is not so if a checkpoint follows."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def _initialized() -> Iterator[None]:
    """Has torch fill new memory with NaN: open_clip leaves some parameters of CoCa as they come."""
    import torch
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def _created(open_clip: Any, name: str, pretrained: str | None, **settings: Any) -> Any:
    """A model as open_clip makes it, with its own weights if it has some. Parameters without a first value are 0."""
    if ":" not in name and name not in (names := open_clip.list_models()):
        near = difflib.get_close_matches(name, names, 3)
        raise UsageError(f"open_clip has no model {name}; " + (f"did you mean {' or '.join(near)}?" if near else
                                                               "open_clip.list_models() has the names"))
    try:
        with warnings.catch_warnings(), _quiet(), _initialized():
            # open_clip would go on with the wrong activation.
            warnings.filterwarnings("error", "QuickGELU mismatch")
            model = open_clip.create_model(name, pretrained=pretrained, pretrained_text=False, require_pretrained=":" in name,
                                           **settings)
            for value in model.state_dict().values():
                if value.is_floating_point() and value.isnan().all():
                    value.zero_()
            return model
    except UserWarning:
        raise UsageError(f"the weights {pretrained} were trained with QuickGELU, and {name} has GELU, or the reverse; give the "
                         f"model {name}-quickgelu, or that without -quickgelu") from None
    except Exception as error:
        where = _where_to_get(open_clip, name, pretrained)
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:500]
        raise UsageError(f"open_clip cannot make {name}{f' with {pretrained}' if pretrained else ''}: {reason}{where}") from error


def _where_to_get(open_clip: Any, name: str, pretrained: str | None) -> str:
    """Which file to fetch where there is a network, and how to pass it."""
    if name.startswith("hf-hub:"):
        repository = name.removeprefix("hf-hub:")
        return f"; without a network, fetch the repository {repository} where there is one, and give local-dir:FOLDER"
    config = open_clip.get_pretrained_cfg(name, pretrained) if pretrained else None
    if config:
        source = f"https://huggingface.co/{config['hf_hub'].rstrip('/')}" if config.get("hf_hub") else config.get("url")
        return f"; without a network, fetch the weights from {source} where there is one, and give the file as the checkpoint"
    if pretrained:
        tags = open_clip.list_pretrained_tags_by_model(name)
        return f"; its pretrained tags are {', '.join(tags)}" if tags else f"; {name} has no pretrained tags"
    return ""


def _with_checkpoint(open_clip: Any, name: str, path: Path, ema: bool, transform: dict[str, Any], scratch: Path) -> Any:
    if path.suffix in (".npz", ".npy"):  # Of big_vision, which open_clip converts.
        return _created(open_clip, name, str(_existing(path, "a checkpoint").resolve()), force_preprocess_cfg=transform)
    def create(**settings: Any) -> Any:
        return _created(open_clip, name, None, force_preprocess_cfg=transform, **settings)

    model, resized = _checkpoint.load(path, ema, open_clip, name, create, scratch)
    for message in resized:
        warnings.warn(message, stacklevel=4)
    return model


def _transform_of(open_clip: Any, name: str, tag: str | None) -> dict[str, Any]:
    """What the pretrained tags of a model say of its transform, or the one that is given. UsageError if they differ."""
    from open_clip.transform import merge_preprocess_dict
    tags = open_clip.list_pretrained_tags_by_model(name)
    if tag is not None and tag not in tags:
        raise UsageError(f"{name} has no pretrained tag {tag}; " + (f"it has {', '.join(tags)}" if tags else "it has none"))
    overlays = [merge_preprocess_dict({}, open_clip.get_pretrained_cfg(name, each)) for each in ([tag] if tag else tags)]
    if any(overlay != overlays[0] for overlay in overlays):
        raise UsageError(f"the pretrained weights of {name} were trained with different transforms of pictures; give transform "
                         f"(--transform), one of {', '.join(tags)}")
    return {key: value for key, value in overlays[0].items() if key != "size"} if overlays else {}


def _transform(open_clip: Any, model: Any) -> dict[str, Any]:
    from open_clip.transform import PreprocessCfg, merge_preprocess_dict
    return merge_preprocess_dict(PreprocessCfg(), open_clip.get_model_preprocess_cfg(model))


def _tokenizer_of(open_clip: Any, name: str) -> Any:
    try:
        return open_clip.get_tokenizer(name)
    except Exception as error:
        wanted = (open_clip.get_model_config(name) or {}).get("text_cfg", {}).get("hf_tokenizer_name", name)
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
        raise UsageError(f"the tokenizer {wanted} of {name} cannot be had ({reason}); open_clip downloads it where there is a "
                         "network: copy that cache (HF_HOME) here") from error


def _check_vocabulary(name: str, model: Any, tokenizer: Any) -> None:
    rows = getattr(getattr(model, "text", model), "vocab_size", None)
    largest = int(tokenizer(["a"]).max())
    if rows is not None and largest >= rows:
        raise UsageError(f"{name}: its tokenizer makes the id {largest}, and its vocab_size is {rows}; the configuration does not "
                         "fit the tokenizer")


def _towers(model: Any, preprocess: Preprocess, tokenizer: Any, target: str) -> list[Tower]:
    """The methods without normalization, which CoCa's do by default."""
    import torch
    pictures = Tower("encode_image", lambda image: model.encode_image(image, normalize=False),
                     [{"image": torch.zeros(1, 3, *preprocess.size)}])
    texts = Tower("encode_text", lambda text: model.encode_text(text, normalize=False), [{"text": torch.from_numpy(tokenizer("a"))}])
    return [*with_resize(pictures, preprocess, target), texts]
