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
import fcntl
import glob
import hashlib
import json
import os
import shutil
import signal
import tempfile
import threading
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


def card_of(folder: Path, model: Any, read: Mapping[str, torch.Tensor], source: str | None, *,
            architecture: Mapping[str, Any], precision: str, versions: Mapping[str, str], **facts: Any) -> Card:
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
    _check_free(folder, replace)
    folder = Path(os.path.realpath(folder))  # What a link names is replaced, not the link.
    made = [each for each in folder.parents if not each.exists()]
    try:
        with _unwinding():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with _scratch(folder) as scratch:
                new, old = scratch / "new", scratch / "old"
                new.mkdir()
                yield new, lambda card: _complete(new, card)
                _check_free(folder, replace)  # The compilation has taken long.
                try:
                    if folder.exists():
                        folder.rename(old)
                    new.rename(folder)
                except BaseException:
                    if old.exists() and not folder.exists():
                        old.rename(folder)
                    raise
    finally:
        for parent in made:
            with contextlib.suppress(OSError):  # It is not empty.
                parent.rmdir()


def _check_free(folder: Path, replace: bool) -> None:
    if folder.exists() and not (replace and (folder / CARD).is_file()):
        raise UsageError(f"{folder} exists; give another name" + (", as it is no model folder" if replace else
                                                                  ", or replace a model folder with force (--force)"))


@contextlib.contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """A folder beside `folder`, which is removed in the end. Those that killed processes have left are removed first."""
    for left in folder.parent.glob(f".{glob.escape(folder.name)}.*.tmp"):
        with contextlib.suppress(OSError), _locked(left):
            shutil.rmtree(left)
    scratch = Path(tempfile.mkdtemp(".tmp", f".{folder.name}.", folder.parent))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        with contextlib.suppress(OSError):  # Without locks none is removed, either.
            stack.enter_context(_locked(scratch))
        yield scratch


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """OSError if another process, or another thread, holds the lock, or if the file system has none."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _unwinding() -> Iterator[None]:
    """Has SIGTERM and SIGHUP, where they would end the process at once, end it by SystemExit."""
    def end(number: int, _: Any) -> None:
        raise SystemExit(128 + number)
    is_main = threading.current_thread() is threading.main_thread()
    numbers = [each for each in (signal.SIGTERM, signal.SIGHUP) if is_main and signal.getsignal(each) == signal.SIG_DFL]
    for each in numbers:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each in numbers:
            signal.signal(each, signal.SIG_DFL)


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
