"""`cgc embed`: vectors of all pictures of a folder or of tar shards, or of all texts of a file, as Parquet.

The result is a folder of parts with the columns key, vector and error: for each input either a vector or an error. A part
is written as a whole. Another run goes on behind the inputs that the parts have.
"""
from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
FORMAT, IDENTITY, MODEL, KIND, NORMALIZED = "cgc.format", "cgc.identity", "cgc.model", "cgc.kind", "cgc.normalized"
#: Hashes of the texts of a part, as hexadecimal digits.
_TEXTS, _HASH_BYTES = "cgc.texts", 8

#: A key, and a picture or a text; bytes in place of a text that is no UTF-8.
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
        self._metadata = {FORMAT: "1", IDENTITY: card.identity, KIND: kind, NORMALIZED: str(normalized).lower()}
        self._schema = arrow.schema([("key", arrow.string()), ("vector", arrow.list_(arrow.float32(), card.size)),
                                     ("error", arrow.string())], {**self._metadata, MODEL: card.name})
        self.done: set[str] = set()
        self.failed: set[str] = set()
        self._hashes: dict[str, bytes] = {}  #: Of texts, by their keys.
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = open(folder / ".lock", "w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another process writes to {folder}; wait for it, or give another folder for the parts") from None
        self._next = 0
        for path in self.paths():
            hashes = self._check(path)
            table = self._read(path, ["key", "error"])
            keys = table["key"].to_pylist()
            self.done.update(keys)
            self.failed.update(key for key, error in zip(keys, table["error"].to_pylist()) if error is not None)
            self._hashes.update((key, hashes[at:at + _HASH_BYTES]) for key, at in zip(keys, range(0, len(hashes), _HASH_BYTES)))
            self._next = int(path.stem.removeprefix("part-")) + 1

    def close(self) -> None:
        """Lets another process write to the folder."""
        self._lock.close()

    def paths(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("part-*.parquet") if re.fullmatch(r"part-\d{6,}", path.stem))

    def _read(self, path: Path, columns: list[str] | None = None) -> Any:
        """Columns of a part or, without names, its schema."""
        try:
            return self._parquet.read_table(path, columns=columns) if columns else self._parquet.read_schema(path)
        except (OSError, self._arrow.ArrowException) as error:
            raise InvalidFileError(f"{path} is damaged ({error}); remove it, and run again") from error

    def _check(self, path: Path) -> bytes:
        """Refuses a part of another run. Returns the hashes of its texts."""
        schema = self._read(path)
        metadata = schema.metadata or {}
        for name, wanted in self._metadata.items():
            found = metadata.get(name.encode(), b"").decode()
            if found != wanted:
                raise UsageError(f"{path} has vectors with {name} {found or 'missing'}, and those of this run have {wanted}; give "
                                 "another folder for the parts")
        if not schema.equals(self._schema):
            raise UsageError(f"{path} has other columns than key, vector and error; give another folder for the parts")
        try:
            return bytes.fromhex(metadata.get(_TEXTS.encode(), b"").decode())
        except ValueError as error:
            raise InvalidFileError(f"{path} is damaged ({error}); remove it, and run again") from error

    def check_same(self, key: str, value: Any) -> None:
        """UsageError for a text that is not the one whose vector the parts have."""
        if key in self._hashes and self._hashes[key] != _hash(value):
            raise UsageError(f"line {key} has changed since {self.folder} got its vector; give another folder for the parts")

    def add(self, some: list[Input], vectors: numpy.ndarray, errors: Mapping[int, str]) -> None:
        """Writes a part as a whole. `errors` has those of the inputs without a vector, by their index."""
        keys, reasons = [key for key, _ in some], [errors.get(index) for index in range(len(some))]
        arrow = self._arrow
        is_null = arrow.array([reason is not None for reason in reasons])
        flat = arrow.array(numpy.ascontiguousarray(vectors, numpy.float32).reshape(-1))
        table = arrow.table([arrow.array(keys, arrow.string()),
                             arrow.FixedSizeListArray.from_arrays(flat, self._size, mask=is_null),
                             arrow.array(reasons, arrow.string())], schema=self._schema)
        if self._metadata[KIND] == "text":
            hashes = b"".join(_hash(value) for _, value in some).hex()
            table = table.replace_schema_metadata({**self._schema.metadata, _TEXTS: hashes})
        path = self.folder / f"part-{self._next:06}.parquet"
        scratch = path.with_suffix(f".tmp.{os.getpid()}")
        try:
            self._parquet.write_table(table, scratch)
            os.replace(scratch, path)
        finally:
            scratch.unlink(missing_ok=True)
        self._next += 1
        self.done.update(keys)
        self.failed.update(keys[index] for index in errors)

    def read(self) -> tuple[list[str], numpy.ndarray]:
        """The keys and the vectors, float32 [n, size], of all inputs that have one."""
        # Their metadata differ.
        tables = [self._read(path, ["key", "vector", "error"]).replace_schema_metadata() for path in self.paths()]
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
        parts.add(some, vectors, vectors.errors)
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
            if key in before:
                parts.check_same(key, value)
            else:
                yield key, value

    remaining = missing()
    while some := list(itertools.islice(remaining, ROWS)):
        function(some)
    return seen


def _hash(text: Any) -> bytes:
    return hashlib.blake2b(text if isinstance(text, bytes) else text.encode(errors="surrogatepass"), digest_size=_HASH_BYTES).digest()


def _import_arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise UsageError("pyarrow, which writes Parquet, is missing; pip install 'cgc[embed]'") from None
    return pyarrow, pyarrow.parquet
