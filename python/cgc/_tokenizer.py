"""Tokenizers of a model folder: the same ids as open_clip's and transformers' own, without torch."""
from __future__ import annotations

import functools
import gzip
import html
import importlib
import json
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy

from ._errors import InvalidFileError, UsageError
from ._folder import read_json

#: The files of a tokenizer folder.
SETTINGS, MERGES, FAST = "settings.json", "merges.txt.gz", "tokenizer.json"
#: The most characters of a text. A word is tokenized as a whole, whatever the context length is.
MAX_CHARACTERS = 1_000_000
#: The words whose ids are kept.
_CACHED_WORDS = 65536
_EXTRA = "pip install 'cgc[embed]'"


class Tokenizer:
    """Makes ids of texts: any number of texts, from any thread."""

    context_length: int  #: The most ids of a text, with those that begin and end it.

    def __call__(self, texts: str | Sequence[str]) -> numpy.ndarray:
        """The ids of one text or of several: int64 [n, length], cut and padded as the model was trained. The length is
        context_length or, of a tokenizer that pads to the longest text, the least of its lengths that suffices.

        UsageError, with the index of the text, for one that why_not() refuses.
        """
        return self._ids(self._checked(texts))

    def batches(self, texts: Sequence[str], rows: int) -> Iterator[tuple[numpy.ndarray, list[numpy.ndarray]]]:
        """The inputs of encode_text for at most `rows` texts at a time, with the indices of these texts."""
        ids = self(texts)
        for start in range(0, len(ids), rows):
            yield numpy.arange(start, min(start + rows, len(ids))), [ids[start:start + rows]]

    def why_not(self, text: object) -> str | None:
        """Why this is no text that has ids; None if it is one."""
        if not isinstance(text, str):
            return f"is {type(text).__name__}; give a str"
        if len(text) > MAX_CHARACTERS:
            return f"has {len(text):,} characters, and at most {MAX_CHARACTERS:,} are taken; cut it"
        return None

    def _checked(self, texts: str | Sequence[str]) -> list[str]:
        texts = [texts] if isinstance(texts, str) else list(texts)
        for index, text in enumerate(texts):
            if why := self.why_not(text):
                raise UsageError(f"text {index} {why}")
        return texts

    def _ids(self, texts: list[str]) -> numpy.ndarray:
        raise NotImplementedError


class ClipTokenizer(Tokenizer):
    """The byte-level BPE of OpenAI's CLIP: the ids of open_clip.tokenizer.SimpleTokenizer.

    `regex` splits a cleaned text into words by the pattern of CLIP, `tokenizers` merges the bytes of each.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]):
        regex, tokenizers = _import("regex"), _import("tokenizers")
        self.context_length = settings["context_length"]
        self._clean = cleaning(settings["clean"])
        lines = gzip.decompress((folder / MERGES).read_bytes()).decode().split("\n")
        merges = [tuple(line.split()) for line in lines[1:settings["merges"] + 1]]
        self._characters = _characters_of_bytes()
        words = [*self._characters.values(), *(each + "</w>" for each in self._characters.values()), *map("".join, merges)]
        special = settings["special_tokens"]
        ids = {word: index for index, word in enumerate([*words, *special])}
        self._special = {token: ids[token] for token in special}
        self._start, self._end = (ids[token] for token in special[:2])
        # The alternatives of the special tokens are not escaped: open_clip's are not.
        self._words = regex.compile("|".join(special) + r"|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
                                    regex.IGNORECASE)
        self._bpe = tokenizers.models.BPE(ids, merges, end_of_word_suffix="</w>", cache_capacity=0)
        self._ids_of = functools.lru_cache(_CACHED_WORDS)(self._ids_of_word)

    def _ids_of_word(self, word: str) -> tuple[int, ...]:
        mapped = "".join(map(self._characters.__getitem__, word.encode()))
        if mapped in self._special:
            return (self._special[mapped],)
        return tuple(token.id for token in self._bpe.tokenize(mapped))

    def _ids(self, texts: list[str]) -> numpy.ndarray:
        result = numpy.zeros((len(texts), self.context_length), numpy.int64)
        for row, text in zip(result, texts):
            ids = [self._start]
            for word in self._words.finditer(self._clean(text)):
                ids += self._ids_of(word[0])
                if len(ids) >= len(row):
                    break
            ids = [*ids[:len(row) - 1], self._end]
            row[:len(ids)] = ids
        return result


class FastTokenizer(Tokenizer):
    """A tokenizer of transformers, from its tokenizer.json: the ids of open_clip.tokenizer.HFTokenizer, or of
    transformers' own call where nothing is cleaned. All texts are padded to context_length."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]):
        self.context_length = settings["context_length"]
        self._clean = cleaning(settings["clean"])
        self._removed = settings["removed_id"]
        self._pad_id, self._pads_left = settings["pad_id"], settings["padding_side"] == "left"
        self._tokenizer = _import("tokenizers").Tokenizer.from_file(str(folder / FAST))
        self._tokenizer.enable_truncation(self.context_length, direction=settings["truncation_side"])
        self._tokenizer.no_padding()

    def why_not(self, text: object) -> str | None:
        why = super().why_not(text)
        if why is None and self._clean is str:  # Cleaning would replace it.
            try:
                str(text).encode()
            except UnicodeEncodeError:
                return "holds half of a surrogate pair; give text that UTF-8 can encode"
        return why

    def _ids(self, texts: list[str]) -> numpy.ndarray:
        return self._padded(self._encoded(texts), self.context_length)

    def _encoded(self, texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch([self._clean(text) for text in texts])]

    def _padded(self, encoded: list[list[int]], length: int) -> numpy.ndarray:
        ids = numpy.full((len(encoded), length), self._pad_id, numpy.int64)
        for row, given in zip(ids, encoded):
            row[length - len(given) if self._pads_left else 0:][:len(given)] = given
        return ids if self._removed is None else numpy.where(ids == self._removed, 0, ids)


class MaskedTokenizer(FastTokenizer):
    """A tokenizer of transformers for a model that takes a mask, so that texts are padded to one of a few lengths."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]):
        super().__init__(folder, settings)
        self._lengths = settings["lengths"]

    def _ids(self, texts: list[str]) -> numpy.ndarray:
        encoded = self._encoded(texts)
        return self._padded(encoded, self._length(max(map(len, encoded), default=0)))

    def batches(self, texts: Sequence[str], rows: int) -> Iterator[tuple[numpy.ndarray, list[numpy.ndarray]]]:
        """Also the mask of each batch, whose texts are of about one length."""
        encoded = self._encoded(self._checked(texts))
        sizes = numpy.array([len(ids) for ids in encoded], numpy.int64)
        order = numpy.argsort(sizes, kind="stable")
        for start in range(0, len(order), rows):
            some = order[start:start + rows]
            length = self._length(int(sizes[some].max()))
            mask = numpy.arange(length) < sizes[some, None]
            yield some, [self._padded([encoded[index] for index in some], length),
                         (mask[:, ::-1] if self._pads_left else mask).astype(numpy.int64)]

    def _length(self, least: int) -> int:
        return next(length for length in self._lengths if length >= least)


_KINDS: dict[str, Callable[[Path, Mapping[str, Any]], Tokenizer]] = {"clip": ClipTokenizer, "fast": FastTokenizer,
                                                                   "masked": MaskedTokenizer}


def read(folder: Path) -> Tokenizer:
    """The tokenizer of a folder. InvalidFileError for one of another version of cgc."""
    settings = read_json(folder / SETTINGS)
    if settings.get("kind") not in _KINDS:
        raise InvalidFileError(f"{folder / SETTINGS}: the tokenizer is {settings.get('kind')!r}, which this version of cgc "
                               "does not know; export the model with it")
    return _KINDS[settings["kind"]](folder, settings)


def write(tokenizer: Any, folder: Path) -> None:
    """Writes a tokenizer of open_clip into a new folder. UsageError for one whose ids cannot be made without torch."""
    import open_clip.tokenizer
    if isinstance(tokenizer, open_clip.tokenizer.SimpleTokenizer):
        if tokenizer.reduction_fn is not None:
            raise UsageError("the tokenizer of the model drops words at random (reduction_mask); that is for training")
        special = [tokenizer.decoder[each] for each in tokenizer.all_special_ids]
        settings = {"kind": "clip", "context_length": tokenizer.context_length, "clean": _name_of_cleaning(tokenizer),
                    "merges": len(tokenizer.bpe_ranks), "special_tokens": special}
        files = {MERGES: Path(open_clip.tokenizer.default_bpe()).read_bytes()}
    elif isinstance(tokenizer, open_clip.tokenizer.HFTokenizer) and not tokenizer.tokenizer_mode:
        settings, files = _fast(tokenizer.tokenizer, tokenizer.context_length)
        settings["clean"] = _name_of_cleaning(tokenizer)
        settings["removed_id"] = tokenizer.tokenizer.sep_token_id if tokenizer.strip_sep_token else None
    else:
        mode = getattr(tokenizer, "tokenizer_mode", "")
        raise UsageError(f"the tokenizer of the model is {type(tokenizer).__name__}{f' with mode {mode!r}' if mode else ''}, "
                         "which cgc does not write; tokenize with open_clip and run the plan with cgc.Session")
    _write(folder, settings, files)


def write_transformers(tokenizer: Any, context_length: int, folder: Path, lengths: Sequence[int] | None = None) -> None:
    """Writes a fast tokenizer of transformers into a new folder. With `lengths`, of which the last is context_length, it
    pads to one of them, and makes masks."""
    settings, files = _fast(tokenizer, context_length)
    if lengths:
        settings.update(kind="masked", lengths=list(lengths))
    _write(folder, settings, files)


def _fast(tokenizer: Any, context_length: int) -> tuple[dict[str, Any], dict[str, bytes]]:
    if not getattr(tokenizer, "is_fast", False):
        raise UsageError(f"the tokenizer of the model is {type(tokenizer).__name__}, which has no tokenizer.json; save the "
                         "fast form of it: AutoTokenizer.from_pretrained(PATH, use_fast=True).save_pretrained(PATH)")
    if tokenizer.pad_token_id is None:
        raise UsageError("the tokenizer of the model has no token that pads; set pad_token in its tokenizer_config.json")
    settings = {"kind": "fast", "context_length": context_length, "clean": "none", "removed_id": None,
                "truncation_side": tokenizer.truncation_side, "padding_side": tokenizer.padding_side,
                "pad_id": tokenizer.pad_token_id}
    return settings, {FAST: tokenizer.backend_tokenizer.to_str(pretty=True).encode()}


def _write(folder: Path, settings: dict[str, Any], files: dict[str, bytes]) -> None:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n")


def _name_of_cleaning(tokenizer: Any) -> str:
    """The name of a cleaning function of open_clip."""
    from open_clip.tokenizer import get_clean_fn
    return next(name for name in _CLEANINGS if name != "none" and get_clean_fn(name) is tokenizer.clean_fn)


def _repair(text: str) -> str:
    return html.unescape(html.unescape(_import("ftfy").fix_text(text))).strip()


def _one_space(text: str) -> str:
    return " ".join(text.split())


_WITHOUT_PUNCTUATION = {**dict.fromkeys(map(ord, string.punctuation)), ord("_"): " "}
#: What open_clip does to a text first, by its names.
_CLEANINGS: dict[str, Callable[[str], str]] = {
    "none": str,
    "whitespace": lambda text: _one_space(_repair(text)),
    "lower": lambda text: _one_space(_repair(text)).lower(),
    "canonicalize": lambda text: _one_space(_repair(text).translate(_WITHOUT_PUNCTUATION).lower()),
}


def cleaning(name: str) -> Callable[[str], str]:
    if name not in _CLEANINGS:
        raise InvalidFileError(f"{SETTINGS}: texts are cleaned by {name!r}, which this version of cgc does not know; export "
                               "the model with it")
    if name != "none":
        _import("ftfy")
    return _CLEANINGS[name]


def _characters_of_bytes() -> dict[int, str]:
    """The character of each byte in the vocabulary of GPT-2 and CLIP: printable ones stand for themselves, the others for
    those from U+0100 on. The order is that of the vocabulary."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{byte: chr(byte) for byte in printable}, **{byte: chr(256 + index) for index, byte in enumerate(others)}}


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UsageError(f"the package {name}, which the tokenizer of this model needs, is missing; {_EXTRA}") from None
