"""Model folders: a plan with the preprocessing and the tokenizer that belong to it, and a card that identifies them.

    model.json       the card: name, identity, weights, precision, versions, and a SHA-256 of every other file and of itself
    model.cgplan     the entries encode_image, encode_text or both
    preprocess.json  of a model of pictures: what Preprocess takes
    tokenizer/       of a model of texts: settings.json and the files of the vocabulary
    README.md        the card for people

A folder has no absolute path and may be moved.
"""
from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _checkpoint, _runtime
from ._errors import InvalidFileError, UsageError

if TYPE_CHECKING:
    import torch

CARD, PLAN, PREPROCESS, TOKENIZER, README = "model.json", "model.cgplan", "preprocess.json", "tokenizer", "README.md"
#: The version of the format. A folder of another one is refused.
FORMAT = 3
#: What identities of models without trained weights begin with.
RANDOM = "RANDOM-WEIGHTS"


@dataclasses.dataclass(frozen=True)
class Card:
    """model.json."""

    name: str
    #: Names the space of the vectors: equal only for equal weights, architecture, preprocessing, tokenizer and precision.
    identity: str
    architecture: Mapping[str, Any]  #: What the model computes with its weights, as its own library describes it.
    weights: str  #: Where they come from.
    weights_sha256: str
    precision: str
    target: str
    size: int  #: The number of elements of a vector.
    logit_scale: float | None  #: The factor of similarities in the model's loss.
    logit_bias: float | None
    versions: Mapping[str, str]
    files: Mapping[str, str]  #: The SHA-256 of each file, by its path in the folder.
    format: int = FORMAT

    @property
    def is_random(self) -> bool:
        return self.identity.startswith(RANDOM)


def card_of(folder: Path, model: Any, read: Mapping[str, torch.Tensor], source: str | None, *, architecture: Mapping[str, Any], precision: str,
            versions: Mapping[str, str], **facts: Any) -> Card:
    """The card of a folder with all its files, for a torch module. `read`: those of its weights that decide vectors.
    `source`: where they come from; None: from nowhere."""
    import torch
    weights, files = _checkpoint.digest(read), files_of(folder)
    architecture = json.loads(json.dumps(architecture))
    scale, bias = (getattr(model, name, None) for name in ("logit_scale", "logit_bias"))
    return Card(identity=_identity_of(weights, architecture, precision, files, source is None), architecture=architecture,
                weights=source or RANDOM, weights_sha256=weights, precision=precision, files=files,
                logit_scale=None if scale is None else scale.exp().item(), logit_bias=None if bias is None else bias.item(),
                versions={"cgc": _runtime.version(), "torch": torch.__version__, **versions}, **facts)


def _identity_of(weights_sha256: str, architecture: Mapping[str, Any], precision: str, files: Mapping[str, str],
                 is_random: bool) -> str:
    """The first 128 bits of a SHA-256 of all that decides a vector but the compiler."""
    parts = {"weights": weights_sha256, "architecture": architecture, "precision": precision,
             **{name: digest for name, digest in files.items() if name.startswith((PREPROCESS, TOKENIZER))}}
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
    return f"{RANDOM}-{digest}" if is_random else digest


def seal(content: Mapping[str, Any]) -> str:
    """The SHA-256 of a card, which model.json has besides: of all its fields."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def sha256(path: Path) -> str:
    content = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            content.update(block)
    return content.hexdigest()


def files_of(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file that a card lists."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in (CARD, README))
    return {path.relative_to(folder).as_posix(): sha256(path) for path in paths}


def read_json(path: Path, advice: str = "export the model again") -> Any:
    """The content of a file."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidFileError(f"{path} is missing or damaged ({error}); {advice}") from None


def read(folder: Path) -> Card:
    """The card of a folder whose files are all there and unchanged. InvalidFileError names the first that is not."""
    path = folder / CARD
    if not path.is_file():
        raise InvalidFileError(f"{folder} is no model folder: it has no {CARD}; write one with cgc export")
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else None
        raise InvalidFileError(f"{path} has format {found!r}, and this version of cgc reads {FORMAT}; export the model with it")
    if content.pop("sha256", None) != seal(content):
        raise InvalidFileError(f"{path} has changed since the export: its SHA-256 is not that in it; export the model again")
    card = Card(**content)
    for name, digest in card.files.items():
        if not (folder / name).is_file():
            raise InvalidFileError(f"{folder / name} is missing; copy the whole folder, or export the model again")
        if sha256(folder / name) != digest:
            raise InvalidFileError(f"{folder / name} has changed since the export: its SHA-256 is not that in {CARD}; export "
                                   "the model again")
    return card


@contextlib.contextmanager
def writing(folder: Path, replace: bool) -> Iterator[tuple[Path, Callable[[Card], None]]]:
    """A new folder beside `folder`, and a function that completes it with its card. At the end it becomes `folder`; if the
    context fails, nothing is left. UsageError if `folder` exists, except a model folder with `replace`."""
    if folder.exists() and not (replace and (folder / CARD).is_file()):
        raise UsageError(f"{folder} exists; give another name" + (", as it is no model folder" if replace else
                                                                  ", or force to replace a model folder"))
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    scratch.mkdir()
    try:
        yield scratch, lambda card: _complete(scratch, card)
        if folder.exists():
            old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
            folder.rename(old)
            scratch.rename(folder)
            shutil.rmtree(old)
        else:
            scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _complete(folder: Path, card: Card) -> None:
    (folder / README).write_text(_readme(card), "utf-8")
    content = dataclasses.asdict(card)
    (folder / CARD).write_text(json.dumps({**content, "sha256": seal(content)}, indent=2) + "\n")


def _readme(card: Card) -> str:
    warning = "**RANDOM WEIGHTS: its vectors mean nothing. They serve tests and timing.**\n\n" if card.is_random else ""
    rows = {"weights": card.weights, "identity": f"`{card.identity}`", "vectors": f"{card.size} elements, float32",
            "precision": card.precision, "target": card.target,
            "made with": ", ".join(f"{name} {version}" for name, version in card.versions.items())}
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    return (f"# {card.name}\n\n{warning}| | |\n|---|---|\n{table}\n\n```python\nimport cgc\nmodel = cgc.load(\"FOLDER\")\n"
            "model.encode_image([\"a.jpg\"]), model.encode_text([\"a cat\"])\n```\n\nVectors of different identities must not be "
            "compared.\n")
