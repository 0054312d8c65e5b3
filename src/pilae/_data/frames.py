"""Tables with typed columns, of pandas or polars: what each column holds. Neither is imported here."""

import datetime
import decimal
import numbers as kinds_of_numbers
from collections import Counter
from typing import Any, Literal

import numpy as np

from .._base.sentences import as_written, listed, shortened

Frame = Any
"""A DataFrame of pandas or of polars."""

Column = Any
"""A Series of pandas or polars."""

Kind = Literal["numbers", "truth values", "categories", "numbered categories", "text", "dates", "durations", "objects"]

FINER = ("us", "ns", "ps", "fs", "as")
"""Units of times that microseconds reach as far as, or further."""

POLARS_KINDS: dict[str, Kind] = {
    "Boolean": "truth values",
    "Categorical": "categories",
    "Enum": "categories",
    "String": "text",
    "Utf8": "text",
    "Date": "dates",
    "Datetime": "dates",
    "Time": "durations",
    "Duration": "durations",
    "Null": "numbers",
}

INFERRED_KINDS: dict[str, Kind] = {
    "string": "text",
    "boolean": "truth values",
    "integer": "numbers",
    "floating": "numbers",
    "mixed-integer-float": "numbers",
    "decimal": "numbers",
    "empty": "numbers",
    "date": "dates",
    "datetime": "dates",
    "datetime64": "dates",
    "timedelta": "durations",
    "timedelta64": "durations",
}
"""What pandas says of values whose column has no type of its own."""

NUMPY_KINDS: dict[str, Kind] = {
    "i": "numbers",
    "u": "numbers",
    "f": "numbers",
    "c": "numbers",  # refused by whoever reads them
    "b": "truth values",
    "M": "dates",
    "m": "durations",
    "U": "text",
    "S": "text",
}


WRITABLE = (
    str,
    bool,
    np.bool_,
    kinds_of_numbers.Real,
    decimal.Decimal,
    datetime.date,
    datetime.time,
    datetime.timedelta,
)
"""Values that have a plain name: where a column mixes them, it holds their names."""

AS_THEY_ARE = ("numbers", "truth values", "numbered categories", "objects")
"""Columns that are read as numbers; of objects some are numbers."""


def is_frame(X: object) -> bool:
    """Whether X is a DataFrame in memory."""
    return hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "shape") and not hasattr(X, "__dask_graph__")


def kinds_of(frame: Frame) -> list[Kind]:
    """What each column holds."""
    if isinstance(frame.dtypes, list):  # polars
        return [_polars_kind(dtype) for dtype in frame.dtypes]
    return [_pandas_kind(frame.iloc[:, j], dtype) for j, dtype in enumerate(frame.dtypes)]


def _polars_kind(dtype: Any) -> Kind:
    if dtype.is_numeric():
        return "numbers"
    return POLARS_KINDS.get(str(dtype).split("(")[0], "objects")


def _pandas_kind(column: Any, dtype: Any) -> Kind:
    name = str(dtype)
    if name == "category":
        return "numbered categories" if dtype.categories.dtype.kind in "biuf" else "categories"
    if name.startswith(("str", "large_string", "dictionary")):
        return "text"
    if name.startswith("date"):
        return "dates"
    if dtype.kind == "O":
        from pandas.api.types import infer_dtype

        found = INFERRED_KINDS.get(infer_dtype(column, skipna=True))
        return found or ("text" if all(isinstance(value, WRITABLE) for value in column.dropna()) else "objects")
    return NUMPY_KINDS.get(dtype.kind, "objects")


def check_own_names(frame: Frame) -> None:
    """Columns are known by their names."""
    twice = [name for name, count in Counter(frame.columns).items() if count > 1]
    if twice:
        raise ValueError(f"X has two columns {shortened(twice[0])}: give every column a name of its own.")


def no_values(name: Any, column: Column) -> ValueError:
    """For a column of objects that nothing can be learnt from."""
    kind = next(
        (type(value).__name__ for value in column if value is not None and not isinstance(value, WRITABLE)), "object"
    )
    return ValueError(
        f"Column {shortened(name)} of X holds objects ({kind}) that are neither numbers, text, truth values nor dates: "
        "leave it out, or turn it into one of these."
    )


def check_numbers(frame: Frame, name: str) -> None:
    """For estimators that take numbers only: which columns hold something else, and the way out."""
    kinds = list(zip(frame.columns, kinds_of(frame), strict=True))
    for number, (column, kind) in enumerate(kinds):
        if kind == "objects":
            try:
                numbers(column_at(frame, number))
            except (ValueError, TypeError):
                raise no_values(column, column_at(frame, number)) from None
    odd = [(column, kind) for column, kind in kinds if kind not in AS_THEY_ARE]
    if odd:
        (first, kind), *rest = odd
        others = f", {listed([column for column, _ in rest])} no numbers either" if rest else ""
        raise ValueError(
            f"Column {first!r} of X holds {kind}{others}, and {name} takes numbers only: encode such columns first, "
            "for example with skrub.TableVectorizer in a Pipeline."
        )


def column_at(frame: Frame, number: int) -> Column:
    return frame.to_series(number) if isinstance(frame.dtypes, list) else frame.iloc[:, number]


def stacked(frames: list[Frame]) -> Frame:
    """Tables of the same columns one below the other."""
    if len(frames) == 1:
        return frames[0]
    if isinstance(frames[0].dtypes, list):
        import polars

        return polars.concat(frames)
    import pandas

    return pandas.concat(frames, ignore_index=True)


def _is_polars(column: Column) -> bool:
    return type(column).__module__.partition(".")[0] == "polars"


def numbers(column: Column) -> np.ndarray:
    """Numbers or truth values as float64, gaps as NaN."""
    if _is_polars(column):
        import polars

        return column.cast(polars.Float64).to_numpy().astype(np.float64)
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def dates(column: Column) -> np.ndarray:
    """Dates as datetime64 of universal time."""
    if _is_polars(column):
        import polars

        zone = getattr(column.dtype, "time_zone", None)
        column = column if zone is None else column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return _microseconds(column.cast(polars.Datetime("us"))).view("datetime64[us]")
    import pandas

    return _in_microseconds(pandas.to_datetime(column, utc=True).dt.tz_localize(None).to_numpy())


def _microseconds(column: Column) -> np.ndarray:
    """The whole numbers that times of polars are, a gap as NumPy's NaT is: old releases hand times over by NumPy's old
    interface and end the process."""
    return column.to_physical().fill_null(np.iinfo(np.int64).min).to_numpy()


def _in_microseconds(times: np.ndarray) -> np.ndarray:
    """Times or spans; an error where one is so far away that microseconds do not hold it: before 2.5 NumPy made another
    one of it."""
    try:
        found = times.astype(f"{times.dtype.str[1]}8[us]")
        kept = np.datetime_data(times.dtype)[0] in FINER or bool(
            ((found.astype(times.dtype) == times) | np.isnat(times)).all()
        )
    except OverflowError:
        kept = False
    if not kept:
        raise ValueError(
            "A column of times holds some more than 290,000 years away, which microseconds of 64 bits do not hold: "
            "leave those rows out, or give the column as numbers."
        )
    return found


def durations(column: Column) -> np.ndarray:
    """Durations in seconds."""
    if _is_polars(column):
        import polars

        spans = _microseconds(column.cast(polars.Duration("us"))).view("timedelta64[us]")
    else:
        import pandas

        spans = _in_microseconds(pandas.to_timedelta(column).to_numpy())
    return np.where(np.isnat(spans), np.nan, spans.astype(np.int64) / 1e6)


def factorized(column: Column) -> tuple[np.ndarray, list[str]]:
    """The place of each value among the distinct ones (-1: a gap), and these in words, without blanks around them:
    whoever reads a file keeps or strips those, and means the same. Blanks alone are a gap."""
    if _is_polars(column):
        values = column.drop_nulls().unique(maintain_order=True).to_list()
        place = {value: number for number, value in enumerate(values)}
        codes = np.array([place.get(value, -1) for value in column.to_list()], dtype=np.int64)
    else:
        import pandas

        codes, found = pandas.factorize(column, use_na_sentinel=True)
        values = found.tolist()
    names = [as_written(value).strip() for value in values]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(filter(None, names)))}
    if len(numbers) < len(names):
        codes = np.array([*(numbers.get(name, -1) for name in names), -1])[codes]
    return codes, [*numbers]
