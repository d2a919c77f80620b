"""The commands of the console script that Python runs: export, embed and search. All others are the program's."""
from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ._errors import Error, UsageError

#: What errors advise in the words of Python, and the options of the commands.
_OPTIONS = {'executor="reference"': "--executor reference", 'target="cpu"': "--target cpu of cgc export"}


def run(command: str, arguments: Sequence[str]) -> int:
    """Runs one of COMMANDS. Returns the exit status: 0, or the code of the error, which is printed."""
    warnings.showwarning = lambda message, *_: print(f"cgc {command}: warning: {message}", file=sys.stderr)
    try:
        return COMMANDS[command](arguments)
    except Error as error:
        message = str(error)
        for python, option in _OPTIONS.items():
            message = message.replace(python, option)
        print(f"cgc {command}: {message}", file=sys.stderr)
        return int(error.code)
    except OSError as error:  # Of the files of the caller.
        print(f"cgc {command}: {f'{error.filename}: ' if error.filename else ''}{error.strerror or error}", file=sys.stderr)
        return int(Error.code)
    except KeyboardInterrupt:
        print(f"cgc {command}: interrupted", file=sys.stderr)
        return 130


def _export(arguments: Sequence[str]) -> int:
    from . import huggingface, openclip
    parser = argparse.ArgumentParser("cgc export", description="Writes a model folder: plan, preprocessing and tokenizer.")
    parser.add_argument("folder", help="the folder to write; cgc.load() takes it")
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument("--openclip", metavar="NAME",
                       help="a model of open_clip, hf-hub:OWNER/NAME, local-dir:PATH or a configuration (.json)")
    model.add_argument("--hf", metavar="PATH", help="a local folder of transformers or sentence-transformers")
    weights = parser.add_mutually_exclusive_group()
    weights.add_argument("--checkpoint", metavar="FILE", help="trained weights; without any, RANDOM WEIGHTS")
    weights.add_argument("--pretrained", metavar="TAG", help="trained weights that open_clip downloads")
    parser.add_argument("--ema", action="store_true", help="take the moving averages in the checkpoint")
    parser.add_argument("--transform", metavar="TAG", help="the tag whose transform of pictures the checkpoint was trained with")
    parser.add_argument("--batch", default="1,8,64", help="the batches to compile for [%(default)s]")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "tf32", "fp16", "bf16"), help="[%(default)s]")
    parser.add_argument("--target", default="cuda", choices=("cuda", "cpu"), help="[%(default)s]")
    parser.add_argument("--seed", type=int, default=0, help="of random weights [%(default)s]")
    parser.add_argument("--force", action="store_true", help="replace an existing model folder")
    given = vars(parser.parse_args(arguments))
    try:
        batches = [_number(1, 1 << 30)(each) for each in given["batch"].split(",")]
    except (ValueError, argparse.ArgumentTypeError):
        batches = []
    if not batches or len({*batches}) < len(batches):
        parser.error(f"--batch {given['batch']}: give different numbers from 1 to {1 << 30}, such as 1,8,64")
    given["batch"] = batches
    folder, name, path = (given.pop(each) for each in ("folder", "openclip", "hf"))
    if path is None:
        openclip.export(folder, name, **given)
    else:
        for option in ("checkpoint", "pretrained", "ema", "transform", "seed"):
            if given.pop(option):
                parser.error(f"--{option} is for --openclip; the weights of {path} are in it")
        huggingface.export(folder, path, **given)
    print(f"{folder}: written; cgc.load({folder!r}) takes it")
    return 0


def _embed(arguments: Sequence[str]) -> int:
    from . import _embed, _folder, _session
    parser = argparse.ArgumentParser("cgc embed", description="Writes vectors of pictures or texts as Parquet. A second run resumes "
                                     "after the inputs that are done.")
    sources = parser.add_mutually_exclusive_group(required=True)
    sources.add_argument("--images", nargs="+", action="extend", type=Path, metavar="PATH", help="folders of pictures, or tar files of them")
    sources.add_argument("--texts", type=Path, metavar="FILE", help="a text for each line")
    parser.add_argument("--model", required=True, type=Path, metavar="FOLDER", help="what cgc export wrote")
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER",
                        help="where part-*.parquet go: key, vector, error, version")
    parser.add_argument("--max-errors", type=_number(0, sys.maxsize), default=0, metavar="N",
                        help="inputs without a vector, above which the exit status is 1 [%(default)s]")
    parser.add_argument("--ray", metavar="auto|ADDRESS", help="use the machines of a Ray cluster: that of an address, or the one that "
                        "runs here, or a new one of this machine")
    _add_session_options(parser)
    parser.add_argument("--no-normalize", action="store_true", help="do not divide vectors by their norm")
    given = parser.parse_args(arguments)
    if given.ray == "":
        parser.error("--ray is empty; give auto, or the address of a cluster")
    kind, inputs = ("text", _embed.texts_of(given.texts)) if given.texts else ("image", _embed.pictures_of(given.images))
    with contextlib.ExitStack() as stack:
        model = None if given.ray else stack.enter_context(_session.load(given.model, **_session_options(given)))
        card = model.card if model else _folder.read(given.model)
        parts = stack.enter_context(contextlib.closing(_embed.Parts(given.out, card, kind, not given.no_normalize)))
        begin = time.monotonic()
        progress = stack.enter_context(_progress(f"{kind}s", parts))
        if model:
            encode = getattr(model, f"encode_{kind}")
            keys = _embed.embed(inputs, lambda some: encode(some, normalize=not given.no_normalize, errors="return"), parts, progress)
        else:
            from . import ray
            keys = ray.embed(inputs, parts, os.path.abspath(given.model), kind, not given.no_normalize, given.ray,
                             _session_options(given), progress)
    seconds = time.monotonic() - begin
    failed = len(keys & parts.failed)
    print(f"{given.out}: {len(keys)} inputs, {len(keys) - failed} vectors, {failed} errors; {parts.added} of them now, "
          f"{parts.added / seconds:.0f} a second; model {card.identity}")
    if failed > given.max_errors:
        print(f"cgc embed: {failed} inputs have no vector, and --max-errors is {given.max_errors}; the column error says "
              "why, and another run tries those again that have changed", file=sys.stderr)
        return int(Error.code)
    return 0


def _search(arguments: Sequence[str]) -> int:
    from . import _embed, _search, _session
    parser = argparse.ArgumentParser("cgc search", description="Embeds a folder of pictures and opens a page that searches them by "
                                     "text or by a picture.")
    parser.add_argument("folder", type=Path, help="of pictures")
    parser.add_argument("--model", required=True, type=Path, metavar="FOLDER", help="what cgc export wrote")
    parser.add_argument("--index", type=Path, metavar="FOLDER", help="where the vectors are kept [one in ~/.cache/cgc/search]")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on [%(default)s]")
    parser.add_argument("--port", type=_number(0, 65535), default=8765, help="0 is a free one [%(default)s]")
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open no page")
    _add_session_options(parser)
    given = parser.parse_args(arguments)
    if given.folder.is_file():
        raise UsageError(f"{given.folder} is a file; give a folder of pictures")
    pictures = _embed.pictures_of([given.folder])
    with _session.load(given.model, **_session_options(given)) as model:
        index = given.index or _search.index_folder(given.folder, model.identity)
        parts = _embed.Parts(index, model.card, "image")
        with _progress("pictures", parts) as progress:
            keys = _embed.embed(pictures, lambda some: model.encode_image(some, errors="return"), parts, progress, replaces=True)
        if failed := len(keys & parts.failed):
            print(f"cgc search: {failed} pictures cannot be read and are left out; the column error in {index} says why",
                  file=sys.stderr)
        parts.close()
        _search.serve(_search.Index(model, given.folder, parts), given.host, given.port, not given.no_browser)
    return 0


def _number(least: int, most: int) -> Callable[[str], int]:
    """The type of an argument."""
    def number(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{value} is not from {least} to {most}")
        return value

    return number


def _add_session_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", type=int, metavar="N", help="the GPU [0]")
    parser.add_argument("--executor", default="graph", choices=("graph", "stream", "reference"),
                        help="reference runs a plan for cuda without a GPU, slowly [%(default)s]")


def _session_options(given: argparse.Namespace) -> dict[str, Any]:
    return {"device": given.device, "executor": given.executor, "contexts": 2}  # One computes while the other's rows are copied.


@contextlib.contextmanager
def _progress(kind: str, parts: Any) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, if tqdm is installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        yield lambda: None
        return
    with tqdm(unit=f" {kind}", initial=len(parts.done), disable=None) as bar:
        def update() -> None:
            bar.set_postfix(errors=len(parts.failed), refresh=False)
            bar.update(len(parts.done) - bar.n)
        yield update


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {"embed": _embed, "export": _export, "search": _search}
