"""Files of mixed columns, read by pieces. Needs pandas."""

import contextlib
import io
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO

import numpy as np

from .._base.extras import extra
from .._data.keys import mix
from .arff import read_arff
from .cells import Cells
from .encoder import SAMPLE_ROWS, TableEncoder
from .errors import Decompressed, TableError, reason, shortened
from .frames import Frame, is_numeric
from .npz import read_npz
from .parquet import parquet_file, parquet_frames

PIECE_ROWS = 50_000

MISSING = ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"]
MISSING += ["N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]
"""Words that mean a gap, in columns that are not the target."""


KINDS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".arff": "arff", ".npz": "npz"}

COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")


class Format(NamedTuple):
    """How a CSV file is written; None is found from the file."""

    separator: str | None = None
    encoding: str | None = None
    decimal: str = "."


class TableFile:
    """A table on disk, as pandas DataFrames of at most so many rows, as often as one likes.

    Parameters
    ----------
    path : str
        "-" is CSV on standard input.
    target : str, optional
        A column of classes, in which words like "None" and "NA" are classes too.
    encoder : TableEncoder, optional
        What the columns are is known from it: nothing has to be looked at first, and standard input is streamed.
    """

    def __init__(
        self,
        path: str,
        written: Format | None = None,
        *,
        target: str | None = None,
        encoder: TableEncoder | None = None,
    ) -> None:
        self.path, self.name = path, "standard input" if path == "-" else path
        self.format, self.target, self.encoder = written or Format(), target, encoder
        self.kind, self.compressed = "csv", False
        self._stdin: bytes | None = None
        self._pandas = extra("pandas", "table", "Reading tables")
        if path == "-":
            return
        suffixes = [suffix.lower() for suffix in Path(path).suffixes]
        known = [KINDS[suffix] for suffix in suffixes if suffix in KINDS]
        if not known:
            raise ValueError(f"{path!r} is not a table this reads: use a file that ends in {', '.join(sorted(KINDS))}.")
        if not Path(path).is_file():
            raise FileNotFoundError(f"There is no file {path!r}.")
        self.kind, self.compressed = known[-1], suffixes[-1] in COMPRESSED

    def size(self) -> int:
        """About how many bytes the rows would take in memory."""
        if self.path == "-":
            return 0  # it is read whole anyway
        if self.kind == "parquet":
            with parquet_file(self.path) as file:
                return 8 * file.metadata.num_rows * file.metadata.num_columns
        return os.path.getsize(self.path) * (8 if self.compressed else 1)

    def pieces(self, rows: int = PIECE_ROWS) -> Iterator[Frame]:
        """The rows in order."""
        if self.kind == "csv":
            yield from self._csv(rows)
        elif self.kind == "parquet":
            yield from parquet_frames(self.path, rows)
        else:
            for start in range(0, len(self._frame), rows):
                yield self._frame.iloc[start : start + rows]

    @cached_property
    def _frame(self) -> Frame:
        """ARFF and npz files are read at once."""
        return {"arff": read_arff, "npz": read_npz}[self.kind](self.path)

    def sample(self) -> Frame:
        """The first rows, at most SAMPLE_ROWS; what they hold says how the others are read."""
        parts, count = [], 0
        for piece in self.pieces():
            parts.append(piece.iloc[: SAMPLE_ROWS - count])
            count += len(parts[-1])
            if count >= SAMPLE_ROWS:
                break
        if not count:
            raise TableError(f"{self.name} has no rows.")
        return self._pandas.concat(parts, ignore_index=True)

    # ------------------------------------------------------------------------------------------------- CSV

    def _csv(self, rows: int) -> Iterator[Frame]:
        if self.path == "-" and self._stdin is None and self.encoder is None:
            self._stdin = sys.stdin.buffer.read()
        try:
            types = self._types
            with self._cells() as cells:
                yield from self._checked(cells, types, rows)
        except TableError:
            raise
        except self._pandas.errors.EmptyDataError as error:
            raise TableError(f"{self.name} is empty.") from error
        except UnicodeDecodeError as error:
            raise TableError(
                f"{self.name} is not written in {error.encoding}: name its encoding with --encoding, for example "
                "--encoding latin-1."
            ) from error
        except LookupError as error:
            raise TableError(f"{reason(error)}: use a name such as utf-8, utf-16 or latin-1.") from error
        except (ValueError, OverflowError) as error:
            raise self._explained(reason(error)) from error

    @cached_property
    def _types(self) -> dict[str, str]:
        """What pandas reads each column as: known from the encoder, else found from the first rows."""
        if self.encoder is not None:
            types = defaultdict(lambda: "str", dict.fromkeys(self.encoder.numeric, "float64"))
            types[self.encoder.target] = "str" if self.encoder.is_text_target else "float64"
            return types
        with self._cells() as cells:
            first = self._pandas.read_csv(cells, nrows=SAMPLE_ROWS, low_memory=False, **self._options(cells.names))
        return {name: "float64" if is_numeric(first[name]) else "str" for name in first.columns}

    def _checked(self, cells: Cells, types: dict[str, str], rows: int) -> Iterator[Frame]:
        """The pieces that pandas makes, if every row has as many cells as the header."""
        count, options = 0, self._options(cells.names)
        if self.target is not None and types.get(self.target) == "str":
            options["na_values"] = {name: [""] if name == self.target else MISSING for name in cells.names}
        with self._pandas.read_csv(cells, dtype=types, chunksize=rows, **options) as reader:
            for piece in reader:
                count += len(piece)
                if len(piece) < rows:
                    cells.check(count, self._text)
                yield piece
        cells.check(count, self._text)

    @contextlib.contextmanager
    def _cells(self) -> Iterator[Cells]:
        with self._text() as text:
            yield Cells(text, self._dialect[0], self.name)

    @contextlib.contextmanager
    def _text(self) -> Iterator[TextIO]:
        """The characters of a CSV file, its line ends as they are."""
        encoding = self._dialect[1]
        with self._bytes() as file:
            text = io.TextIOWrapper(file, encoding=encoding, newline="")
            try:
                yield text
            finally:
                text.detach()  # the file is closed by who opened it, and standard input by nobody here

    @contextlib.contextmanager
    def _bytes(self) -> Iterator[BinaryIO]:
        if self.path == "-":
            yield sys.stdin.buffer if self._stdin is None else io.BytesIO(self._stdin)
            return
        if not self.compressed:
            with open(self.path, "rb") as file:
                yield file
            return
        from pandas.io.common import get_handle  # it knows the endings, and imports what they need

        try:
            opened = get_handle(self.path, "rb", compression="infer", is_text=False)
        except ImportError:
            raise
        except Exception as error:  # of gzip, lzma, zipfile, ..., which have no class in common
            raise TableError(f"{self.name} cannot be decompressed: {reason(error)}.") from error
        with opened:
            yield io.BufferedReader(Decompressed(opened.handle, self.name), 2**16)

    @cached_property
    def _dialect(self) -> tuple[str, str]:
        """Separator and encoding of the CSV: what was not said is found from its first bytes."""
        separator, encoding, decimal = self.format
        if separator is None or encoding is None:
            start = self._start()
            encoding = encoding or ("utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
            line = start.decode(encoding, errors="replace").lstrip("\ufeff").lstrip("\r\n")
            line = re.split("[\r\n]", line, maxsplit=1)[0]
            tabs = "\t" if ".tsv" in Path(self.path).suffixes else None
            separator = separator or tabs or max(",;\t|", key=line.count)
        if separator == decimal:
            raise TableError(
                f"{self.name} has {separator!r} between its columns, so it cannot be its decimal point: say what "
                "stands between columns with --separator."
            )
        return separator, encoding

    def _start(self) -> bytes:
        if self.path == "-" and self._stdin is None:
            return sys.stdin.buffer.peek(2**16)  # type: ignore
        with self._bytes() as file:
            return file.read(2**16)

    def _options(self, names: list[str]) -> dict[str, Any]:
        """How pandas reads the CSV."""
        return {
            "sep": self._dialect[0],
            "decimal": self.format.decimal,
            "skipinitialspace": True,
            "engine": "c",  # the other one reads rows of any length
            "header": 0,
            "names": names,  # which it would make different where they are not
            "keep_default_na": False,
            "na_values": MISSING,
        }

    def _explained(self, words: str) -> TableError:
        """A sentence for what pandas could not read."""
        longer = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", words)
        if longer:
            columns, line, cells = longer.groups()
            return TableError(
                f"{self.name}: line {line} has {cells} cells, but the header names {columns} columns (--separator says "
                "what stands between cells)."
            )
        wrong = self._no_number() if "convert string to float" in words and self.path != "-" else None
        return TableError(wrong or f"{self.name} cannot be read as a table: {words}.")

    def _no_number(self) -> str | None:
        """Where the first value is that should be a number, as a sentence."""
        kinds = self._types if self.encoder is None else dict.fromkeys(self.encoder.numeric, "float64")
        start = 0
        with (
            self._cells() as cells,
            self._pandas.read_csv(cells, dtype="str", chunksize=PIECE_ROWS, **self._options(cells.names)) as reader,
        ):
            for piece in reader:
                words = piece[[name for name in cells.names if kinds.get(name) == "float64"]]
                wrong = words.notna() & words.apply(self._pandas.to_numeric, errors="coerce").isna()
                for row, column in np.argwhere(wrong.to_numpy())[:1]:
                    return (
                        f"Column {shortened(words.columns[column])} of {self.name} holds numbers, but row "
                        f"{start + row + 1} has {shortened(words.iloc[row, column])}: mend it, or leave it empty."
                    )
                start += len(piece)
        return None


class Part(NamedTuple):
    """Encoded rows, their targets and their numbers in the file, from 1 on."""

    X: np.ndarray
    y: np.ndarray
    rows: np.ndarray


class Counted:
    """How many rows were read, and how many of them have no target."""

    rows = 0
    without_target = 0


def encoded(
    table: TableFile, encoder: TableEncoder, share: float, keep: str, counted: Counted | None = None
) -> Iterator[Part]:
    """Every piece of the table: `keep` says whether of the rows to "train" on, of those to "test" on, or "all"."""
    start = 0
    for piece in table.pieces():
        out = held_out(start, len(piece), share)
        if encoder.target not in piece.columns:
            raise ValueError(f"{table.name} lacks the column {encoder.target!r}, the target of the model.")
        known = piece[encoder.target].notna().to_numpy()
        chosen = known & {"train": ~out, "test": out, "all": np.ones_like(out)}[keep]
        part = piece[chosen]
        if counted is not None:
            counted.rows += len(piece)
            counted.without_target += int((~known).sum())
        if len(part):
            yield Part(encoder.transform(part), encoder.targets(part), start + 1 + np.flatnonzero(chosen))
        start += len(piece)


def held_out(start: int, count: int, share: float) -> np.ndarray:
    """Which of the rows with these numbers are held out: by a hash of the number, so that every reading agrees."""
    keys = mix(np.arange(start, start + count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1))
    return (keys >> np.uint64(40)).astype(np.float64) < share * 2.0**24
