"""The columns of rows as users know them, and the columns of numbers that are made of them."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Array
from .._base.saveable import saveable
from .intake import Intake
from .strange import Strange
from .tables import Coded, Table, named_columns


@saveable
@dataclass(frozen=True, eq=False)
class Columns:
    """How many columns rows have, their names where a table gave them, and how numbers are made of them."""

    count: int
    names: np.ndarray | None = None
    table: Table | None = None
    """How a table of mixed columns becomes an array of numbers; None where rows are numbers."""
    intake: Intake | None = None
    """What becomes of the columns of that array; None where gaps are refused."""

    @property
    def coded(self) -> int:
        """Columns of the array."""
        return self.count if self.table is None else len(self.table.sources)

    @property
    def width(self) -> int:
        """Columns that a network sees."""
        return self.coded if self.intake is None else self.intake.width

    @property
    def are_plain(self) -> bool:
        """Whether a network sees the columns as they come, gaps aside."""
        return self.table is None and (self.intake is None or self.intake.is_plain)

    def categorical(self, features: Any) -> tuple[int, ...]:
        """Columns of the array that are categories, by a parameter `categorical_features`."""
        return named_columns(features, self.names, self.count, self.table)

    @property
    def sources(self) -> np.ndarray:
        """For each column that a network sees, the one that it is made of."""
        sources = np.arange(self.coded) if self.intake is None else self.intake.sources
        return sources if self.table is None else self.table.sources[sources]

    def summed(self, shares: np.ndarray) -> np.ndarray:
        """What belongs to each column, from what belongs to each of those that a network sees."""
        return np.bincount(self.sources, weights=shares, minlength=self.count)

    def widths(self) -> np.ndarray:
        """How many columns a network sees for each."""
        return np.bincount(self.sources, minlength=self.count)

    def became(self) -> list[str]:
        """What each column is to a network, in words."""
        words = ["numbers"] * self.count if self.table is None else [column.words for column in self.table.columns]
        if self.intake is None:
            return words
        sources = np.arange(self.count) if self.table is None else self.table.sources
        for each in self.intake.categories:
            words[sources[each.column]] = each.words
        for column in self.intake.flagged:
            words[sources[column]] += "; where it has gaps"
        return words

    def coded_rows(self, frame: Any) -> Any:
        """Rows that will be asked about more than once, as numbers where they are a table of mixed columns."""
        return frame if self.table is None else self.table.coded(frame)

    def strange(self, X: Array, unread: Counter[Any], *, gaps: bool = True) -> Strange:
        """What is strange about rows, which are those of the array; `unread` is what its making met."""
        found = Strange(unread=unread, rows=int(X.shape[0]))
        if self.intake is not None:
            found.unknown.update(self._by_name(self.intake.unknown(X)))
            found.gaps.update(self._by_name(self.intake.new_gaps(X) if gaps else {}))
        found.gaps.subtract(unread)  # which are gaps in the array
        found.gaps = +found.gaps
        return found

    def strange_in(self, rows: Any) -> Strange:
        """The same of what `coded_rows` gives."""
        if isinstance(rows, Coded):
            return self.strange(rows.X, rows.unread)
        return self.strange(rows.to_numpy(np.float64, na_value=np.nan), Counter())

    def _by_name(self, found: dict[int, int]) -> dict[Any, int]:
        """What was found in columns of the array, by the names of those that they are made of."""
        names = np.arange(self.count) if self.names is None else self.names
        sources = np.arange(self.count) if self.table is None else self.table.sources
        return {names[sources[column]]: rows for column, rows in found.items()}

    def check(self) -> None:
        """An error where the parts of what was read do not fit together."""
        if self.table is not None:
            self.table.check(self.count)
        if self.intake is not None:
            self.intake.check_shapes(self.coded)
