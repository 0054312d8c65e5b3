"""What people should know about a table before they trust its model, a sentence each."""

import re

from .._base.sentences import as_written, listed, shortened
from .._data.dates import date_format
from .._data.written import number_format
from .file_columns import FileColumns
from .frames import Column, Frame, is_numeric, is_whole

FEW_ROWS = 30
"""With fewer, scores are mostly chance."""

SPARSE = 2
"""Whole numbers that are all different number the rows if they fill at least one part in so many of their range."""

ID_NAME = re.compile(r"(?i:(^|[\W_])(id|key|uuid|guid|index|rownames?|row|nr|no|number)($|[\W_]))|[a-z]I[dD]$")


def remarks(columns: FileColumns, sample: Frame) -> list[str]:
    """Of rows as the estimator will learn from."""
    sample = sample[sample[columns.target].notna()]
    found = []
    empty = [name for name, gaps in zip(columns.columns, columns.missing, strict=True) if gaps == len(sample)]
    if empty:
        found.append(f"{_columns(empty)} no value in any row: nothing is learnt from {_it(empty)}.")
    there = [name for name in columns.columns if name not in empty]
    same = [name for name in there if len(sample) > 1 and sample[name].nunique(dropna=False) == 1]
    if same:
        found.append(f"{_columns(same)} the same value in every row: nothing is learnt from {_it(same)}.")
    ids = [name for name in columns.columns if is_id(sample[name])]
    if ids:
        found.append(
            f"{_columns(ids)} another value in every row, as numbers of rows and keys do: leave {_it(ids)} out with "
            f"--exclude {shortened(','.join(ids))} if {_it(ids, subject=True)} nothing."
        )
    if columns.task == "classification":
        counts = sample[columns.target].value_counts()
        if single := [as_written(value) for value in counts.index[counts == 1]]:
            which = f"Class {shortened(single[0])} has" if len(single) == 1 else f"The classes {listed(single)} have"
            found.append(f"{which} a single row to learn from, and none to be tested on.")
    if len(sample) < FEW_ROWS:
        found.append(f"There are {len(sample)} rows to learn from: no score of so few says much.")
    return found


def guessed(columns: FileColumns, sample: Frame) -> float:
    """The score of whoever always says the most frequent class, or the mean."""
    return float(sample[columns.target].value_counts(normalize=True).max()) if columns.task == "classification" else 0.0


def is_id(column: Column) -> bool:
    """Whether a column tells rows apart and, by its name or its values, nothing else."""
    values = column.dropna()
    if len(values) < FEW_ROWS or len(values) < len(column) or not values.is_unique:
        return False
    if is_numeric(column):
        named = bool(ID_NAME.search(str(column.name)))
        return is_whole(values) and (named or float(values.max()) - float(values.min()) < SPARSE * len(values))
    if column.dtype.kind in "Mmb":
        return False
    words = values.astype(str)
    named = not words.str.contains(r"\s").any() and words.str.contains(r"\d").all()
    return named and date_format(words.tolist()) is None and number_format(words.tolist()) is None


def _columns(names: list[str]) -> str:
    return f"Column {shortened(names[0])} has" if len(names) == 1 else f"The columns {listed(names)} have"


def _it(names: list[str], *, subject: bool = False) -> str:
    if subject:
        return "it means" if len(names) == 1 else "they mean"
    return "it" if len(names) == 1 else "them"
