"""What is wrong with a table, in a sentence."""

import io
import re
from collections import Counter
from typing import Any, BinaryIO

from .._base.sentences import shortened

MOST_COLUMNS = 100_000


class TableError(ValueError):
    """What is wrong with a file, in one sentence."""


def check_names(names: list[str], where: str) -> None:
    """Columns are found by their names, so each needs one of its own."""
    if len(names) > MOST_COLUMNS:
        raise TableError(f"{where} has {len(names):,} columns: at most {MOST_COLUMNS:,} are read.")
    for name, count in Counter(names).items():
        if count > 1:
            raise TableError(f"{where} has two columns {shortened(name)}: give every column a name of its own.")


def reason(error: BaseException) -> str:
    """The first line of what a library says, as a part of a sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = re.sub(r"\b\w*(Exception|Error): | at 0x[0-9a-f]+", "", lines[0]).rstrip(".: ") if lines else "it is damaged"
    return text if len(text) <= 200 else text[:197] + "..."


class Decompressed(io.RawIOBase):
    """Bytes of a compressed file: whatever its decompressor raises means that it is damaged."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name = file, name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except Exception as error:  # of zlib, bz2, lzma, zipfile, tarfile or zstd, which have no class in common
            raise TableError(f"{self._name} cannot be decompressed: {reason(error)}.") from error
        buffer[: len(data)] = data
        return len(data)
