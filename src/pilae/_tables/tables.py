"""Files of mixed columns as rows of numbers: read by pieces; text, dates, categories and gaps through skrub.

Only the command line uses it: estimators take numbers. Needs pandas, and skrub where columns are not all numbers.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline

from .._base.extras import extra
from .._base.saveable import saveable
from .._data.keys import mix
from .readers import (
    Cells,
    Damage,
    TableError,
    check_names,
    listed,
    parquet_file,
    parquet_frames,
    read_arff,
    read_npz,
    said,
    shortened,
)

SAMPLE_ROWS = 100_000
"""Rows that column types and the encoder are found on."""

PIECE_ROWS = 50_000

EXACT_NUMBERS = 5_000_000
"""Tables of up to so many numbers are computed in float64, larger ones in float32."""

MISSING = ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"]
MISSING += ["N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]
"""Words that mean a gap, in columns that are not the target."""

ZONED = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?\s*(Z|[+-]\d\d:?\d\d)")
"""A time with its zone."""

FEW_VALUES = 50
"""A whole-numbered target with at most so many values, each met twenty times on average, is a class."""


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
        self._pandas = _pandas()
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
                self._types = {name: "float64" if _is_number(first[name]) else "str" for name in first.columns}
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


def _pandas() -> Any:
    return extra("pandas", "table", "Reading tables")


def _is_number(column: Any) -> bool:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    return is_numeric_dtype(column) and not is_bool_dtype(column)


@saveable
@dataclass(repr=False, eq=False)
class Encoder(TransformerMixin, BaseEstimator):
    """From the columns of a table to float numbers, and what its target means. Fitted by `fitted` alone; a
    scikit-learn transformer for the pipeline that `pilae.load` returns."""

    columns: list[str] = field(default_factory=list)
    numeric: list[str] = field(default_factory=list)
    target: str = ""
    task: str = ""
    dtype: str = "float64"
    pipeline: Any = None
    whole_target: bool = False
    """Whether classes are whole numbers."""
    zoned: list[str] = field(default_factory=list)
    """Columns of times with their zones."""
    missing: list[int] = field(default_factory=list)
    """How many gaps the sample has in each column."""

    @classmethod
    def fitted(
        cls,
        sample: Any,
        target: str,
        task: str | None,
        columns: list[str] | None,
        rows: int | None,
        seed: int = 0,
    ) -> Encoder:
        """An encoder for a table that looks like the sample."""
        if target not in sample.columns:
            raise ValueError(f"There is no column {target!r}: the columns are {listed(list(sample.columns))}.")
        names = columns or [name for name in sample.columns if name != target]
        if not names:
            raise ValueError(f"The table has no column beside {target!r}.")
        unknown = [name for name in names if name not in sample.columns]
        if unknown:
            raise ValueError(f"There is no column {unknown[0]!r}: the columns are {listed(list(sample.columns))}.")
        check_names(names, "The list of columns")
        if target in names:
            raise ValueError(f"{target!r} is the target, and must not be among the columns it is predicted from.")
        sample = sample[sample[target].notna()]
        if not len(sample):
            raise ValueError(f"No row has a target in column {target!r}, those held out aside.")
        task = _checked_task(sample[target], task)
        numeric = [name for name in names if _is_number(sample[name])]
        numbers = (rows or SAMPLE_ROWS + 1) * len(names)
        encoder = cls(list(names), numeric, target, task, "float64" if numbers <= EXACT_NUMBERS else "float32")
        values = sample[target]
        encoder.whole_target = task == "classification" and _is_number(values) and bool((values % 1 == 0).all())
        imputer = SimpleImputer(strategy="median", keep_empty_features=True)
        encoder.missing = sample[names].isna().sum().tolist()
        encoder.zoned = [name for name in names if _has_zones(sample[name])]
        if len(numeric) < len(names):
            encoder.pipeline = make_pipeline(_vectorizer(seed), imputer)
        else:
            encoder.pipeline = make_pipeline(imputer)
        encoder.pipeline.fit(encoder._given(sample))
        return encoder

    def _check_loaded(self) -> None:
        """Raises if what was read from a file is no encoder."""
        for names in (self.columns, self.numeric, self.zoned):
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise TypeError("names of columns are text")
        if not {*self.numeric, *self.zoned} <= {*self.columns} or not isinstance(self.target, str):
            raise ValueError("columns that are not there")
        if self.dtype not in ("float32", "float64") or self.task not in ("classification", "regression"):
            raise ValueError("no such dtype or task")
        if not isinstance(self.pipeline, Pipeline) or not isinstance(self.whole_target, bool):
            raise TypeError("no pipeline")
        if not isinstance(self.missing, list) or not all(isinstance(gaps, int) for gaps in self.missing):
            raise TypeError("numbers of gaps are whole")

    def typed(self, frame: Any) -> Any:
        """The columns, numbers as float64 and everything else as text."""
        missing = [name for name in self.columns if name not in frame.columns]
        if missing:
            raise ValueError(f"The table lacks the column {shortened(missing[0])} that the model was fitted with.")
        numbers = self._as_numbers(frame)
        if len(self.numeric) == len(self.columns):
            return numbers
        known = set(self.numeric)
        words = {name: self._as_words(frame[name]) for name in self.columns if name not in known}
        pd = _pandas()
        return pd.concat([numbers, pd.DataFrame(words, index=frame.index)], axis=1)[self.columns]

    def _as_numbers(self, frame: Any) -> Any:
        try:
            return frame[self.numeric].astype("float64")
        except (ValueError, TypeError):
            for name in self.numeric:
                try:
                    frame[name].astype("float64")
                except (ValueError, TypeError) as error:
                    raise ValueError(
                        f"Column {shortened(name)} held numbers when the model was fitted, and now {said(error)}."
                    ) from error
            raise

    def _as_words(self, column: Any) -> Any:
        if column.name in self.zoned:
            return _pandas().to_datetime(column, utc=True, errors="coerce").dt.tz_localize(None)
        if _is_date(column):
            return column
        gaps = column.isna().to_numpy()
        words = [None if gap else str(value) for value, gap in zip(column.astype("object"), gaps, strict=True)]
        return _pandas().Series(words, index=column.index, dtype="object")

    def fit(self, X: Any, y: Any = None) -> Encoder:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return self.pipeline is not None

    def transform(self, frame: Any) -> np.ndarray:
        """The numbers that the network takes."""
        with warnings.catch_warnings():  # a category that was not in the sample, or is missing: it counts as none
            warnings.filterwarnings("ignore", message="Found unknown categories")
            return self._numbers(frame)

    def _numbers(self, frame: Any) -> np.ndarray:
        return np.ascontiguousarray(np.asarray(self.pipeline.transform(self._given(frame)), dtype=self.dtype))

    def _given(self, frame: Any) -> Any:
        """What the pipeline takes: names of columns only where they matter."""
        typed = self.typed(frame)
        endless = np.isinf(typed[self.numeric].to_numpy()).any(axis=0)
        if endless.any():
            name = self.numeric[int(np.argmax(endless))]
            raise ValueError(f"Column {shortened(name)} holds infinity: replace it by a number, or leave it empty.")
        return typed.to_numpy() if len(self.pipeline) == 1 else typed

    def targets(self, frame: Any) -> np.ndarray:
        values = frame[self.target]
        if self.is_text_target:
            return values.astype(str).to_numpy(dtype=object).astype(str)
        try:
            numbers = values.to_numpy(dtype=np.float64)
        except (ValueError, TypeError) as error:
            raise ValueError(f"The target {self.target!r} held numbers when the model was fitted: {error}.") from error
        if self.task == "regression":
            return numbers
        if (numbers % 1 != 0).any():
            odd = numbers[numbers % 1 != 0][0]
            raise ValueError(
                f"The target {self.target!r} held whole numbers, taken as classes, but also holds {odd:g}: fit with "
                "--task regression to predict numbers."
            )
        return numbers.astype(np.int64)

    @property
    def is_text_target(self) -> bool:
        return self.task == "classification" and not self.whole_target


def _is_date(column: Any) -> bool:
    return column.dtype.kind == "M"


def _has_zones(column: Any) -> bool:
    if _is_date(column):
        return getattr(column.dtype, "tz", None) is not None
    if _is_number(column) or column.dtype.kind == "b":
        return False
    words = column.dropna()
    return len(words) > 0 and all(ZONED.fullmatch(str(word)) for word in words)


def _vectorizer(seed: int) -> Any:
    skrub = extra("skrub", "table", "A table with columns of text, dates or categories")
    return skrub.TableVectorizer(high_cardinality=skrub.StringEncoder(random_state=seed))


def _checked_task(target: Any, task: str | None) -> str:
    """What is to be done with a target: as asked for, if it can be, else as found."""
    name = target.name
    if task == "regression" and not _is_number(target):
        raise ValueError(f"The target {name!r} holds {target.iloc[0]!r}, and --task regression needs numbers.")
    task = task or task_of(target)
    different = target.nunique()
    if task == "classification" and different > 20 and different > len(target) / 2:
        raise ValueError(
            f"The target {name!r} has {different} different values in {len(target)} rows, too many to be classes: "
            "choose a column of classes or of numbers."
        )
    return task


def task_of(target: Any) -> str:
    """Classification for text, truth values and few whole numbers that repeat; else regression."""
    if not _is_number(target):
        return "classification"
    values = target.dropna()
    if not bool((values % 1 == 0).all()):
        return "regression"
    different = values.nunique()
    return "classification" if different <= min(FEW_VALUES, max(2, len(values) // 20)) else "regression"


def held_out(start: int, count: int, share: float) -> np.ndarray:
    """Which of the rows with these numbers are held out: by a hash of the number, so that every reading agrees."""
    keys = mix(np.arange(start, start + count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1))
    return (keys >> np.uint64(40)).astype(np.float64) < share * 2.0**24


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
