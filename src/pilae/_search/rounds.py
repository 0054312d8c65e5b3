"""The sizes of the rounds that candidates are compared in, and what is shared by the candidates of one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._arrays import to_numpy
from .._data.rows import Rows
from .._network import structure
from .._network.growth import Grower
from .._network.survey import survey
from .builder import Builder, target_variance


class Round(NamedTuple):
    """How many distinct rows candidates are fitted and scored on, and the most hidden neurons they get."""

    rows: int
    scored: int
    width: int


FIRST_ROUND = Round(rows=4000, scored=1000, width=400)
"""Every candidate, on four rows for each column and at least 2,000. Neurons: one for five rows, at least 200, and at
most a third of the rows."""

LAST_ROUND = Round(rows=15_000, scored=2000, width=2000)
"""The best few again, wider and on more rows: narrow layers favour depth and plain columns."""


def size_of_last_round(distinct: int) -> Round:
    """LAST_ROUND, or less where the head will be narrow: half its neurons, on eight rows for each."""
    width = min(LAST_ROUND.width, max(structure.widest_head(distinct) // 2, FIRST_ROUND.width))
    return Round(min(LAST_ROUND.rows, max(8 * width, FIRST_ROUND.rows)), LAST_ROUND.scored, width)


def rows_of_last_round(distinct: int) -> int:
    return size_of_last_round(distinct).rows


class Trial:
    """Rows to compare candidates on, a width for them, and the layers grown so far."""

    def __init__(self, params: Any, rows: Rows, seed: int, size: Round, least: int, inner: int | None = None) -> None:
        capacity = max(size.width + 1, structure.width_bound(params.width, rows.d))
        self.found = found = survey(
            rows,
            seed,
            params.anchors,
            capacity,
            size.scored,
            search_rows=None if inner is None else lambda distinct: inner,
        )
        self.builder = Builder(params, rows, found, seed, hold=True)
        width = min(max(least, found.distinct // 5), size.width)
        self.width = max(1, min(width, found.distinct // 3, int(found.anchors.shape[0]) - 1))
        self.mean = to_numpy(found.targets.mean_a)
        self.spread = float(np.sum(target_variance(found) / self.builder.scale**2))
        """The squared error of always saying the mean."""
        self._growers: dict[str, Grower] = {}

    def grower(self, scaling: str, depth: int = 0) -> Grower:
        """Layers on this scaling of the input, at least `depth` of them."""
        if scaling not in self._growers:
            self._growers[scaling] = self.builder.grower(scaling)
        while self._growers[scaling].depth < depth:
            self._growers[scaling].step()
        return self._growers[scaling]
