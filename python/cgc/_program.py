"""The program cgc, which the wheel holds: the console script, and the run that compile() makes."""
from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ._errors import error_of

#: The program. Its libraries lie beside it.
PROGRAM = str(Path(__file__).with_name("cgc"))


def main() -> None:
    """The console script `cgc`: becomes the program."""
    os.execve(PROGRAM, ["cgc", *sys.argv[1:]], environment())


def run(arguments: Sequence[str]) -> None:
    """Runs the program with these arguments. Raises its error."""
    done = subprocess.run([PROGRAM, *arguments], env=environment(), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace")
    if done.returncode:
        raise error_of(done.returncode, done.stderr.strip() or f"the program cgc ended with status {done.returncode}")


def environment() -> dict[str, str]:
    """The environment of the program: CGC_LIBTORCH names the installed torch, if nothing else is named."""
    spec = importlib.util.find_spec("torch")
    found = {"CGC_LIBTORCH": str(Path(spec.origin).parent)} if spec and spec.origin else {}
    return {**found, **os.environ}
