"""What is strange about rows that come after `fit`, counted: it is said, and the rows are answered all the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from .._base.sentences import listed

FEW_GAPS = 0.05
"""In a smaller share of the rows a column may have its first gaps without a word."""


@dataclass
class Strange:
    """In how many rows the columns of these names are strange."""

    unknown: Counter[Any] = field(default_factory=Counter)
    """Categories that `fit` did not see."""
    unread: Counter[Any] = field(default_factory=Counter)
    """Words that are not what the column holds, such as a date that is written otherwise."""
    gaps: Counter[Any] = field(default_factory=Counter)
    """Gaps in columns that had none."""
    rows: int = 0
    """How many there are."""

    def add(self, other: Self) -> None:
        self.rows += other.rows
        self.unknown.update(other.unknown)
        self.unread.update(other.unread)
        self.gaps.update(other.gaps)

    def sentences(self) -> list[str]:
        """What is to be said of them."""
        said = []
        if self.unknown:
            are = _are(self.unknown, "is a category", "are categories")
            said.append(f"{are} that fit did not see: {_they(self.unknown, 'counts', 'count')} as none.")
        if self.unread:
            are = _are(self.unread, "cannot be read as it was", "cannot be read as they were")
            said.append(f"{are} in fit: {_they(self.unread, 'counts as a gap', 'count as gaps')}.")
        gaps = {_plain(name): rows for name, rows in self.gaps.items() if rows >= FEW_GAPS * self.rows}
        if gaps:
            had = "had no gap in fit and is" if len(gaps) == 1 else "had no gaps in fit and are"
            where = f"{'up to ' if len(gaps) > 1 else ''}{max(gaps.values()):,} of {self.rows:,} {_rows(self.rows)}"
            column = f"{'Column' if len(gaps) == 1 else 'Columns'} {listed([*gaps])}"
            meant = "answers, also intervals, are those of an average value there."
            said.append(f"{column} {had} now missing in {where}: {meant}")
        return said


def _are(found: Counter[Any], one: str, many: str) -> str:
    count, names = found.total(), [_plain(name) for name in found]
    values = f"{count:,} {'value' if count == 1 else 'values'}"
    return f"{values} in {'column' if len(names) == 1 else 'columns'} {listed(names)} {one if count == 1 else many}"


def _they(found: Counter[Any], one: str, many: str) -> str:
    return f"it {one}" if found.total() == 1 else f"they {many}"


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"


def _plain(name: Any) -> Any:
    return name.item() if isinstance(name, np.generic) else name
