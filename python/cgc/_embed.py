"""`cgc embed`: vectors of all pictures of a folder or of tar shards, or of all texts of a file, as Parquet.

The result is a folder of parts with the columns key, vector, error and version: for each input either a vector or an error.
A part is written as a whole. Another run goes on behind the inputs that the parts have.
"""
from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import lzma
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

from ._errors import Error, InvalidFileError, UsageError

if TYPE_CHECKING:
    from ._model import Vectors

#: The endings of files that are taken for pictures.
PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")
#: Inputs of a part. A killed run loses at most the part that it was at.
ROWS = 1024
#: The keys of the schema's metadata. All parts of a folder have the same values.
FORMAT, IDENTITY, MODEL, KIND, NORMALIZED = "cgc.format", "cgc.identity", "cgc.model", "cgc.kind", "cgc.normalized"
#: The value of FORMAT.
VERSION = "2"

#: A key, and a picture (a Path, or the bytes of a file) or a text; bytes in place of a text that is no UTF-8.
Input = tuple[str, Any]
#: An input and its version (version_of).
Versioned = tuple[str, Any, int]


def pictures_of(sources: Sequence[Path]) -> Iterator[Input]:
    """The pictures of folders, in the order of their names, and the members of tar files. With several sources, a key begins
    with its own. All are looked at before the first picture: UsageError for one without pictures."""
    for source in sources:
        if next(_pictures_in(source), None) is None:
            raise UsageError(f"{source} has no pictures; their names end in {', '.join(PICTURES)}")
    return ((key if len(sources) == 1 else f"{printable(source)}/{key}", value)
            for source in sources for key, value in _pictures_in(source))


def _pictures_in(source: Path) -> Iterator[Input]:
    if not source.exists():
        raise InvalidFileError(f"{source} does not exist; give a folder of pictures, or a .tar file of them")
    if source.is_dir():
        return _files(source)
    if source.suffix == ".tar":
        return _members(source)
    raise UsageError(f"{source} is neither a folder nor a .tar file; give pictures in one of these")


def _files(source: Path) -> Iterator[Input]:
    def fail(error: OSError) -> None:
        raise InvalidFileError(f"{error.filename} cannot be listed ({error.strerror}); let this user read it, or move it away")

    for folder, folders, names in os.walk(source, onerror=fail):
        folders.sort()
        for name in sorted(names):
            if name.lower().endswith(PICTURES):
                path = Path(folder, name)
                yield printable(path.relative_to(source)), path


def _members(shard: Path) -> Iterator[Input]:
    try:
        with tarfile.open(shard) as archive:
            for member in archive:
                if not member.isdir() and member.name.lower().endswith(PICTURES):
                    yield printable(member.name), _content(archive, member)
            # tarfile takes a header that is damaged for the end, which is a block of zeros, and so is what follows it.
            assert archive.fileobj is not None
            archive.fileobj.seek(archive.offset)
            end = archive.fileobj.read(128 * tarfile.BLOCKSIZE)
            if len(end) < tarfile.BLOCKSIZE or any(end):
                raise tarfile.TarError(f"at byte {archive.offset} there is neither a member nor the end")
    except (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        raise InvalidFileError(f"{shard} is no tar file, or is damaged ({error}); copy it again") from error


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """The bytes of a member, or of the one that it links to; no bytes for one that has none."""
    try:
        file = archive.extractfile(member)
    except (KeyError, RecursionError):  # The target of a link is missing, or the link itself.
        return b""
    return file.read() if file else b""


def texts_of(source: Path) -> Iterator[Input]:
    """The lines of a file of UTF-8, by their numbers from 1. A line of other bytes is given as those. UsageError for no line."""
    try:
        lines = iter(open(source, "rb"))
        first = next(lines, None)
    except OSError as error:
        raise InvalidFileError(f"{source}: {error.strerror}; give a file with a text for each line") from None
    if first is None:
        raise UsageError(f"{source} is empty; give a file with a text for each line")
    return map(_text, enumerate(itertools.chain([first], lines), 1))


def _text(numbered: tuple[int, bytes]) -> Input:
    number, line = numbered
    try:
        return str(number), line.rstrip(b"\r\n").decode()
    except UnicodeDecodeError:
        return str(number), line


def printable(name: str | Path) -> str:
    """A name of a file in UTF-8: bytes that are none as \\xHH, and a backslash that would begin such four characters too."""
    return re.sub(rb"\\(?=x[0-9a-f]{2})", rb"\\x5c", os.fsencode(name)).decode("utf-8", "backslashreplace")


class Parts:
    """The folder of parts of one model. One at a time writes to a folder."""

    def __init__(self, folder: Path, card: Any, kind: str, normalized: bool = True):
        """card: that of the model. kind: "image" or "text". normalized: whether the vectors have length 1. UsageError for a
        folder whose parts have others, or to which another process writes."""
        self._arrow, self._parquet = _import_arrow()
        self.folder, self._size = folder, card.size
        arrow = self._arrow
        self._metadata = {FORMAT: VERSION, IDENTITY: card.identity, KIND: kind, NORMALIZED: str(normalized).lower()}
        self._schema = arrow.schema([("key", arrow.string()), ("vector", arrow.list_(arrow.float32(), card.size)),
                                     ("error", arrow.string()), ("version", arrow.uint64())],
                                    {**self._metadata, MODEL: card.name})
        self.done: dict[str, int] = {}  #: The versions of the inputs that have a row, by their keys.
        self.failed: set[str] = set()
        self.added = 0  #: The rows that add() wrote.
        self._latest: dict[str, int] = {}  #: Of keys with several rows, the number of the part whose row counts.
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = open(folder / ".lock", "w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another process writes to {folder}; wait for it, or give another folder for the parts") from None
        self._next = 0
        for path in self.paths():
            self._check(path)
            self._next = _number(path)
            table = self._read(path, ["key", "version", "error"])
            self._count(*(table[name].to_pylist() for name in ("key", "version", "error")))

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

    def _check(self, path: Path) -> None:
        """Refuses a part of another run."""
        schema = self._read(path)
        for name, wanted in self._metadata.items():
            found = (schema.metadata or {}).get(name.encode(), b"").decode(errors="replace")
            if found != wanted:
                raise UsageError(f"{path} has vectors with {name} {found or 'missing'}, and those of this run have {wanted}; give "
                                 "another folder for the parts")
        if not schema.equals(self._schema):
            raise UsageError(f"{path} has other columns than {', '.join(self._schema.names)}; give another folder for the parts")

    def _count(self, keys: list[str], versions: list[int], errors: list[str | None]) -> None:
        """Takes the rows of the part of number `_next`, which count from now on."""
        self._latest.update((key, self._next) for key in keys if key in self.done)
        self.done.update(zip(keys, versions))
        self.failed.difference_update(keys)
        self.failed.update(key for key, error in zip(keys, errors) if error is not None)
        self._next += 1

    def has(self, key: str, version: int, replaces: bool) -> bool:
        """Whether the parts have this version of an input. An input that has changed has none: one that failed is tried again,
        and any with `replaces`. UsageError for others."""
        if key not in self.done or self.done[key] == version:
            return key in self.done
        if not replaces and key not in self.failed:
            name = f"line {key}" if self._metadata[KIND] == "text" else key
            raise UsageError(f"{name} has changed since {self.folder} got its vector; give another folder for the parts")
        return False

    def add(self, some: Sequence[Versioned], vectors: numpy.ndarray, errors: Mapping[int, str]) -> None:
        """Writes a part as a whole. `errors` has those of the inputs without a vector, by their index."""
        keys, versions = [key for key, _, _ in some], [version for _, _, version in some]
        reasons = ["is no UTF-8" if isinstance(value, bytes) and self._metadata[KIND] == "text" else errors.get(index)
                   for index, (_, value, _) in enumerate(some)]
        arrow = self._arrow
        is_null = arrow.array([reason is not None for reason in reasons])
        flat = arrow.array(numpy.ascontiguousarray(vectors, numpy.float32).reshape(-1))
        self._write(self.folder / f"part-{self._next:06}.parquet", arrow.table(
            [arrow.array(keys, arrow.string()), arrow.FixedSizeListArray.from_arrays(flat, self._size, mask=is_null),
             arrow.array(reasons, arrow.string()), arrow.array(versions, arrow.uint64())], schema=self._schema))
        self._count(keys, versions, reasons)
        self.added += len(keys)

    def _write(self, path: Path, table: Any) -> None:
        scratch = path.with_suffix(f".tmp.{os.getpid()}")
        try:
            self._parquet.write_table(table, scratch)
            os.replace(scratch, path)
        except OSError as error:
            raise Error(f"{path} cannot be written ({error.strerror or error}); the other parts are whole: make room there, and "
                        "run again") from error
        finally:
            with contextlib.suppress(OSError):
                scratch.unlink(missing_ok=True)

    def drop_old(self) -> None:
        """Leaves the row that counts alone of an input that has several."""
        for path in self.paths() if self._latest else []:
            table, number = self._read(path, self._schema.names), _number(path)
            counts = [self._latest.get(key, number) == number for key in table["key"].to_pylist()]
            if not all(counts):
                self._write(path, table.filter(self._arrow.array(counts)))
        self._latest.clear()

    def read(self) -> tuple[list[str], numpy.ndarray]:
        """The keys and the vectors, float32 [n, size], of all inputs that have one."""
        # The names of the model may differ.
        tables = [self._read(path, ["key", "vector", "error"]).replace_schema_metadata() for path in self.paths()]
        if not tables:
            return [], numpy.empty((0, self._size), numpy.float32)
        table = self._arrow.concat_tables(tables)
        table = table.filter(self._arrow.compute.is_null(table["error"])).combine_chunks()
        column = table["vector"]
        flat = numpy.concatenate([chunk.flatten().to_numpy() for chunk in column.chunks]) if column.num_chunks else numpy.empty(0)
        return table["key"].to_pylist(), flat.reshape(-1, self._size).astype(numpy.float32, copy=False)


def embed(inputs: Iterable[Input], encode: Callable[[list[Any]], Vectors], parts: Parts,
          progress: Callable[[], None] = lambda: None, replaces: bool = False) -> set[str]:
    """Writes a part for each ROWS of the inputs that the parts do not have. Returns the keys of all inputs."""
    def write(some: list[Versioned]) -> None:
        vectors = encode([value for _, value, _ in some])
        parts.add(some, vectors, vectors.errors)
        progress()

    keys = for_each_part(inputs, parts, write, replaces)
    parts.drop_old()
    return keys


def for_each_part(inputs: Iterable[Input], parts: Parts, function: Callable[[list[Versioned]], None], replaces: bool = False) -> set[str]:
    """Calls the function with ROWS at a time of the inputs that the parts do not have. Returns the keys of all inputs.
    UsageError for a key that comes twice."""
    seen: set[str] = set()

    def missing() -> Iterator[Versioned]:
        for key, value in inputs:
            if key in seen:
                raise UsageError(f"two inputs have the key {key}; embed them into folders of their own")
            seen.add(key)
            version = version_of(value)
            if not parts.has(key, version, replaces):
                yield key, value, version

    remaining = missing()
    while some := list(itertools.islice(remaining, ROWS)):
        function(some)
    return seen


def version_of(value: Any) -> int:
    """A hash of the size and the time of a file, or of the content of another input."""
    if isinstance(value, Path):
        try:
            state = value.stat()
            value = f"{state.st_size} {state.st_mtime_ns}"
        except OSError:  # It is gone, which the one that reads it reports.
            value = b""
    content = value if isinstance(value, bytes) else value.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")


def _number(part: Path) -> int:
    return int(part.stem.removeprefix("part-"))


def _import_arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise UsageError("pyarrow, which writes Parquet, is missing; pip install 'cgc[embed]'") from None
    return pyarrow, pyarrow.parquet
