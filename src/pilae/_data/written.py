"""Numbers that are written out, as 9,876.50 EUR or 12.3% are: read where the whole column says how they are meant."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from .._base.saveable import saveable
from .._base.sentences import listed, shortened
from .._base.warn import warn
from .frames import Column, Kind, factorized, numbers

FEWEST_NUMBERS = 10
"""Different numbers that a column of words needs to be one of numbers."""

MOST_WORDS, WORD_SHARE = 3, 0.2
"""So many different words in at most this share of the rows are gaps among numbers."""

NUMBERS_SHARE = 0.8
"""Where so many rows hold numbers it is said that the column is text nevertheless."""

CELL = re.compile(
    r"(?P<sign>[+-]?)(?P<before>[$€£¥₹₽]?|[A-Z]{3}(?= )) ?(?P<minus>[+-]?)"
    r"(?P<digits>\d(?:[\d.,'\u2019 \u00a0\u202f]*\d)?|\.\d+)(?P<power>[eE][+-]?\d+)? ?"
    r"(?P<after>[%‰°]?[A-Za-zµ/²³]{0,5}|[$€£¥₹₽])"
)
"""A sign, a unit on one side and digits with what may stand between them."""

WAYS = (("", "."), (",", "."), ("", ","), (".", ","), (" ", ","), (" ", "."), ("'", "."))
"""What stands between thousands and before decimals, in the order in which they are tried."""


@saveable
@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written."""

    before: str
    after: str
    """The unit, on either side."""
    thousands: str
    point: str

    def read(self, cell: str) -> float:
        """NaN where it is written otherwise."""
        found = CELL.fullmatch(cell)
        if found is None or (found["before"], found["after"]) != (self.before, self.after):
            return np.nan
        digits = _plain(found["digits"])
        if (found["sign"] and found["minus"]) or not _grouping(self.thousands, self.point).fullmatch(digits):
            return np.nan
        digits = digits.replace(self.thousands, "").replace(self.point, ".")
        return float(f"{found['sign']}{found['minus']}{digits}{found['power'] or ''}")

    def check(self) -> None:
        if (self.thousands, self.point) not in WAYS or not isinstance(self.before + self.after, str):
            raise ValueError("no such way to write numbers")


@saveable
@dataclass(frozen=True, eq=False)
class WrittenColumn:
    """Numbers of one format; words that are gaps among them."""

    name: Any
    form: NumberFormat
    nothing: list[str]

    kind: ClassVar = "numbers written out"
    taken: ClassVar[tuple[Kind, ...]] = ("text", "categories", "numbers", "objects")
    width: ClassVar = 1

    @property
    def words(self) -> str:
        unit = self.form.before or self.form.after
        return f"numbers, in {unit}" if unit else "numbers"

    def __call__(self, column: Column, kind: Kind) -> np.ndarray:
        if kind in ("numbers", "objects"):
            return numbers(column)[:, None]
        codes, values = factorized(column)
        return np.array([*map(self.form.read, values), np.nan])[codes][:, None]

    def check(self) -> None:
        if not isinstance(self.form, NumberFormat) or not all(isinstance(word, str) for word in self.nothing):
            raise TypeError("no column of numbers")
        self.form.check()


def written_column(name: Any, values: list[str], counts: np.ndarray) -> WrittenColumn | None:
    """A column of these different values, each met so often, if it is one of numbers."""
    form = number_format(values)
    if form is None:
        return None
    odd = np.isnan([form.read(value) for value in values])
    if form == NumberFormat("", "", "", ".") and not odd.any() and all(map(str.isdigit, values)):
        return None  # whole numbers that somebody keeps as words, as keys are
    words, rows, all_rows = sorted(np.array(values, object)[odd]), int(counts[odd].sum()), int(counts.sum())
    if len(words) <= MOST_WORDS and rows <= WORD_SHARE * all_rows:
        if words:
            warn(
                f"Column {shortened(name)} holds numbers, and {listed(words)} in {rows:,} of {all_rows:,} rows: these "
                "are taken as gaps."
            )
        if form.thousands == "," and not any("." in value for value in values):
            _check_commas(name, values)
        return WrittenColumn(name, form, words)
    if rows <= (1 - NUMBERS_SHARE) * all_rows:
        warn(
            f"Column {shortened(name)} holds numbers in {all_rows - rows:,} of {all_rows:,} rows, but words such as "
            f"{shortened(words[0])} in the others: it is taken as text, so mend these or leave them empty."
        )
    return None


def number_format(values: list[str]) -> NumberFormat | None:
    """How different values are written if at least FEWEST_NUMBERS are numbers, all with one unit, in one way."""
    cells = [found for found in map(CELL.fullmatch, values) if found is not None]
    if len(cells) < max(FEWEST_NUMBERS, len(values) / 2):
        return None
    [((before, after), _)] = Counter((cell["before"], cell["after"]) for cell in cells).most_common(1)
    digits = [_plain(cell["digits"]) for cell in cells if (cell["before"], cell["after"]) == (before, after)]
    keys = any(re.match(r"0\d", number) for number in digits)  # as 01234 is
    for thousands, point in WAYS if len(digits) >= FEWEST_NUMBERS and not keys else ():
        if all(map(_grouping(thousands, point).fullmatch, digits)):
            return NumberFormat(before, after, thousands, point)
    return None


def _check_commas(name: Any, values: list[str]) -> None:
    """A warning where commas between thousands could be decimal ones."""
    if any(value.count(",") > 1 for value in values) or not any("," in value for value in values):
        return
    example = next(value for value in values if "," in value)
    warn(
        f"Commas in column {shortened(name)} are taken to stand between thousands ({shortened(example)}): write points "
        "instead where they are decimal commas."
    )


def _plain(digits: str) -> str:
    """With one kind of blank and of apostrophe."""
    return re.sub("[\u00a0\u202f]", " ", digits).replace("\u2019", "'")


@cache
def _grouping(thousands: str, point: str) -> re.Pattern:
    comma, mark = re.escape(point), re.escape(thousands)
    whole = r"\d+" if not thousands else rf"(?:[1-9]\d{{0,2}}(?:{mark}\d{{3}})+|\d{{1,3}})"
    return re.compile(rf"{whole}(?:{comma}\d+)?|{comma}\d+", re.ASCII)
