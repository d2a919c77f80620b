"""Model: vectors of pictures and texts by a model folder."""
from __future__ import annotations

import concurrent.futures
import functools
import itertools
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

from . import _folder, _tokenizer
from ._errors import UsageError
from .preprocess import Preprocess

if TYPE_CHECKING:
    from ._session import Session

#: The entry that resizes pictures itself.
PICTURES = "encode_pictures"
#: Rows that are preprocessed at a time where every bucket is smaller.
_LEAST_ROWS = 16
#: Batches of pictures at a time: one is preprocessed, one copied, one computed.
_BATCHES = 3
#: The least norm that a vector is divided by: the eps of torch.nn.functional.normalize.
_LEAST_NORM = 1e-12


class InputError(UsageError):
    """Pictures or texts that have no vector. `errors` has the message of each, by its index, `vectors` those of the others."""

    def __init__(self, kind: str, errors: dict[int, str], vectors: Vectors):
        first, *more = errors
        others = f", and {len(more)} more cannot be used" if more else ""
        super().__init__(f"{kind} {first} {errors[first]}{others}; give errors=\"return\" for rows of NaN in place of them")
        self.errors, self.vectors = errors, vectors


class Vectors(numpy.ndarray):
    """float32 [n, size]: a NumPy array that carries the identity of its model. Slices, copies, pickles, and results of NumPy's
    functions do too. UsageError from a function of vectors of different identities."""

    identity: str  #: That of Card.
    errors: dict[int, str]  #: The messages of the pictures whose rows are NaN, by index.

    def __array_finalize__(self, source: Any) -> None:
        self.identity = getattr(source, "identity", "")
        self.errors = {}

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, out: Any = (), **settings: Any) -> Any:
        identity = _identity_of((*inputs, *out))
        given = {"out": tuple(map(_plain, out))} if out else {}
        result = getattr(function, method)(*map(_plain, inputs), **given, **{key: _plain(value) for key, value in settings.items()})
        return out[0] if len(out) == 1 else _with(identity, result)

    def __array_function__(self, function: Any, types: Any, arguments: Any, settings: Any) -> Any:
        identity = _identity_of((*arguments, *settings.values()))
        return _with(identity, super().__array_function__(function, types, arguments, settings))

    def __reduce__(self) -> Any:
        return _vectors, (numpy.asarray(self), self.identity, self.errors)


def _plain(value: Any) -> Any:
    return numpy.asarray(value) if isinstance(value, Vectors) else value


def _with(identity: str, result: Any) -> Any:
    return _vectors(result, identity, {}) if isinstance(result, numpy.ndarray) else result


def _identity_of(values: Iterable[Any]) -> str:
    """The identity of all vectors among values and sequences of values."""
    flat = itertools.chain.from_iterable(value if isinstance(value, (list, tuple)) else [value] for value in values)
    found = sorted({value.identity for value in flat if isinstance(value, Vectors) and value.identity})
    if len(found) > 1:
        raise UsageError(f"the vectors are of different models, {' and '.join(found)}, and must not be combined; encode all with one")
    return found[0] if found else ""


def _vectors(rows: numpy.ndarray, identity: str, errors: dict[int, str]) -> Vectors:
    result = rows.view(Vectors)
    result.identity, result.errors = identity, errors
    return result


class Model:
    """A model of pictures, of texts or of both: what load() gives for a model folder.

    Any thread may call any method at any time. A model is a context manager, which closes its session.
    """

    def __init__(self, folder: Path, card: _folder.Card, session: Session):
        self._folder, self.card, self.session = folder, card, session

    @property
    def identity(self) -> str:
        """Names the space of the vectors. Vectors of different identities must not be compared."""
        return self.card.identity

    @property
    def size(self) -> int:
        """The number of elements of a vector."""
        return self.card.size

    @functools.cached_property
    def preprocess(self) -> Preprocess:
        """Makes the input of the plan of pictures: model.preprocess(["a.jpg"]).pixels."""
        self._entry("encode_image")
        return Preprocess.from_json(_folder.read_json(self._folder / _folder.PREPROCESS))

    @functools.cached_property
    def tokenize(self) -> _tokenizer.Tokenizer:
        """Makes the input of the plan of texts: model.tokenize(["a cat"]), int64 [n, context_length]."""
        self._entry("encode_text")
        return _tokenizer.read(self._folder / _folder.TOKENIZER)

    def encode_image(self, pictures: Any, *, normalize: bool = True, errors: str = "raise",
                     threads: int | None = None) -> Vectors:
        """The vectors of pictures, float32 [n, size].

        pictures: one picture or any number: paths, bytes of files, file objects, PIL images, NumPy uint8 [H, W, 3].
        normalize: whether each vector is divided by its Euclidean norm.
        errors: what becomes of a picture that cannot be read. "raise": InputError, after all others are done. "return": its
            row is NaN, and the `errors` of the result has its message.
        threads: that preprocess a batch [the processors of this process]. Three batches are worked on at a time: load the
            model with contexts=2, so that a GPU copies one while it computes another.
        """
        preprocess, entry = self.preprocess, self.session.entries.get(PICTURES) or self._entry("encode_image")
        sources = [pictures] if _is_one(pictures) else list(pictures)
        failed: dict[int, str] = {}
        result = numpy.empty((len(sources), self.size), numpy.float32)
        step = _rows_of(entry)

        def encode(start: int) -> dict[int, str]:
            some = sources[start:start + step]
            if entry.name == PICTURES:  # The plan resizes and normalizes.
                size, integers = (info.shape[1] for info in entry.inputs)
                packed = preprocess.pack(some, size, (integers - 3) // sum(preprocess.size) - 1, threads)
                inputs, reasons = [packed.pixels, packed.table], packed.reasons
            else:
                images = preprocess(some, dtype=entry.inputs[0].dtype, threads=threads)
                inputs, reasons = [images.pixels], images.reasons
            result[start:start + step] = self._run(entry.name, inputs, normalize)
            return {start + index: why for index, why in reasons.items()}

        with concurrent.futures.ThreadPoolExecutor(_BATCHES) as pool:
            for reasons in pool.map(encode, range(0, len(sources), step)):
                failed.update(reasons)
        return self._finished("picture", result, failed, errors)

    def encode_text(self, texts: str | Sequence[str], *, normalize: bool = True, errors: str = "raise") -> Vectors:
        """The vectors of one text or of any number, float32 [n, size]. `normalize` and `errors` are those of encode_image()."""
        entry, tokenize = self._entry("encode_text"), self.tokenize
        if isinstance(texts, (str, bytes)):
            texts = [texts]
        elif not isinstance(texts, Iterable):
            raise UsageError(f"texts is of type {type(texts).__name__}; give a str, or a list of them")
        texts = list(texts)
        failed = {index: why for index, text in enumerate(texts) if (why := tokenize.why_not(text))}
        good = numpy.array([index for index in range(len(texts)) if index not in failed], numpy.int64)
        result = numpy.empty((len(texts), self.size), numpy.float32)
        for some, inputs in tokenize.batches([texts[index] for index in good], _rows_of(entry)):
            result[good[some]] = self._run("encode_text", inputs, normalize)
        return self._finished("text", result, failed, errors)

    def _finished(self, kind: str, rows: numpy.ndarray, failed: dict[int, str], errors: str) -> Vectors:
        if errors not in ("raise", "return"):
            raise UsageError(f"errors is {errors!r}; give 'raise' or 'return'")
        for index in numpy.flatnonzero(~numpy.isfinite(rows).all(axis=1)).tolist():
            failed.setdefault(index, "has a vector that is not finite; if the model has precision fp16, export it with bf16 or fp32")
        failed = dict(sorted(failed.items()))
        rows[list(failed)] = numpy.nan
        vectors = _vectors(rows, self.identity, failed)
        if failed and errors == "raise":
            raise InputError(kind, failed, vectors)
        return vectors

    def similarity(self, left: Any, right: Any) -> numpy.ndarray:
        """The cosines of all pairs, float32 [len(left), len(right)], of vectors of this model. UsageError for those of
        another one. The model's probabilities of captions are
        softmax(card.logit_scale * similarity(images, texts), axis=1)."""
        for vectors in (left, right):
            identity = getattr(vectors, "identity", self.identity)
            if identity != self.identity:
                raise UsageError(f"the vectors are of the model {identity or 'of no identity'}, and this one is {self.identity}; "
                                 "encode both sides with one model")
        left, right = (numpy.atleast_2d(numpy.asarray(vectors, numpy.float32)) for vectors in (left, right))
        for vectors in (left, right):
            if vectors.ndim != 2 or vectors.shape[1] != self.size:
                raise UsageError(f"the vectors have the shape {list(vectors.shape)}; give [n, {self.size}]")
        return _normalized(left) @ _normalized(right).T

    def close(self) -> None:
        """Closes the session. Later calls raise UsageError."""
        self.session.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<cgc.Model {self.card.name} {self.identity}: {', '.join(self.session.entries)}, {self.size} elements>"

    def _entry(self, name: str) -> Any:
        entry = self.session.entries.get(name)
        if entry is None:
            raise UsageError(f"{self.card.name} has no {name}(); it has {', '.join(self.session.entries)}")
        return entry

    def _run(self, entry: str, inputs: list[numpy.ndarray], normalize: bool) -> numpy.ndarray:
        features = numpy.asarray(self.session.run(entry, inputs)).astype(numpy.float32)
        return _normalized(features) if normalize else features


def _normalized(rows: numpy.ndarray) -> numpy.ndarray:
    with numpy.errstate(invalid="ignore"):  # _finished() sees what is not finite.
        return rows / numpy.maximum(numpy.linalg.norm(rows, axis=-1, keepdims=True), _LEAST_NORM)


def _is_one(pictures: Any) -> bool:
    """Whether this is one picture, not several."""
    if isinstance(pictures, numpy.ndarray):
        return pictures.ndim == 3
    return isinstance(pictures, (str, bytes, bytearray, memoryview, os.PathLike)) or not isinstance(pictures, Iterable) \
        or hasattr(pictures, "read")


def _rows_of(entry: Any) -> int:
    """The number of rows that run at a time: those of the largest bucket."""
    return max(_LEAST_ROWS, *[bucket.batch or 1 for bucket in entry.buckets])
