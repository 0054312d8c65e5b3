"""Mixed columns as rows of numbers: text, dates, categories and gaps through skrub; and what a target asks for."""

import warnings
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline

from .._base.extras import extra
from .._base.saveable import saveable
from .errors import check_names, listed, reason, shortened
from .frames import Column, Frame, has_zones, is_numeric, is_whole, task_of

SAMPLE_ROWS = 100_000
"""Rows that column types and the encoder are found on."""

EXACT_NUMBERS = 5_000_000
"""Tables of up to so many numbers are computed in float64, larger ones in float32."""


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
    pipeline: Pipeline = None
    whole_target: bool = False
    """Whether classes are whole numbers."""
    zoned: list[str] = field(default_factory=list)
    """Columns of times with their zones."""
    missing: list[int] = field(default_factory=list)
    """How many gaps the sample has in each column."""

    @classmethod
    def fitted(
        cls, sample: Frame, target: str, task: str | None, columns: list[str] | None, rows: int | None, seed: int = 0
    ) -> Self:
        """An encoder for a table that looks like the sample."""
        names = columns or [name for name in sample.columns if name != target]
        _check_columns(sample, names, target)
        sample = sample[sample[target].notna()]
        if not len(sample):
            raise ValueError(f"No row has a target in column {target!r}, those held out aside.")
        task = _checked_task(sample[target], task)
        numeric = [name for name in names if is_numeric(sample[name])]
        exact = (rows or SAMPLE_ROWS + 1) * len(names) <= EXACT_NUMBERS
        imputer = SimpleImputer(strategy="median", keep_empty_features=True)
        steps = [imputer] if len(numeric) == len(names) else [_vectorizer(seed), imputer]
        encoder = cls(list(names), numeric, target, task, "float64" if exact else "float32", make_pipeline(*steps))
        encoder.whole_target = task == "classification" and is_whole(sample[target])
        encoder.zoned = [name for name in names if has_zones(sample[name])]
        encoder.missing = sample[names].isna().sum().tolist()
        encoder.pipeline.fit(encoder._pipeline_input(sample))
        return encoder

    def _check_loaded(self) -> None:
        """Raises if what was read from a file is no encoder."""
        if not all(_is_list_of(names, str) for names in (self.columns, self.numeric, self.zoned)):
            raise TypeError("names of columns are text")
        if not {*self.numeric, *self.zoned} <= {*self.columns} or not isinstance(self.target, str):
            raise ValueError("columns that are not there")
        if self.dtype not in ("float32", "float64") or self.task not in ("classification", "regression"):
            raise ValueError("no such dtype or task")
        if not isinstance(self.pipeline, Pipeline) or not isinstance(self.whole_target, bool):
            raise TypeError("no pipeline")
        if not _is_list_of(self.missing, int):
            raise TypeError("numbers of gaps are whole")

    def typed(self, frame: Frame) -> Frame:
        """The columns, numbers as float64 and everything else as text."""
        import pandas as pd

        missing = [name for name in self.columns if name not in frame.columns]
        if missing:
            raise ValueError(f"The table lacks the column {shortened(missing[0])} that the model was fitted with.")
        numbers, numeric = self._as_numbers(frame), set(self.numeric)
        words = {name: self._as_words(frame[name]) for name in self.columns if name not in numeric}
        return pd.concat([numbers, pd.DataFrame(words, index=frame.index)], axis=1)[self.columns] if words else numbers

    def _as_numbers(self, frame: Frame) -> Frame:
        try:
            return frame[self.numeric].astype("float64")
        except (ValueError, TypeError):
            for name in self.numeric:
                try:
                    frame[name].astype("float64")
                except (ValueError, TypeError) as error:
                    raise ValueError(
                        f"Column {shortened(name)} held numbers when the model was fitted, and now {reason(error)}."
                    ) from error
            raise

    def _as_words(self, column: Column) -> Column:
        import pandas as pd

        if column.name in self.zoned:
            return pd.to_datetime(column, utc=True, errors="coerce").dt.tz_localize(None)
        if column.dtype.kind == "M":  # a date
            return column
        words = [None if gap else str(value) for value, gap in zip(column.astype("object"), column.isna(), strict=True)]
        return pd.Series(words, index=column.index, dtype="object")

    def fit(self, X: Frame, y: object = None) -> Self:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return self.pipeline is not None

    def transform(self, frame: Frame) -> np.ndarray:
        """The numbers that the network takes."""
        with warnings.catch_warnings():  # a category that was not in the sample, or is missing: it counts as none
            warnings.filterwarnings("ignore", message="Found unknown categories")
            return np.ascontiguousarray(self.pipeline.transform(self._pipeline_input(frame)), dtype=self.dtype)

    def _pipeline_input(self, frame: Frame) -> Frame | np.ndarray:
        """What the pipeline takes: names of columns only where they matter."""
        typed = self.typed(frame)
        endless = np.isinf(typed[self.numeric].to_numpy()).any(axis=0)
        if endless.any():
            name = self.numeric[int(np.argmax(endless))]
            raise ValueError(f"Column {shortened(name)} holds infinity: replace it by a number, or leave it empty.")
        return typed.to_numpy() if len(self.pipeline) == 1 else typed

    def targets(self, frame: Frame) -> np.ndarray:
        values = frame[self.target]
        if self.is_text_target:
            return values.astype(str).to_numpy(dtype=object).astype(str)
        try:
            numbers = values.to_numpy(dtype=np.float64)
        except (ValueError, TypeError) as error:
            raise ValueError(f"The target {self.target!r} held numbers when the model was fitted: {error}.") from error
        if self.task == "regression":
            return numbers
        odd = numbers[numbers % 1 != 0]
        if odd.size:
            raise ValueError(
                f"The target {self.target!r} held whole numbers, taken as classes, but also holds {odd[0]:g}: fit with "
                "--task regression to predict numbers."
            )
        return numbers.astype(np.int64)

    @property
    def is_text_target(self) -> bool:
        return self.task == "classification" and not self.whole_target


def _is_list_of(values: object, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _vectorizer(seed: int) -> TransformerMixin:
    skrub = extra("skrub", "table", "A table with columns of text, dates or categories")
    return skrub.TableVectorizer(high_cardinality=skrub.StringEncoder(random_state=seed))


def _check_columns(sample: Frame, names: list[str], target: str) -> None:
    for name in (target, *names):
        if name not in sample.columns:
            raise ValueError(f"There is no column {name!r}: the columns are {listed(list(sample.columns))}.")
    if not names:
        raise ValueError(f"The table has no column beside {target!r}.")
    check_names(names, "The list of columns")
    if target in names:
        raise ValueError(f"{target!r} is the target, and must not be among the columns it is predicted from.")


def _checked_task(target: Column, task: str | None) -> str:
    """What is to be done with a target: as asked for, if it can be, else as found."""
    if task == "regression" and not is_numeric(target):
        raise ValueError(f"The target {target.name!r} holds {target.iloc[0]!r}, and --task regression needs numbers.")
    task, different = task or task_of(target), target.nunique()
    if task == "classification" and different > 20 and different > len(target) / 2:
        raise ValueError(
            f"The target {target.name!r} has {different} different values in {len(target)} rows, too many to be "
            "classes: choose a column of classes or of numbers."
        )
    return task
