"""What a page is made of: sections of text, pictures and tables, and numbers as words."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .summary import short_names

LONGEST_NAME, SHORT_NAME = 30, 20
"""Characters of a name in tables and sentences, and above columns of values."""

SEVERAL_COLUMNS, MANY_COLUMNS = 4, 6
"""A table of more is one block for each row on a phone, and on any page that is not wide."""

MOST_DECIMALS = 4
"""Of numbers of somebody else's that are not all small."""

Way = Callable[[Sequence[Any]], list[str]]
"""How the values of a column of a table are written."""


@dataclass
class Table:
    caption: str
    head: list[str]
    rows: list[dict[str, Any]]
    note: str = ""
    left: list[bool] = field(default_factory=list)
    """Columns of words, which begin at the left."""

    @property
    def size(self) -> str:
        """How many columns it has, in a word: "few" fit into any page."""
        count = len(self.head)
        return "few" if count <= SEVERAL_COLUMNS else "several" if count <= MANY_COLUMNS else "many"


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
    of_figures: list[str] = field(default_factory=list)
    """Text that is only there where figures are."""
    keys: list[tuple[str, str]] = field(default_factory=list)
    """Names and colours of the lines in the small figures."""
    instead: list[Table] = field(default_factory=list)
    """What figures show, for pages that have none."""


def table(
    caption: str,
    head: list[str],
    rows: list[list[Any]],
    *,
    chosen: list[bool] | None = None,
    most: int | None = None,
    ways: Mapping[int, Way] | None = None,
) -> Table:
    """A table of the first `most` rows, which says how many more there are; `ways`: how to write columns, by number."""
    marks, ways = chosen or [False] * len(rows), ways or {}
    values = [list(column) for column in zip(*rows, strict=True)]
    columns = [ways.get(k, _as_needed)(column) for k, column in enumerate(values)]
    words = [{"cells": list(row), "chosen": mark} for row, mark in zip(zip(*columns, strict=True), marks, strict=True)]
    more = "" if most is None or len(rows) <= most else f"and {len(rows) - most:,} more."
    kinds = [{type(value) for value in column} - {type(None)} for column in values]
    left = [kind == {str} for kind in kinds]
    return Table(caption, head, words[:most], more, left or [False] * len(head))


def _as_needed(values: Sequence[Any]) -> list[str]:
    return with_decimals(values, decimals_of(values))


def alike(rows: list[list[Any]], *columns: int, hide: bool = False) -> dict[int, Way]:
    """Ways that give the numbers of all these columns as many decimals."""
    decimals = decimals_of([row[k] for row in rows for k in columns], hide=hide)
    return dict.fromkeys(columns, partial(with_decimals, decimals=decimals))


def decimals_of(values: Sequence[Any], *, hide: bool = False) -> int | None:
    """As many decimals as the numbers among these need for four digits of the largest; None where that would take too
    many, or would hide the smallest, unless it may (`hide`)."""
    numbers = [abs(value) for value in values if isinstance(value, float) and math.isfinite(value)]
    positive = [value for value in numbers if value > 0]
    if not positive:
        return 0
    if not 1e-4 <= max(positive) < 1e12 or (min(positive) < 1e-4 * max(positive) and not hide):
        return None
    most = max(0, 3 - math.floor(math.log10(max(positive))))
    return max(len(f"{value:.{most}f}".rstrip("0").partition(".")[2]) for value in numbers)


def with_decimals(values: Sequence[Any], decimals: int | None) -> list[str]:
    """Numbers with so many decimals each; with three digits and a power of ten where nothing else shows them all."""
    way = ".2e" if decimals is None else f"z,.{decimals}f"
    return [f"{value:{way}}" if isinstance(value, float) else word(value) for value in values]


def shares(values: Sequence[Any]) -> list[str]:
    """Scores, shares and probabilities: three decimals, everywhere."""
    return [share(value) for value in values]


def share(value: Any) -> str:
    return f"{value:z.3f}" if isinstance(value, float) else word(value)


def as_given(values: Sequence[Any]) -> list[str]:
    """Numbers of somebody else's: years, keys and numbers of rows have no thousands."""
    six_digits = [f"{value:.6g}" for value in values if isinstance(value, float)]
    decimals = max((len(text.partition(".")[2]) for text in six_digits), default=0)
    if any(abs(value) >= 1 for value in values if isinstance(value, float)):
        decimals = min(decimals, MOST_DECIMALS)
    ways = {float: ".6g" if any("e" in text for text in six_digits) else f"z.{decimals}f", int: "d"}
    return [f"{value:{ways[type(value)]}}" if type(value) in ways else word(value) for value in values]


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
