"""The archive of a model file: what is opened, how much it may unpack to, and the one error."""

import contextlib
import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from typing import Any

FORMAT = 3
"""Of pilae 0.1.0; every later version reads it (tests/behaviour/frozen.json has files of every kind of model). Goes up
when the code of yesterday could not read a file of today. 3: what was fitted is one value."""

HEADER_BYTES = 2**24
"""A header is not larger than this: a name for each of 100,000 columns is a third of it."""

UNPACKED_BYTES, UNPACKED_TIMES = 2**28, 100
"""An archive may unpack to so many bytes, or to so many times its size: beyond, it was made to fill memory."""

SAID = 60
"""Characters of what a file says that are said again."""


class ModelFileError(ValueError):
    """A file is not a model that this version of pilae can load: damaged, forged, of another program or of a later one.

    The one error of `load`, beside those of files that are not there or not to be read (OSError) and of packages that
    are not installed (ImportError).

    Examples
    --------
    >>> import tempfile, pilae
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     pilae.load(file.name)
    Traceback (most recent call last):
    pilae.save.ModelFileError: ... is not a model that pilae has saved, or it is damaged.
    """


@contextlib.contextmanager
def opened(path: str | os.PathLike) -> Iterator[zipfile.ZipFile]:
    with open(path, "rb") as file:
        try:
            archive = zipfile.ZipFile(file)
            check_archive(archive, os.fstat(file.fileno()).st_size)
        except Exception as error:  # zipfile raises many classes on archives that are none
            raise unreadable(path) from error
        with archive:
            yield archive


def check_archive(archive: zipfile.ZipFile, size: int) -> None:
    """Raises on archives that could unpack to much more than they are, and on ways of packing that we do not use."""
    infos = archive.infolist()
    if sum(info.file_size for info in infos) > max(UNPACKED_BYTES, UNPACKED_TIMES * size):
        raise ValueError("the archive claims to unpack to far more than it is")
    for info in infos:
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
            raise ValueError(f"{info.filename} is packed or encrypted in a way that is never used")


def bytes_of(archive: zipfile.ZipFile, name: str, most: int | None = None) -> bytes:
    """A member, and not a byte more than it claims to have: zipfile would unpack all there is first."""
    size = archive.getinfo(name).file_size
    if most is not None and size > most:
        raise ValueError(f"{name} has {size:,} bytes")
    with archive.open(name) as member:
        return member.read(size)


def unreadable(path: str | os.PathLike) -> ModelFileError:
    return ModelFileError(f"{os.fspath(path)!r} is not a model that pilae has saved, or it is damaged.")


def damaged(path: str | os.PathLike) -> ModelFileError:
    return ModelFileError(f"{os.fspath(path)!r} is damaged: what it says about itself makes no sense.")


@contextlib.contextmanager
def damage(path: str | os.PathLike) -> Iterator[None]:
    """Whatever goes wrong while a header is followed means that it is not what was written."""
    try:
        yield
    except (ModelFileError, ImportError, MemoryError):
        raise
    except Exception as error:
        raise damaged(path) from error


def header_of(archive: zipfile.ZipFile, path: str | os.PathLike) -> dict[str, Any]:
    try:
        text = bytes_of(archive, "header.json", HEADER_BYTES)
        header = json.loads(text)
        ours = header["file"] == "pilae"
        version = int(header["format"])
        intact = version < 2 or bytes_of(archive, "header.sha256", 64).decode() == hashlib.sha256(text).hexdigest()
    except Exception as error:  # as many classes as there are ways to be damaged
        raise unreadable(path) from error
    if not ours or version < 1:
        raise ModelFileError(f"{os.fspath(path)!r} is not a model that pilae has saved.")
    if version <= FORMAT and not intact:
        raise ModelFileError(f"{os.fspath(path)!r} is damaged: its header is not what was saved.")
    if version < FORMAT:
        raise ModelFileError(
            f"{os.fspath(path)!r} was written by pilae {writer_of(header)}, in format {version}, and this version "
            f"reads format {FORMAT}: load it with the code that wrote it, or fit the model again with this one."
        )
    if version > FORMAT:
        raise ModelFileError(
            f"{os.fspath(path)!r} was written by a later pilae, in format {shortened(str(version))}, "
            f"and this version reads format {FORMAT}: update pilae to load it."
        )
    return header


def writer_of(header: dict[str, Any]) -> str:
    """The version of pilae that a header says it was written by; it may say anything."""
    versions = header.get("versions")
    writer = versions.get("pilae") if isinstance(versions, dict) else None
    return shortened(writer) if isinstance(writer, str) else "of an earlier day"


def shortened(text: str) -> str:
    """What a file says, no longer than a sentence can hold."""
    return text if len(text) <= SAID else text[:SAID] + "..."
