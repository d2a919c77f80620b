"""Exceptions: one class for each code of cgc, which is also the exception that Python uses for such a failure."""
from __future__ import annotations

import enum


class Code(enum.IntEnum):
    """The kinds of failure: cgc_code of cgc.h, and the exit codes of the program cgc."""

    FAILED = 1  #: The operation failed for a reason that no other code names.
    USAGE = 2  #: The caller's arguments are wrong.
    INVALID_FILE = 3  #: A file is missing, damaged or of another kind.
    UNSUPPORTED = 4  #: The plan or model uses something that cgc does not support.
    DEVICE = 6  #: No usable device, driver or library, or the device failed.
    OUT_OF_MEMORY = 7  #: Host or device memory ran out.
    BUSY = 8  #: A limit on waiting or the time-out was reached. Try again later.


class Error(Exception):
    """An error of cgc. The message names the object, the cause and the next step."""

    code: Code = Code.FAILED


class UsageError(Error, ValueError):
    """The caller's arguments are wrong."""

    code = Code.USAGE


class InvalidFileError(Error, OSError):
    """A file is missing, damaged or of another kind."""

    code = Code.INVALID_FILE


class UnsupportedError(Error, NotImplementedError):
    """The plan or model uses something that cgc does not support."""

    code = Code.UNSUPPORTED


class DeviceError(Error, RuntimeError):
    """No usable device, driver or library, or the device failed."""

    code = Code.DEVICE


class OutOfMemoryError(Error, MemoryError):
    """Host or device memory ran out."""

    code = Code.OUT_OF_MEMORY


class BusyError(Error, TimeoutError):
    """A limit on waiting or the time-out was reached. Try again later."""

    code = Code.BUSY


_CLASSES: dict[int, type[Error]] = {
    cls.code: cls
    for cls in (Error, UsageError, InvalidFileError, UnsupportedError, DeviceError, OutOfMemoryError, BusyError)}
for _class in _CLASSES.values():
    _class.__module__ = "cgc"  # As users see it.


def error_of(code: int, message: str) -> Error:
    """The exception of a code of cgc.h or an exit code of the program."""
    return _CLASSES.get(code, Error)(message)
