"""The cache of plans on disk, which processes share: CGC_CACHE is its folder, or "off"; CGC_CACHE_GB is its limit."""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import _program, _runtime
from ._errors import Error

_DEFAULT_GB = 20.0


def digest(program: Path) -> str:
    """Names the content of an exported program but its example inputs, which differ from process to process."""
    content = hashlib.sha256()
    with zipfile.ZipFile(program) as archive:
        for member in sorted(archive.infolist(), key=lambda member: member.filename):
            name = member.filename.split("/", 1)[-1]
            if not name.startswith(("data/sample_inputs/", ".data/")):
                content.update(f"{name}\0{member.file_size}\0".encode())
                with archive.open(member) as file:
                    while block := file.read(1 << 20):
                        content.update(block)
    return content.hexdigest()


def compile_plan(programs: Sequence[Path], digests: Sequence[str], output: Path, options: Sequence[str], *,
                 base: tuple[Path, str] | None = None, before: Callable[[], None] = lambda: None) -> str:
    """Compiles exported programs, whose digest() is given, to a plan file, or takes the plan from the cache. Returns a key
    for the plan. `base` is a plan to add buckets to, and its key. `before` is called before the compiler, and may write the
    programs."""
    names = [path.stem for path in programs if len(programs) > 1]
    text = "\0".join([*digests, *names, *options, base[1] if base else "", *surroundings()])
    key = hashlib.sha256(text.encode()).hexdigest()
    folder = _folder(options)
    entry = folder / f"{key}.cgplan" if folder else None
    if entry and _take(entry, output):
        return key
    before()
    _program.run(["compile", *map(str, programs), "-o", str(output), *options, *(["--add-to", str(base[0])] if base else [])])
    if entry:
        try:
            _put(output, entry)
        except OSError as error:
            warnings.warn(f"the plan is not in the cache {entry.parent}: {error}; set CGC_CACHE to another folder, or to off",
                          stacklevel=2)
    return key


def is_on() -> bool:
    return _folder(()) is not None


def find_export(name: str) -> Any:
    """What add_export() has kept under a name; None if there is nothing."""
    if not (folder := _folder(())):
        return None
    entry = folder / f"{name}.json"
    try:
        facts = json.loads(entry.read_text())
    except (OSError, ValueError):  # It is not there, or damaged, and is written anew.
        return None
    _mark_used(entry)
    return facts


def add_export(name: str, facts: Any) -> None:
    """Keeps what is to be known of a program without exporting it again; None removes it."""
    if folder := _folder(()):
        entry = folder / f"{name}.json"
        with contextlib.suppress(OSError):  # compile_plan() tells.
            if facts is None:
                entry.unlink(missing_ok=True)
                return
            folder.mkdir(parents=True, exist_ok=True)
            with _replacing(entry) as temporary:
                temporary.write_text(json.dumps(facts))


def surroundings() -> list[str]:
    """What a plan depends on besides programs and options: the compiler, torch, and the GPU that it is compiled on."""
    program = os.stat(_program.PROGRAM)
    torch = sys.modules.get("torch")
    gpu = torch.cuda.get_device_name() if torch and torch.cuda.is_available() else ""
    return [_runtime.version(), str(program.st_size), str(program.st_mtime_ns), getattr(torch, "__version__", ""), gpu,
            os.environ.get("CGC_LIBTORCH", "")]


def _folder(options: Sequence[str]) -> Path | None:
    given = os.environ.get("CGC_CACHE", "")
    # A file among the options, such as a plugin, may change.
    if given == "off" or any(os.path.exists(part) for option in options for part in option.replace("=", ",").split(",")
                             if os.sep in part or "." in part):
        return None
    if given:
        return Path(given)
    with contextlib.suppress(RuntimeError):  # There is no home.
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "cgc")
    return None


def _take(entry: Path, output: Path) -> bool:
    """Copies an entry that is there and whole, and marks it as used."""
    try:
        _runtime.Plan(str(entry))
        copy_whole(entry, output)
    except (Error, OSError):  # It is not there, or damaged, and is written anew.
        return False
    _mark_used(entry)
    return True


def _mark_used(entry: Path) -> None:
    with contextlib.suppress(OSError):
        os.utime(entry)


def _put(output: Path, entry: Path) -> None:
    """Copies a plan into the cache, and removes the entries that were not used for the longest time beyond the limit."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    copy_whole(output, entry)
    entries = []
    for file in (*entry.parent.glob("*.cgplan"), *entry.parent.glob("*.json")):
        with contextlib.suppress(FileNotFoundError):  # Another process removes entries, too.
            entries.append((file.stat().st_mtime, file.stat().st_size, file))
    entries.sort(reverse=True)
    size = 0
    for _, bytes_of_entry, file in entries:
        size += bytes_of_entry
        if size > _limit() and file != entry:
            file.unlink(missing_ok=True)


def copy_whole(source: Path, target: Path) -> None:
    """Copies a file, so that the target is the one before or all of the new one."""
    with _replacing(target) as temporary:
        shutil.copyfile(source, temporary)


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A file to write, which then takes the place of the target."""
    temporary = target.with_name(f"{target.name}.tmp.{os.getpid()}.{threading.get_ident()}")
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _limit() -> float:
    try:
        return float(os.environ.get("CGC_CACHE_GB", _DEFAULT_GB)) * 1e9
    except ValueError:
        warnings.warn(f"CGC_CACHE_GB is {os.environ['CGC_CACHE_GB']!r}; give a number of gigabytes", stacklevel=2)
        return _DEFAULT_GB * 1e9
