"""Mixed columns as rows of numbers: text, dates, categories and gaps through skrub; and what a target asks for."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline

from .._base.extras import extra
from .._base.saveable import saveable
from .errors import check_names, listed, said, shortened
from .frames import is_numeric, need_pandas

SAMPLE_ROWS = 100_000
"""Rows that column types and the encoder are found on."""

EXACT_NUMBERS = 5_000_000
"""Tables of up to so many numbers are computed in float64, larger ones in float32."""

ZONED = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?\s*(Z|[+-]\d\d:?\d\d)")
"""A time with its zone."""

FEW_VALUES = 50
"""A whole-numbered target with at most so many values, each met twenty times on average, is a class."""


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
        numeric = [name for name in names if is_numeric(sample[name])]
        numbers = (rows or SAMPLE_ROWS + 1) * len(names)
        encoder = cls(list(names), numeric, target, task, "float64" if numbers <= EXACT_NUMBERS else "float32")
        values = sample[target]
        encoder.whole_target = task == "classification" and is_numeric(values) and bool((values % 1 == 0).all())
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
        pd = need_pandas()
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
            return need_pandas().to_datetime(column, utc=True, errors="coerce").dt.tz_localize(None)
        if _is_date(column):
            return column
        gaps = column.isna().to_numpy()
        words = [None if gap else str(value) for value, gap in zip(column.astype("object"), gaps, strict=True)]
        return need_pandas().Series(words, index=column.index, dtype="object")

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
    if is_numeric(column) or column.dtype.kind == "b":
        return False
    words = column.dropna()
    return len(words) > 0 and all(ZONED.fullmatch(str(word)) for word in words)


def _vectorizer(seed: int) -> Any:
    skrub = extra("skrub", "table", "A table with columns of text, dates or categories")
    return skrub.TableVectorizer(high_cardinality=skrub.StringEncoder(random_state=seed))


def _checked_task(target: Any, task: str | None) -> str:
    """What is to be done with a target: as asked for, if it can be, else as found."""
    name = target.name
    if task == "regression" and not is_numeric(target):
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
    if not is_numeric(target):
        return "classification"
    values = target.dropna()
    if not bool((values % 1 == 0).all()):
        return "regression"
    different = values.nunique()
    return "classification" if different <= min(FEW_VALUES, max(2, len(values) // 20)) else "regression"
