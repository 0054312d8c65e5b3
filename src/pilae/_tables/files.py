"""Files of mixed columns, read by pieces. Needs pandas."""

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._base.extras import extra
from .._data.keys import mix
from .._data.tables import SAMPLE_ROWS
from .._data.written import NumberFormat
from .arff import read_arff
from .delimited import Delimited, Format
from .errors import TableError
from .file_columns import FileColumns
from .frames import Frame
from .npz import read_npz
from .parquet import parquet_file, parquet_frames
from .sheets import read_excel, read_json, read_json_lines

PIECE_ROWS = 50_000

KINDS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".arff": "arff", ".npz": "npz"}
KINDS |= {".json": "json", ".jsonl": "json lines", ".ndjson": "json lines", ".xlsx": "excel"}

READ_AT_ONCE = {
    "arff": read_arff,
    "npz": read_npz,
    "json": read_json,
    "json lines": read_json_lines,
    "excel": read_excel,
}

COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")


class TableFile:
    """A table on disk, as pandas DataFrames of at most so many rows, as often as one likes.

    Parameters
    ----------
    path : str
        "-" is CSV on standard input.
    target : str, optional
        A column of classes, in which words like "None" and "NA" are classes too.
    known : FileColumns, optional
        What the columns are is known from it: nothing has to be looked at first, and standard input is streamed.
    task : str, optional
        What the target is asked for.
    skip : int, default=0
        Rows of a CSV file with too many or too few cells that are left out, at most.
    """

    def __init__(
        self,
        path: str,
        written: Format | None = None,
        *,
        target: str | None = None,
        known: FileColumns | None = None,
        task: str | None = None,
        skip: int = 0,
    ) -> None:
        self.path, self.name = path, "standard input" if path == "-" else path
        self.kind, self.compressed = "csv", False
        self._pandas = extra("pandas", "table", "Reading tables")
        self._csv = Delimited(path, written or Format(), target=target, task=task, known=known, skip=skip)
        if path == "-":
            return
        suffixes = [suffix.lower() for suffix in Path(path).suffixes]
        kinds = [KINDS[suffix] for suffix in suffixes if suffix in KINDS]
        if not kinds:
            raise ValueError(f"{path!r} is not a table this reads: use a file that ends in {', '.join(sorted(KINDS))}.")
        if not Path(path).is_file():
            raise FileNotFoundError(f"There is no file {path!r}.")
        self.kind, self.compressed = kinds[-1], suffixes[-1] in COMPRESSED

    def size(self) -> int:
        """About how many bytes the rows would take in memory."""
        if self.path == "-":
            return 0  # it is read whole anyway
        if self.kind == "parquet":
            with parquet_file(self.path) as file:
                return 8 * file.metadata.num_rows * file.metadata.num_columns
        return os.path.getsize(self.path) * (8 if self.compressed else 1)

    @property
    def gap_words(self) -> dict[str, list[str]]:
        """Words that were taken as gaps in columns of numbers."""
        return self._csv.columns.gap_words if self.kind == "csv" else {}

    @property
    def target_format(self) -> NumberFormat | None:
        """How the numbers of the target are written, where it is not as numbers are mostly."""
        return self._csv.columns.target if self.kind == "csv" else None

    @property
    def remarks(self) -> list[str]:
        """What people should know about how the file was read."""
        return self._csv.remarks

    def pieces(self, rows: int = PIECE_ROWS) -> Iterator[Frame]:
        """The rows in order."""
        if self.kind == "csv":
            yield from self._csv.frames(rows)
        elif self.kind == "parquet":
            yield from parquet_frames(self.path, rows)
        else:
            for start in range(0, len(self._frame), rows):
                yield self._frame.iloc[start : start + rows]

    @cached_property
    def _frame(self) -> Frame:
        """Files that are read at once."""
        return READ_AT_ONCE[self.kind](self.path)

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


class Part(NamedTuple):
    """Rows to predict from, their targets and their numbers in the file, from 1 on."""

    X: Frame
    y: np.ndarray
    rows: np.ndarray


class Counted:
    """How many rows were read, how many of them have no target, and how many gaps the columns have in the others."""

    def __init__(self) -> None:
        self.rows = self.without_target = 0
        self.missing: np.ndarray | None = None


def parts_of(
    table: TableFile, columns: FileColumns, share: float, keep: str, counted: Counted | None = None
) -> Iterator[Part]:
    """Every piece of the table: `keep` says whether of the rows to "train" on, of those to "test" on, or "all"."""
    start = 0
    for piece in table.pieces():
        out = held_out(start, len(piece), share)
        if columns.target not in piece.columns:
            raise ValueError(f"{table.name} lacks the column {columns.target!r}, the target of the model.")
        known = piece[columns.target].notna().to_numpy()
        chosen = known & {"train": ~out, "test": out, "all": np.ones_like(out)}[keep]
        part = piece[chosen]
        if counted is not None:
            counted.rows += len(piece)
            counted.without_target += int((~known).sum())
            gaps = piece[known].reindex(columns=columns.columns).isna().sum().to_numpy()
            counted.missing = gaps if counted.missing is None else counted.missing + gaps
        if len(part):
            yield Part(columns.transform(part), columns.targets(part), start + 1 + np.flatnonzero(chosen))
        start += len(piece)


def held_out(start: int, count: int, share: float) -> np.ndarray:
    """Which of the rows with these numbers are held out: by a hash of the number, so that every reading agrees."""
    keys = mix(np.arange(start, start + count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1))
    return (keys >> np.uint64(40)).astype(np.float64) < share * 2.0**24
