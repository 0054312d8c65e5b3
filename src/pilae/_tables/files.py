"""Files of mixed columns, read by pieces. Needs pandas."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from .._data.keys import mix
from .arff import read_arff
from .cells import Cells
from .encoder import SAMPLE_ROWS, Encoder
from .errors import Damage, TableError, said, shortened
from .frames import is_numeric, need_pandas
from .npz import read_npz
from .parquet import parquet_file, parquet_frames

PIECE_ROWS = 50_000

MISSING = ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"]
MISSING += ["N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]
"""Words that mean a gap, in columns that are not the target."""


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
    encoder : Encoder, optional
        What the columns are is known from it: nothing has to be looked at first, and standard input is streamed.
    """

    def __init__(
        self, path: str, written: Format | None = None, *, target: str | None = None, encoder: Encoder | None = None
    ) -> None:
        self.path, self.name = path, "standard input" if path == "-" else path
        self.format, self.target, self.encoder = written or Format(), target, encoder
        self._whole: Any = None
        self._types: dict[str, Any] | None = None
        self._pandas = need_pandas()
        suffixes = [] if path == "-" else [suffix.lower() for suffix in Path(path).suffixes]
        kinds = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".arff": "arff", ".npz": "npz"}
        known = [kinds[suffix] for suffix in suffixes if suffix in kinds]
        if path != "-" and not known:
            raise ValueError(f"{path!r} is not a table this reads: use a file that ends in {', '.join(sorted(kinds))}.")
        self.kind = "csv" if path == "-" else known[-1]
        self.compressed = bool(suffixes) and suffixes[-1] in (".gz", ".bz2", ".xz", ".zst", ".zip")
        if path != "-" and not Path(path).is_file():
            raise FileNotFoundError(f"There is no file {path!r}.")

    def size(self) -> int:
        """About how many bytes the rows would take in memory."""
        if self.path == "-":
            return 0  # it is read whole anyway
        if self.kind == "parquet":
            with parquet_file(self.path) as file:
                return 8 * file.metadata.num_rows * file.metadata.num_columns
        return os.path.getsize(self.path) * (8 if self.compressed else 1)

    def pieces(self, rows: int = PIECE_ROWS) -> Iterator[Any]:
        """The rows in order."""
        if self.kind == "csv":
            yield from self._csv(rows)
        elif self.kind == "parquet":
            yield from parquet_frames(self.path, rows)
        else:
            whole = self.whole()
            for start in range(0, len(whole), rows):
                yield whole.iloc[start : start + rows]

    def sample(self) -> Any:
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

    def _csv(self, rows: int) -> Iterator[Any]:
        pd = self._pandas
        if self.path == "-" and self._whole is None and self.encoder is None:
            self._whole = sys.stdin.buffer.read()
        try:
            if self._types is None and self.encoder is None:
                with self._cells() as cells:
                    first = pd.read_csv(cells, nrows=SAMPLE_ROWS, low_memory=False, **self._options(cells.names))
                self._types = {name: "float64" if is_numeric(first[name]) else "str" for name in first.columns}
            with self._cells() as cells:
                yield from self._checked(cells, rows)
        except TableError:
            raise
        except pd.errors.EmptyDataError as error:
            raise TableError(f"{self.name} is empty.") from error
        except UnicodeDecodeError as error:
            raise TableError(
                f"{self.name} is not written in {error.encoding}: name its encoding with --encoding, for example "
                "--encoding latin-1."
            ) from error
        except LookupError as error:
            raise TableError(f"{said(error)}: use a name such as utf-8, utf-16 or latin-1.") from error
        except (ValueError, OverflowError) as error:
            raise self._explained(error) from error

    def _checked(self, cells: Cells, rows: int) -> Iterator[Any]:
        """The pieces that pandas makes, if every row has as many cells as the header."""
        types, count = self._types, 0
        if self.encoder is not None:
            types = defaultdict(lambda: "str") | dict.fromkeys(self.encoder.numeric, "float64")
            types[self.encoder.target] = "str" if self.encoder.is_text_target else "float64"
        options = self._options(cells.names)
        if self.target is not None and types is not None and types.get(self.target) == "str":
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
            yield Cells(text, self._written()[0], self.name)

    @contextlib.contextmanager
    def _text(self) -> Iterator[TextIO]:
        """The characters of a CSV file, its line ends as they are."""
        encoding = self._written()[1]
        if self.path == "-":
            file: Any = sys.stdin.buffer if self._whole is None else io.BytesIO(self._whole)
            text = io.TextIOWrapper(file, encoding=encoding, newline="")
            try:
                yield text
            finally:
                text.detach()  # standard input is not ours to close
            return
        with self._bytes() as file, io.TextIOWrapper(file, encoding=encoding, newline="") as text:
            yield text

    @contextlib.contextmanager
    def _bytes(self) -> Iterator[Any]:
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
            raise TableError(f"{self.name} cannot be decompressed: {said(error)}.") from error
        with opened:
            yield io.BufferedReader(Damage(opened.handle, self.name), 2**16)

    def _written(self) -> tuple[str, str]:
        """Separator and encoding of the CSV: what was not said is found from its first bytes."""
        separator, encoding, _ = self.format
        if separator is None or encoding is None:
            start = self._start()
            encoding = encoding or ("utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
            line = start.decode(encoding, errors="replace").lstrip("\ufeff").lstrip("\r\n")
            line = re.split("[\r\n]", line, maxsplit=1)[0]
            tabs = "\t" if ".tsv" in Path(self.path).suffixes else None
            separator = separator or tabs or max(",;\t|", key=lambda mark: line.count(mark))
        if separator == self.format.decimal:
            raise TableError(
                f"{self.name} has {separator!r} between its columns, so it cannot be its decimal point: say what "
                "stands between columns with --separator."
            )
        return separator, encoding

    def _options(self, names: list[str]) -> dict[str, Any]:
        """How pandas reads the CSV."""
        return {
            "sep": self._written()[0],
            "decimal": self.format.decimal,
            "skipinitialspace": True,
            "engine": "c",  # the other one reads rows of any length
            "header": 0,
            "names": names,  # which it would make different where they are not
            "keep_default_na": False,
            "na_values": MISSING,
        }

    def _start(self) -> bytes:
        if self.path == "-":
            return sys.stdin.buffer.peek(2**16) if self._whole is None else self._whole[: 2**16]  # type: ignore
        with self._bytes() as file:
            return file.read(2**16)

    def _explained(self, error: Exception) -> TableError:
        """A sentence for what pandas could not read: where the first value is that is no number."""
        words = said(error)
        longer = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", words)
        if longer:
            columns, line, cells = longer.groups()
            return TableError(
                f"{self.name}: line {line} has {cells} cells, but the header names {columns} columns (--separator says "
                "what stands between cells)."
            )
        if "convert string to float" not in words or self.path == "-":
            return TableError(f"{self.name} cannot be read as a table: {words}.")
        numeric = {name for name, kind in (self._types or {}).items() if kind == "float64"}
        if self.encoder is not None:
            numeric = set(self.encoder.numeric)
        start = 0
        with self._cells() as opened:
            options = self._options(opened.names)
            with self._pandas.read_csv(opened, dtype="str", chunksize=PIECE_ROWS, **options) as reader:
                for piece in reader:
                    for name in numeric & set(piece.columns):
                        wrong = piece[name].notna() & self._pandas.to_numeric(piece[name], errors="coerce").isna()
                        if wrong.any():
                            at = int(np.flatnonzero(wrong.to_numpy())[0])
                            return TableError(
                                f"Column {shortened(name)} of {self.name} holds numbers, but row {start + at + 1} has "
                                f"{shortened(piece[name].iloc[at])}: mend it, or leave it empty."
                            )
                    start += len(piece)
        return TableError(f"{self.name} cannot be read as a table: {words}.")

    def whole(self) -> Any:
        """ARFF and npz files are read at once."""
        if self._whole is None:
            self._whole = {"arff": read_arff, "npz": read_npz}[self.kind](self.path)
        return self._whole


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
    table: TableFile, encoder: Encoder, share: float, keep: str, counted: Counted | None = None
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
