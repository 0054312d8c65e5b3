"""Which column of a file is what: those to predict from, the target, and what is asked of it."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from .._base.saveable import saveable
from .._base.sentences import as_written, listed, shortened
from .._data.tables import SAMPLE_ROWS
from .._data.written import NumberFormat
from .errors import check_names, reason
from .frames import Column, Frame, is_numeric, is_whole, task_of
from .words import with_gaps

EXACT_NUMBERS = 5_000_000
"""Tables of up to so many numbers are computed in float64, larger ones in float32."""


@saveable
@dataclass(repr=False, eq=False)
class FileColumns(TransformerMixin, BaseEstimator):
    """What a file's columns are for; what becomes of those to predict from is learnt by the estimator. Made by `found`
    alone; a scikit-learn transformer for the pipeline that `pilae.load` returns."""

    columns: list[str] = field(default_factory=list)
    target: str = ""
    task: str = ""
    dtype: str = "float64"
    whole_target: bool = False
    """Whether classes are whole numbers."""
    missing: list[int] = field(default_factory=list)
    """How many gaps the sample has in each column."""
    numeric: list[str] = field(default_factory=list)
    """Columns of numbers."""
    gap_words: dict[str, list[str]] = field(default_factory=dict)
    """Words that are gaps in a column of numbers."""
    target_format: NumberFormat | None = None
    """How the numbers of the target are written, where it is not as numbers are mostly."""
    held_out: float | None = None
    """The score on held-out rows, before these were taken in."""
    held_out_rows: int = 0

    @classmethod
    def found(cls, sample: Frame, target: str, task: str | None, columns: list[str] | None, rows: int | None) -> Self:
        """Of a table that looks like the sample, and has so many rows (None: more than a sample)."""
        names = columns or [name for name in sample.columns if name != target]
        _check_columns(sample, names, target)
        sample = sample[sample[target].notna()]
        if not len(sample):
            raise ValueError(f"No row has a target in column {target!r}, those held out aside.")
        if rows is not None and len(sample) > 1 and sample[target].nunique() == 1:
            value = as_written(sample[target].iloc[0])
            raise ValueError(f"The target {target!r} is {value} in every row: there is nothing to learn from it.")
        task = _checked_task(sample[target], task)
        exact = (rows or SAMPLE_ROWS + 1) * len(names) <= EXACT_NUMBERS
        whole = task == "classification" and is_whole(sample[target])
        numeric = [name for name in names if is_numeric(sample[name])]
        missing = sample[names].isna().sum().tolist()
        return cls(list(names), target, task, "float64" if exact else "float32", whole, missing, numeric)

    def _check_loaded(self) -> None:
        """Raises if what was read from a file is something else."""
        if not all(_is_list_of(names, str) for names in (self.columns, self.numeric)) or not isinstance(
            self.target, str
        ):
            raise TypeError("names of columns are text")
        if self.dtype not in ("float32", "float64") or self.task not in ("classification", "regression"):
            raise ValueError("no such dtype or task")
        if not isinstance(self.whole_target, bool) or not _is_list_of(self.missing, int):
            raise TypeError("numbers of gaps are whole")
        if not isinstance(self.gap_words, dict) or not all(
            _is_list_of(words, str) for words in self.gap_words.values()
        ):
            raise TypeError("words that are gaps are text")
        if not isinstance(self.held_out, float | None) or not isinstance(self.held_out_rows, int):
            raise TypeError("a score is a number")
        if self.target_format is not None:
            if not isinstance(self.target_format, NumberFormat):
                raise TypeError("no way to write numbers")
            self.target_format.check()
        if not {*self.numeric} <= {*self.columns} or not {*self.gap_words} <= {*self.numeric}:
            raise ValueError("columns that are not there")

    def fit(self, X: Frame, y: object = None) -> Self:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return bool(self.columns)

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """The names of the columns that `transform` gives."""
        return np.array(self.columns, dtype=object)

    def transform(self, frame: Frame) -> Frame:
        """The columns to predict from, in the order of `fit`; words that are gaps as such."""
        if not {*self.columns} <= {*frame.columns}:
            frame = frame.rename(columns=lambda name: name.strip() if isinstance(name, str) else name)
        missing = [name for name in self.columns if name not in frame.columns]
        if missing:
            which = f"the column {shortened(missing[0])}" if len(missing) == 1 else f"the columns {listed(missing)}"
            raise ValueError(f"The table lacks {which} that the model was fitted with.")
        frame = frame[self.columns]
        words = {name: frame[name] for name in self.columns if not is_numeric(frame[name])}
        read = {name: self._numbers(words[name]) if name in self.numeric else with_gaps(words[name]) for name in words}
        frame = frame.assign(**read) if read else frame
        endless = np.isinf(frame[self.numeric].to_numpy(np.float64, na_value=np.nan)).any(axis=0)
        if endless.any():
            name = self.numeric[int(np.argmax(endless))]
            raise ValueError(f"Column {shortened(name)} holds infinity: replace it by a number, or leave it empty.")
        return frame

    def _numbers(self, column: Column) -> Column:
        name = str(column.name)
        try:
            return with_gaps(column, *self.gap_words.get(name, [])).astype("float64")
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"Column {shortened(name)} held numbers when the model was fitted, and now {reason(error)}."
            ) from error

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


def _check_columns(sample: Frame, names: list[str], target: str) -> None:
    for name in (target, *names):
        if name not in sample.columns:
            blanks = len(sample.columns) == 1 and len(str(sample.columns[0]).split()) > 1
            way_out = " (where blanks stand between columns, say so with --separator ' ')" if blanks else ""
            raise ValueError(f"There is no column {name!r}: the columns are {listed(list(sample.columns))}{way_out}.")
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
        import pandas

        numbers = pandas.to_numeric(target, errors="coerce")
        odd = target[numbers.isna()]
        why = f", and {shortened(str(odd.iloc[0]))} in row {odd.index[0] + 1:,} is no number" if len(odd) else ""
        raise ValueError(
            f"The target {target.name!r} has {different} different values in {len(target)} rows, too many to be "
            f"classes{why}: choose a column of classes or of numbers, all written in one way."
        )
    return task
