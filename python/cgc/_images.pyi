"""Preprocessing of pictures. Use cgc.preprocess."""
from collections.abc import Sequence
from typing import Any

class Sizes:
    def __init__(self, height: int, width: int, interpolation: str, resize_mode: str, fill_color: int, edge: int) -> None: ...
    def place(self, height: int, width: int) -> tuple[int, int, int, int]: ...  # Height, width, top, left.
    def run(self, sources: Sequence[Any], table: Any, channels_last: bool, results: Any, threads: int,
            max_pixels: int) -> list[tuple[int, str] | None]: ...  # Codes and messages; code 0 for other formats.
    def pack(self, sources: Sequence[Any], pixels: Any, tables: Any, threads: int,
             max_pixels: int) -> list[tuple[int, str] | None]: ...

def uses_avx2() -> bool: ...
def set_avx2(use: bool) -> None: ...
