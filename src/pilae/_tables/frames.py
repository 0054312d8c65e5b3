"""What the columns of a DataFrame hold. pandas is imported where it is needed: most of pilae does without."""

import re
from typing import Any

Frame = Any
"""A pandas DataFrame."""

Column = Any
"""A pandas Series."""

DATE_FORMATS = (
    *("ISO8601", "%d.%m.%Y", "%d.%m.%y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y"),
    *("%d/%m/%y", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %I:%M %p"),
    *("%m/%d/%Y %I:%M:%S %p", "%m-%d-%Y", "%d-%m-%Y", "%b-%Y", "%b %Y", "%B %Y", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y"),
    *("%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%H:%M", "%H:%M:%S"),
)
"""How dates are written, in the order in which they are tried: months before days where both could be meant."""

DATE_LIKE = re.compile(r"(?=.*\d).{1,14}[-/.:, ].{1,25}")
"""What may be a date, before it is tried: a year alone is a number."""

TRIED_DATES = 20
"""Values that a format must fit before all are tried."""

FEW_VALUES = 50
"""A whole-numbered target with at most so many values, each met twenty times on average, is a class."""


def is_numeric(column: Column) -> bool:
    from pandas.api.types import is_any_real_numeric_dtype  # truth values are none

    return is_any_real_numeric_dtype(column)


def is_whole(column: Column) -> bool:
    return is_numeric(column) and bool((column % 1 == 0).all())


def date_format(column: Column) -> tuple[bool, str | None]:
    """Whether a column holds dates, and how they are written: the first format that fits every value."""
    if column.dtype.kind == "M":
        return True, None
    words = column.dropna().drop_duplicates().astype(str)
    few = words.iloc[:TRIED_DATES]
    if not all(DATE_LIKE.fullmatch(word) for word in few):
        return False, None
    for written in DATE_FORMATS:
        if parsed_dates(few, written).notna().all() and parsed_dates(words, written).notna().all():
            return True, written
    return False, None


def parsed_dates(column: Column, written: str | None) -> Column:
    """Dates and times without their zone, as they are in Greenwich; what is none is a gap."""
    import pandas as pd

    dates = pd.to_datetime(column, format=written, utc=True, errors="coerce")
    return dates.dt.tz_localize(None)


def task_of(target: Column) -> str:
    """Classification for text, truth values and few whole numbers that repeat; else regression."""
    values = target.dropna()
    few = values.nunique() <= min(FEW_VALUES, max(2, len(values) // 20))
    return "classification" if not is_numeric(target) or (is_whole(values) and few) else "regression"
