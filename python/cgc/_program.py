"""The program cgc, which the wheel holds: the console script, and the run that compile() makes."""
from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from . import _commands, _ranks
from ._errors import Error, error_of

#: The program. Its libraries lie beside it.
PROGRAM = str(Path(__file__).with_name("cgc"))


def main() -> None:
    """The console script `cgc`: runs a command of Python, or becomes the program."""
    arguments = sys.argv[1:]
    if arguments and arguments[0] in _commands.COMMANDS:
        sys.exit(_commands.run(arguments[0], arguments[1:]))
    if arguments in (["--help"], ["-h"]):
        status = subprocess.run([PROGRAM, *arguments], env=environment()).returncode
        print(f"\nOf the Python package: {', '.join(_commands.COMMANDS)}")
        sys.exit(status)
    if arguments[:1] == ["train"]:
        try:
            arguments += _ranks.train_options(arguments)
        except Error as error:
            print(f"cgc train: {error}", file=sys.stderr)
            sys.exit(int(error.code))
    os.execve(PROGRAM, ["cgc", *arguments], environment())


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
