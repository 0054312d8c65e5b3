"""All or nothing: files that appear whole."""

import contextlib
import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
"""The disk is full, or what we may have of it."""


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file beside the wanted one that takes its place when everything is written.

    Links are followed; what is not a plain file (a device, a pipe) is written to as it is.
    """
    path = Path(os.path.realpath(path))
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder: name a file in it.")
    if path.exists() and not path.is_file():
        with tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            with _writing(path, _FULL), path.open("wb") as device:  # which cannot be written to here and there
                shutil.copyfileobj(file, device)
        return
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666  # as open() would have made it
    name = str(path.with_name(f".pilae-{secrets.token_hex(8)}"))
    with _writing(path, None):
        try:  # no name until it is whole: not even a killed process leaves a piece
            handle = os.open(path.parent, os.O_TMPFILE | os.O_RDWR, mode)
        except (AttributeError, OSError):  # another system, or a file system without
            handle = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), mode)
    try:
        with _writing(path, _FULL), os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # a power cut must not leave the name without the content
            if not os.path.exists(name):
                _give_name(file, name)
        with _writing(path, None):
            os.replace(name, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def _give_name(file: BinaryIO, name: str) -> None:
    try:
        # a folder is given, and not used, so that Python takes linkat: link would make a link to the link
        os.link(f"/proc/self/fd/{file.fileno()}", name, src_dir_fd=file.fileno(), follow_symlinks=True)
    except OSError:  # /proc is not there, or links are not allowed
        file.seek(0)
        with open(name, "xb") as copy:
            shutil.copyfileobj(file, copy)
            copy.flush()
            os.fsync(copy.fileno())


@contextlib.contextmanager
def _writing(path: Path, numbers: tuple[int, ...] | None) -> Iterator[None]:
    """What goes wrong, by these numbers of the system's errors or by any, as a sentence about the file."""
    try:
        yield
    except OSError as error:
        if numbers is not None and error.errno not in numbers:
            raise
        sentence = type(error)(f"Cannot write {str(path)!r}: {error.strerror or error}.")
        sentence.errno = error.errno
        raise sentence from error
