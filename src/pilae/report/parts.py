"""What a page is made of: sections of text, pictures and tables, and numbers as words."""

import math
from dataclasses import dataclass, field
from typing import Any

from .summary import short_names

LONGEST_NAME, SHORT_NAME = 30, 20
"""Characters of a name in tables and sentences, and above columns of values."""


@dataclass
class Table:
    caption: str
    head: list[str]
    rows: list[dict[str, Any]]
    note: str = ""
    left: list[bool] = field(default_factory=list)
    """Columns of words, which begin at the left."""


@dataclass
class Picture:
    svg: str
    caption: str
    small: bool = False
    tiny: bool = False
    """One of many."""


@dataclass
class Section:
    title: str
    text: list[str] = field(default_factory=list)
    figures: list[Picture] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    code: str = ""
    folded: bool = False
    """For those who want to know more."""
    glossary: dict[str, str] = field(default_factory=dict)


def table(
    caption: str, head: list[str], rows: list[list[Any]], *, chosen: list[bool] | None = None, most: int | None = None
) -> Table:
    """A table of the first `most` rows, which says how many more there are."""
    marks = chosen or [False] * len(rows)
    columns = [_column_words(list(column)) for column in zip(*rows, strict=True)]
    words = [{"cells": list(row), "chosen": mark} for row, mark in zip(zip(*columns, strict=True), marks, strict=True)]
    more = "" if most is None or len(rows) <= most else f"and {len(rows) - most:,} more."
    kinds = [{type(value) for value in column} - {type(None)} for column in zip(*rows, strict=True)]
    left = [kind == {str} for kind in kinds]
    return Table(caption, head, words[:most], more, left or [False] * len(head))


def _column_words(values: list[Any]) -> list[str]:
    """A column of a table: its numbers with as many decimals each as the most of them need."""
    numbers = [abs(value) for value in values if isinstance(value, float) and math.isfinite(value)]
    positive = [value for value in numbers if value > 0]
    if not positive or min(positive) < 1e-4 * max(positive) or max(positive) >= 1e12:
        return [word(value) for value in values]
    most = max(0, 3 - math.floor(math.log10(max(positive))))
    needed = [len(f"{value:.{most}f}".rstrip("0").partition(".")[2]) for value in numbers]
    decimals = max(needed)
    return [f"{value:,.{decimals}f}" if isinstance(value, float) else word(value) for value in values]


def word(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def shortened(name: str) -> str:
    return short_names([name], LONGEST_NAME)[name]
