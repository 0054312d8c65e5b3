"""What the columns of a DataFrame hold. pandas is imported where it is needed: most of pilae does without."""

from typing import Any

Frame = Any
"""A pandas DataFrame."""

Column = Any
"""A pandas Series."""

FEW_VALUES = 50
"""A whole-numbered target with at most so many values, each met twenty times on average, is a class."""


def is_numeric(column: Column) -> bool:
    from pandas.api.types import is_any_real_numeric_dtype  # truth values are none

    return is_any_real_numeric_dtype(column)


def is_whole(column: Column) -> bool:
    return is_numeric(column) and bool((column % 1 == 0).all())


def task_of(target: Column) -> str:
    """Classification for text, truth values and few whole numbers that repeat; else regression."""
    values = target.dropna()
    few = values.nunique() <= min(FEW_VALUES, max(2, len(values) // 20))
    return "classification" if not is_numeric(target) or (is_whole(values) and few) else "regression"
