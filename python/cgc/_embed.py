"""`cgc embed`: vectors of all pictures of a folder or of tar shards, or of all texts of a file, as Parquet.

The result is a folder of parts with the columns key, vector and error: for each input either a vector or an error. A part
is written as a whole. Another run goes on behind the inputs that the parts have.
"""
from __future__ import annotations

import fcntl
import itertools
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

from ._errors import InvalidFileError, UsageError

if TYPE_CHECKING:
    from ._model import Vectors

#: The endings of files that are taken for pictures.
PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")
#: Inputs of a part. A killed run loses at most the part that it was at.
ROWS = 1024
#: The keys of the schema's metadata. All parts of a folder have the same values.
IDENTITY, MODEL, KIND, NORMALIZED = "cgc.identity", "cgc.model", "cgc.kind", "cgc.normalized"

#: A key and what encode_image() or encode_text() takes, or the error in place of it.
Input = tuple[str, Any]


def pictures_of(sources: Sequence[Path]) -> Iterator[Input]:
    """The pictures of folders, in the order of their names, and the members of tar files. UsageError for none. With several
    sources, a key begins with its own."""
    for source in sources:
        before = "" if len(sources) == 1 else f"{printable(source)}/"
        if source.is_dir():
            found = False
            for folder, folders, names in os.walk(source):
                folders.sort()
                for name in sorted(names):
                    if name.lower().endswith(PICTURES):
                        found = True
                        path = os.path.join(folder, name)
                        yield before + printable(os.path.relpath(path, source)), path
            if not found:
                raise UsageError(f"{source} has no pictures; their names end in {', '.join(PICTURES)}")
        elif source.suffix == ".tar":
            for name, content in _members(source):
                yield before + name, content
        else:
            raise UsageError(f"{source} is neither a folder nor a .tar file; give pictures in one of these")


def _members(shard: Path) -> Iterator[Input]:
    try:
        with tarfile.open(shard) as archive:
            for member in archive:
                if member.isfile() and member.name.lower().endswith(PICTURES):
                    file = archive.extractfile(member)
                    assert file is not None
                    yield printable(member.name), file.read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise InvalidFileError(f"{shard} is no tar file, or is damaged ({error}); copy it again") from error


def texts_of(source: Path) -> Iterator[Input]:
    """The lines of a file of UTF-8, by their numbers from 1. A line of other bytes is given as those."""
    with open(source, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield str(number), line.rstrip(b"\r\n").decode()
            except UnicodeDecodeError:
                yield str(number), line


def printable(name: str | Path) -> str:
    """A name of a file in UTF-8: bytes that are none as \\xHH."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


class Parts:
    """The folder of parts of one model. One at a time writes to a folder."""

    def __init__(self, folder: Path, card: Any, kind: str, normalized: bool = True):
        """card: that of the model. kind: "image" or "text". normalized: whether the vectors have length 1. UsageError for a
        folder whose parts have others, or to which another process writes."""
        self._arrow, self._parquet = _import_arrow()
        self.folder, self._size = folder, card.size
        arrow = self._arrow
        self._metadata = {IDENTITY: card.identity, KIND: kind, NORMALIZED: str(normalized).lower()}
        self._schema = arrow.schema([("key", arrow.string()), ("vector", arrow.list_(arrow.float32(), card.size)),
                                     ("error", arrow.string())], {**self._metadata, MODEL: card.name})
        self.done: set[str] = set()
        self.failed: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = open(folder / ".lock", "w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another process writes to {folder}; wait for it, or give another folder for the parts") from None
        for path in self.paths():
            self._check(path)
            table = self._parquet.read_table(path, columns=["key", "error"])
            keys = table["key"].to_pylist()
            self.done.update(keys)
            self.failed.update(key for key, error in zip(keys, table["error"].to_pylist()) if error is not None)

    def close(self) -> None:
        """Lets another process write to the folder."""
        self._lock.close()

    def paths(self) -> list[Path]:
        return sorted(self.folder.glob("part-*.parquet"))

    def _check(self, path: Path) -> None:
        try:
            metadata = self._parquet.read_schema(path).metadata or {}
        except (OSError, self._arrow.ArrowInvalid) as error:
            raise InvalidFileError(f"{path} is damaged ({error}); remove it, and run again") from error
        for name, wanted in self._metadata.items():
            found = metadata.get(name.encode(), b"").decode()
            if found != wanted:
                raise UsageError(f"{path} has vectors with {name} {found or 'missing'}, and those of this run have {wanted}; give "
                                 "another folder for the parts")

    def add(self, keys: list[str], vectors: numpy.ndarray, errors: list[str | None]) -> None:
        """Writes a part as a whole."""
        arrow = self._arrow
        is_null = arrow.array([error is not None for error in errors])
        flat = arrow.array(numpy.ascontiguousarray(vectors, numpy.float32).reshape(-1))
        table = arrow.table([arrow.array(keys, arrow.string()),
                             arrow.FixedSizeListArray.from_arrays(flat, self._size, mask=is_null),
                             arrow.array(errors, arrow.string())], schema=self._schema)
        last = max((int(path.stem.removeprefix("part-")) for path in self.paths()), default=-1)
        path = self.folder / f"part-{last + 1:06}.parquet"
        scratch = path.with_suffix(f".tmp.{os.getpid()}")
        try:
            self._parquet.write_table(table, scratch)
            os.replace(scratch, path)
        finally:
            scratch.unlink(missing_ok=True)
        self.done.update(keys)
        self.failed.update(key for key, error in zip(keys, errors) if error is not None)

    def read(self) -> tuple[list[str], numpy.ndarray]:
        """The keys and the vectors, float32 [n, size], of all inputs that have one."""
        tables = [self._parquet.read_table(path, columns=["key", "vector", "error"]) for path in self.paths()]
        if not tables:
            return [], numpy.empty((0, self._size), numpy.float32)
        table = self._arrow.concat_tables(tables)
        table = table.filter(self._arrow.compute.is_null(table["error"])).combine_chunks()
        column = table["vector"]
        flat = numpy.concatenate([chunk.flatten().to_numpy() for chunk in column.chunks]) if column.num_chunks else numpy.empty(0)
        return table["key"].to_pylist(), flat.reshape(-1, self._size).astype(numpy.float32, copy=False)


def embed(inputs: Iterable[Input], encode: Callable[[list[Any]], Vectors], parts: Parts,
          progress: Callable[[], None] = lambda: None) -> set[str]:
    """Writes a part for each ROWS of the inputs that the parts do not have. Returns the keys of all inputs."""
    def write(some: list[Input]) -> None:
        vectors = encode([value for _, value in some])
        parts.add([key for key, _ in some], vectors, [vectors.errors.get(index) for index in range(len(some))])
        progress()

    return for_each_part(inputs, parts, write)


def for_each_part(inputs: Iterable[Input], parts: Parts, function: Callable[[list[Input]], None]) -> set[str]:
    """Calls the function with ROWS at a time of the inputs that the parts do not have. Returns the keys of all inputs.
    UsageError for a key that comes twice."""
    seen: set[str] = set()
    before = frozenset(parts.done)

    def missing() -> Iterator[Input]:
        for key, value in inputs:
            if key in seen:
                raise UsageError(f"two inputs have the key {key}; embed them into folders of their own")
            seen.add(key)
            if key not in before:
                yield key, value

    remaining = missing()
    while some := list(itertools.islice(remaining, ROWS)):
        function(some)
    return seen


def _import_arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise UsageError("pyarrow, which writes Parquet, is missing; pip install 'cgc[embed]'") from None
    return pyarrow, pyarrow.parquet
