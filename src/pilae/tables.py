"""Files of mixed columns as rows of numbers: read by pieces; text, dates, categories and gaps through skrub.

Only the command line uses it: estimators take numbers. Needs pandas, and skrub where columns are not all numbers.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from .save import saveable

SAMPLE_ROWS = 100_000
"""Rows that column types and the encoder are found on."""

PIECE_ROWS = 50_000

EXACT_NUMBERS = 5_000_000
"""Tables of up to so many numbers are computed in float64, larger ones in float32."""

FEW_VALUES = 50
"""A whole-numbered target with at most so many values, each met twenty times on average, is a class."""


class TableFile:
    """A table on disk, as pandas DataFrames of at most so many rows, as often as one likes."""

    def __init__(self, path: str) -> None:
        self.path, self.name = path, "standard input" if path == "-" else path
        self._whole: Any = None
        self._types: dict[str, Any] | None = None
        suffixes = [] if path == "-" else [suffix.lower() for suffix in Path(path).suffixes]
        kinds = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".arff": "arff", ".npz": "npz"}
        known = [kinds[suffix] for suffix in suffixes if suffix in kinds]
        if path != "-" and not known:
            raise ValueError(f"{path!r} is not a table this reads: use a file that ends in {', '.join(sorted(kinds))}.")
        self.kind = "csv" if path == "-" else known[-1]
        self.separator = "\t" if ".tsv" in suffixes else ","
        if path != "-" and not Path(path).is_file():
            raise FileNotFoundError(f"There is no file {path!r}.")

    def pieces(self, rows: int = PIECE_ROWS) -> Iterator[Any]:
        """The rows in order."""
        if self.kind == "csv":
            yield from self._csv(rows)
        elif self.kind == "parquet":
            import pyarrow.parquet

            with pyarrow.parquet.ParquetFile(self.path) as file:
                for batch in file.iter_batches(batch_size=rows):
                    yield batch.to_pandas()
        else:
            whole = self.whole()
            for start in range(0, len(whole), rows):
                yield whole.iloc[start : start + rows]

    def sample(self) -> Any:
        """The first rows, at most SAMPLE_ROWS; what they hold says how the others are read."""
        import pandas as pd

        parts, count = [], 0
        for piece in self.pieces():
            parts.append(piece.iloc[: SAMPLE_ROWS - count])
            count += len(parts[-1])
            if count >= SAMPLE_ROWS:
                break
        if not count:
            raise ValueError(f"{self.name} has no rows.")
        return pd.concat(parts, ignore_index=True)

    def _csv(self, rows: int) -> Iterator[Any]:
        import pandas as pd

        if self.path == "-" and self._whole is None:
            self._whole = sys.stdin.read()

        def opened() -> Any:
            return io.StringIO(self._whole) if self.path == "-" else self.path

        try:
            if self._types is None:
                first = pd.read_csv(opened(), sep=self.separator, nrows=SAMPLE_ROWS, low_memory=False)
                self._types = {
                    name: "float64" if _is_number(first[name]) else "str" for name in first.columns if len(first)
                }
            yield from pd.read_csv(opened(), sep=self.separator, dtype=self._types, chunksize=rows)
        except pd.errors.EmptyDataError as error:
            raise ValueError(f"{self.name} is empty.") from error
        except (ValueError, UnicodeDecodeError) as error:
            raise ValueError(f"{self.name} cannot be read as a table: {str(error).splitlines()[0]}.") from error

    def whole(self) -> Any:
        """ARFF and npz files are read at once."""
        if self._whole is None:
            self._whole = {"arff": _read_arff, "npz": _read_npz}[self.kind](self.path)
        return self._whole


def _is_number(column: Any) -> bool:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    return is_numeric_dtype(column) and not is_bool_dtype(column)


def _read_arff(path: str) -> Any:
    import pandas as pd
    from scipy.io import arff

    data, meta = arff.loadarff(path)
    frame = pd.DataFrame(data)
    for name, kind in zip(meta.names(), meta.types(), strict=True):
        if kind != "numeric":
            frame[name] = frame[name].str.decode("utf-8").replace("?", None)
    return frame


def _read_npz(path: str) -> Any:
    """Arrays X and y, or one array for each column."""
    import pandas as pd

    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    if "X" in arrays:
        X = arrays.pop("X")
        X = X.reshape(len(X), -1)
        names = arrays.pop("feature_names", None)
        columns = [f"x{k}" for k in range(X.shape[1])] if names is None else [str(name) for name in names]
        frame = pd.DataFrame(X, columns=columns)
        return frame.assign(**{name: column for name, column in arrays.items() if column.shape == (len(X),)})
    return pd.DataFrame(arrays)


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

    @classmethod
    def fitted(cls, sample: Any, target: str, task: str | None, columns: list[str] | None, rows: int | None) -> Encoder:
        """An encoder for a table that looks like the sample."""
        if target not in sample.columns:
            raise ValueError(f"There is no column {target!r}: the columns are {_listed(list(sample.columns))}.")
        names = columns or [name for name in sample.columns if name != target]
        if not names:
            raise ValueError(f"The table has no column beside {target!r}.")
        unknown = [name for name in names if name not in sample.columns]
        if unknown:
            raise ValueError(f"There is no column {unknown[0]!r}: the columns are {_listed(list(sample.columns))}.")
        if target in names:
            raise ValueError(f"{target!r} is the target, and must not be among the columns it is predicted from.")
        sample = sample[sample[target].notna()]
        task = task or task_of(sample[target])
        numeric = [name for name in names if _is_number(sample[name])]
        numbers = (rows or SAMPLE_ROWS + 1) * len(names)
        encoder = cls(list(names), numeric, target, task, "float64" if numbers <= EXACT_NUMBERS else "float32")
        values = sample[target]
        encoder.whole_target = task == "classification" and _is_number(values) and bool((values % 1 == 0).all())
        imputer = SimpleImputer(strategy="median", keep_empty_features=True)
        if len(numeric) < len(names):
            encoder.pipeline = make_pipeline(_vectorizer(), imputer)
        else:
            encoder.pipeline = make_pipeline(imputer)
        encoder.pipeline.fit(encoder._given(sample))
        return encoder

    def typed(self, frame: Any) -> Any:
        """The columns, numbers as float64 and everything else as text."""
        missing = [name for name in self.columns if name not in frame.columns]
        if missing:
            raise ValueError(f"The table lacks the column {missing[0]!r} that the model was fitted with.")
        frame = frame[self.columns].copy()
        for name in self.columns:
            if name in self.numeric:
                try:
                    frame[name] = frame[name].astype("float64")
                except (ValueError, TypeError) as error:
                    raise ValueError(
                        f"Column {name!r} held numbers when the model was fitted, and now {error}."
                    ) from error
            elif not _is_date(frame[name]):
                frame[name] = frame[name].astype("object").where(frame[name].notna(), None)
                frame[name] = frame[name].map(lambda value: None if value is None else str(value))
        return frame

    def fit(self, X: Any, y: Any = None) -> Encoder:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return self.pipeline is not None

    def transform(self, frame: Any) -> np.ndarray:
        """The numbers that the network takes."""
        return np.ascontiguousarray(np.asarray(self.pipeline.transform(self._given(frame)), dtype=self.dtype))

    def _given(self, frame: Any) -> Any:
        """What the pipeline takes: names of columns only where they matter."""
        typed = self.typed(frame)
        return typed.to_numpy() if len(self.pipeline) == 1 else typed

    def targets(self, frame: Any) -> np.ndarray:
        values = frame[self.target]
        if self.task == "regression":
            return values.to_numpy(dtype=np.float64)
        if self.whole_target:
            return values.to_numpy(dtype=np.int64)
        return values.astype(str).to_numpy(dtype=object).astype(str)


def _is_date(column: Any) -> bool:
    return column.dtype.kind == "M"


def _vectorizer() -> Any:
    try:
        from skrub import TableVectorizer
    except ImportError as error:
        raise ImportError(
            "Columns of text, dates or categories need skrub; install it with: pip install 'pilae[table]'"
        ) from error
    return TableVectorizer()


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
    numbers = np.arange(start, start + count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (numbers >> np.uint64(40)).astype(np.float64) < share * 2.0**24


def encoded(table: TableFile, encoder: Encoder, share: float, keep: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(X, y) of every piece: `keep` says whether of the rows to "train" on, of those to "test" on, or "all"."""
    start = 0
    for piece in table.pieces():
        out = held_out(start, len(piece), share)
        start += len(piece)
        if encoder.target not in piece.columns:
            raise ValueError(f"{table.name} lacks the column {encoder.target!r}, the target of the model.")
        known = piece[encoder.target].notna().to_numpy()
        chosen = known & {"train": ~out, "test": out, "all": np.ones_like(out)}[keep]
        part = piece[chosen]
        if len(part):
            yield encoder.transform(part), encoder.targets(part)


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(str(name)) for name in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")
