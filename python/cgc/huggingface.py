"""Models of transformers: export() writes a model folder of a local one."""
from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _compile, _folder, _tokenizer
from ._errors import InvalidFileError, UsageError
from ._towers import Tower, compile_towers, with_resize
from .preprocess import Preprocess

if TYPE_CHECKING:
    import torch

__all__ = ["export"]
#: The interpolations of a picture, by Pillow's numbers in preprocessor_config.json.
_INTERPOLATIONS = {2: "bilinear", 3: "bicubic"}
#: The most tokens of a text that a model is compiled for.
_MOST_TOKENS = 2 ** 20


def export(folder: str | os.PathLike[str], path: str | os.PathLike[str], *, batch: int | Sequence[int] = (1, 8, 64),
           lengths: Sequence[int] | None = None, precision: str = "fp32", target: str = "cuda", force: bool = False,
           options: Sequence[str] = ()) -> Path:
    """Writes a model folder, which cgc.load() takes, of a local model of transformers, and returns its path.

    path: a folder with config.json, weights and tokenizer or preprocessor: an encoder of texts, pooled as modules.json of
        sentence-transformers says, else by the mean; a model with get_image_features() and get_text_features(), such as
        CLIP and SigLIP; or an encoder of pictures with a pooled output, such as DINOv2.
    lengths: the numbers of tokens that an encoder of texts is compiled for [powers of two from 16 to the model's most].
    batch, precision, target, options: those of cgc.compile().
    force: whether an existing model folder is replaced.

    Nothing is downloaded, and no code in `path` is run. UsageError for a model of another kind, InvalidFileError for a file
    that is missing.
    """
    folder, path = Path(folder), Path(path)
    if not (path / "config.json").is_file():
        raise InvalidFileError(f"{path}: no config.json; give the folder of a model that save_pretrained() wrote")
    with _folder.writing(folder, force) as (scratch, complete):
        torch = _compile.import_torch()
        transformers = _import_transformers()
        config = _settings(path / "config.json")
        try:
            model, loaded = transformers.AutoModel.from_pretrained(path, local_files_only=True, dtype=torch.float32,
                                                                   output_loading_info=True, ignore_mismatched_sizes=True)
            model.eval()
            missing = [*loaded["missing_keys"], *(key for key, *_ in loaded["mismatched_keys"])]
        except Exception as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0][:500]
            raise InvalidFileError(f"{path}: transformers cannot load it: {reason}") from error
        pooling = "the model's"
        if hasattr(model, "get_image_features") and hasattr(model, "get_text_features"):
            towers = [*_pictures(path, scratch, lambda image: model.get_image_features(pixel_values=image), target),
                      _captions(transformers, path, scratch, model)]
        elif (path / "preprocessor_config.json").is_file():
            towers = _pictures(path, scratch, lambda image: model(pixel_values=image), target)
        else:
            pool, most = _sentence_transformer(path)
            pooling = pool.__name__.strip("_")
            towers = [_texts(transformers, path, scratch, model, lengths, pool, most)]
        size, read = compile_towers(model, towers, batch, precision, target, options, scratch, path, missing)
        name = path.resolve().name
        architecture = {"config": _without_origin(config), "pooling": pooling}
        complete(_folder.card_of(scratch, model, read, name, architecture=architecture, precision=precision,
                                 versions={"transformers": transformers.__version__}, name=name, target=target, size=size))
    return folder


def _settings(path: Path) -> dict[str, Any]:
    """The object in a file of JSON."""
    given = _folder.read_json(path, "save the model again")
    if not isinstance(given, dict):
        raise InvalidFileError(f"{path} holds {type(given).__name__}, not an object; save the model again")
    return given


def _import_transformers() -> Any:
    try:
        import transformers
    except ImportError:
        raise UsageError("transformers, which has the model, is missing; pip install transformers") from None
    return transformers


def _without_origin(config: Any) -> Any:
    """A configuration without what says where it comes from: it does not change what the model computes."""
    if not isinstance(config, dict):
        return config
    return {key: _without_origin(value) for key, value in config.items()
            if key not in ("_name_or_path", "transformers_version", "torch_dtype", "dtype")}


def _tensor_of(output: Any) -> Any:
    """The vectors in what a model of transformers returns."""
    import torch
    if isinstance(output, torch.Tensor):
        return output
    pooled = getattr(output, "pooler_output", None)
    if pooled is None:
        return output.last_hidden_state[:, 0]
    return pooled.flatten(1) if pooled.shape[2:] == (1, 1) else pooled  # ResNet pools to [n, size, 1, 1].


def _pictures(path: Path, scratch: Path, function: Callable[..., Any], target: str) -> list[Tower]:
    import torch
    settings = path / "preprocessor_config.json"
    try:
        preprocess = Preprocess(_transform(settings))
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidFileError(f"{settings} has a value that no processor of transformers writes ({error!r}); save the model "
                               "again") from error
    (scratch / _folder.PREPROCESS).write_text(json.dumps(preprocess.to_json(), indent=2) + "\n")
    tower = Tower("encode_image", lambda image: _tensor_of(function(image)), [{"image": torch.zeros(1, 3, *preprocess.size)}])
    return with_resize(tower, preprocess, target)


def _transform(path: Path) -> dict[str, Any]:
    """The settings of Preprocess for a preprocessor_config.json. UsageError for what Preprocess does not do."""
    if not path.is_file():
        raise InvalidFileError(f"{path}: no such file; it says how pictures are resized")
    given = _settings(path)
    size, crop = given.get("size"), given.get("crop_size") if given.get("do_center_crop") else None
    resample = given.get("resample", 3)
    if not (given.get("do_resize", True) and given.get("do_rescale", True) and given.get("do_normalize", True)) \
            or abs(given.get("rescale_factor", 1 / 255) * 255 - 1) > 1e-6 or resample not in _INTERPOLATIONS or not (
                size and given.get("image_mean") and given.get("image_std")):
        raise UsageError(f"{path}: cgc resizes by bilinear or bicubic interpolation, divides by 255 and normalizes, and this model "
                         "asks for something else; preprocess with transformers and run the plan with cgc.Session")
    if isinstance(size, int):
        size = {"shortest_edge": size} if crop else {"height": size, "width": size}
    edge = size.get("shortest_edge")
    crop = {"height": crop, "width": crop} if isinstance(crop, int) else crop
    settings = {"mean": given["image_mean"], "std": given["image_std"], "interpolation": _INTERPOLATIONS[resample], "mode": "RGB",
                "fill_color": 0}
    if edge is None and not crop:
        return {**settings, "size": [size["height"], size["width"]], "resize_mode": "squash"}
    if edge is None or not crop:
        raise UsageError(f"{path}: cgc resizes the shortest edge and crops the center, or resizes to a height and a width, and "
                         f"this model asks for size {size} and crop_size {crop}; preprocess with transformers and run the plan "
                         "with cgc.Session")
    cropped = [crop["height"], crop["width"]]
    return {**settings, "size": cropped, "resize_mode": "shortest", "edge": edge}


def _captions(transformers: Any, path: Path, scratch: Path, model: Any) -> Tower:
    """The texts of CLIP and SigLIP, padded to the length of the positions, without a mask."""
    import torch
    config = getattr(model.config, "text_config", None)
    length = getattr(config, "max_position_embeddings", None)
    if not length:
        raise UsageError(f"{path}: the configuration of {type(model).__name__} has no text_config with max_position_embeddings; compile "
                         "the model with cgc.compile()")
    _tokenizer.write_transformers(_auto_tokenizer(transformers, path, config), length, scratch / _folder.TOKENIZER)
    example = torch.from_numpy(_tokenizer.read(scratch / _folder.TOKENIZER)("a"))
    return Tower("encode_text", lambda text: _tensor_of(model.get_text_features(input_ids=text)), [{"text": example}])


def _texts(transformers: Any, path: Path, scratch: Path, model: Any, lengths: Sequence[int] | None,
           pool: Callable[[Any, Any], Any], most: int | None) -> Tower:
    """An encoder of texts, with its pooling, and the most tokens that it was trained with."""
    import torch
    if hasattr(model, "encoder") and hasattr(model, "decoder"):
        raise UsageError(f"{path}: {type(model).__name__} has a decoder, and cgc takes encoders of texts without one")
    tokenizer = _auto_tokenizer(transformers, path, model.config)
    known = (most, tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None))
    most = min(each for each in known if each and each > 0)  # XLNet's is -1.
    if most > _MOST_TOKENS:
        raise UsageError(f"{path} does not say how many tokens a text may have; set model_max_length in its tokenizer_config.json")
    lengths = sorted(set(lengths or [*(2 ** power for power in range(4, _MOST_TOKENS.bit_length()) if 2 ** power < most), most]))
    if lengths[0] < 2 or lengths[-1] > most:
        raise UsageError(f"the lengths {', '.join(map(str, lengths))} are not all from 2 to {most}, the most of the model")
    _tokenizer.write_transformers(tokenizer, lengths[-1], scratch / _folder.TOKENIZER, lengths)
    # Padding has no position in RoBERTa.
    examples, word = [], min({0, 1, 2} - {tokenizer.pad_token_id, getattr(model.config, "pad_token_id", None)})
    for length in lengths:
        mask = torch.ones(2, length, dtype=torch.int64)
        mask[1, length // 2:] = 0
        examples.append({"text": torch.full((2, length), word), "mask": mask})

    def encode(text: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return pool(model(input_ids=text, attention_mask=mask).last_hidden_state, mask)

    return Tower("encode_text", encode, examples)


def _auto_tokenizer(transformers: Any, path: Path, config: Any) -> Any:
    """The tokenizer of a model of texts, whose configuration is given."""
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:500]
        raise InvalidFileError(f"{path}: transformers cannot load its tokenizer: {reason}") from error
    rows = getattr(config, "vocab_size", None)
    if rows is not None and len(tokenizer) > rows:
        raise UsageError(f"{path}: the tokenizer has {len(tokenizer)} ids, and the model {rows}; give the tokenizer of the model")
    return tokenizer


def _sentence_transformer(path: Path) -> tuple[Callable[[Any, Any], Any], int | None]:
    """The pooling of a model of sentence-transformers and the most tokens of a text. UsageError for modules that cgc does
    not run. Normalization is encode_text()'s."""
    modules = path / "modules.json"
    if not modules.is_file():
        warnings.warn(f"{path} has no modules.json of sentence-transformers; its vectors are means over tokens", stacklevel=4)
        return _mean, None
    given = _folder.read_json(modules, "save the model again")
    if not (isinstance(given, list) and all(isinstance(module, dict) and isinstance(module.get("type"), str)
                                            and isinstance(module.get("path"), str) for module in given)):
        raise InvalidFileError(f"{modules} is no list of modules with type and path; save the model again")
    kinds = [module["type"].rsplit(".", 1)[-1] for module in given]
    if any(kinds.count(kind) != 1 for kind in ("Transformer", "Pooling")):
        raise UsageError(f"{modules}: its modules are {', '.join(kinds) or 'none'}, and cgc runs one Transformer and one Pooling")
    pool, most = _mean, None
    for kind, module in zip(kinds, given):
        if kind == "Transformer":
            settings = path / module["path"] / "sentence_bert_config.json"
            given = _settings(settings) if settings.is_file() else {}
            most = given.get("max_seq_length")
            if not isinstance(most, (int, type(None))):
                raise InvalidFileError(f"{settings}: max_seq_length is {most!r}; give a number")
            if given.get("do_lower_case"):
                raise UsageError(f"{settings}: do_lower_case is set, which cgc does not do; lower the texts, and unset it")
        elif kind == "Pooling":
            given = _settings(path / module["path"] / "config.json")
            modes = [name for name, is_set in given.items() if name.startswith("pooling_mode_") and is_set is True]
            modes = modes or [f"pooling_mode_{given.get('pooling_mode')}"]
            if len(modes) != 1 or modes[0] not in _POOLINGS:
                raise UsageError(f"{path / module['path']}: cgc has the poolings {', '.join(_POOLINGS)}, and this model "
                                 f"{', '.join(modes)}")
            pool = _POOLINGS[modes[0]]
        elif kind != "Normalize":
            raise UsageError(f"{modules}: cgc does not run the module {module['type']}; it runs Transformer, Pooling and Normalize")
    return pool, most


def _mean(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1e-9)  # The least sum of sentence-transformers.


def _first(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return states[:, 0]


def _max(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return states.masked_fill(mask.unsqueeze(-1) == 0, -1e9).max(1).values  # The fill of sentence-transformers.


_POOLINGS = {"pooling_mode_mean_tokens": _mean, "pooling_mode_cls_token": _first, "pooling_mode_max_tokens": _max,
             "pooling_mode_mean": _mean, "pooling_mode_cls": _first, "pooling_mode_max": _max}
