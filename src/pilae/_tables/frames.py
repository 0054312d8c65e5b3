"""DataFrames, where pandas is installed."""

from __future__ import annotations

from typing import Any

from .._base.extras import extra


def need_pandas() -> Any:
    return extra("pandas", "table", "Reading tables")


def is_numeric(column: Any) -> bool:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    return is_numeric_dtype(column) and not is_bool_dtype(column)
