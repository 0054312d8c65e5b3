"""The sizes of the rounds that candidates are compared in, and what is shared by the candidates of one."""

import copy
from typing import NamedTuple

import numpy as np

from .._arrays import to_numpy
from .._data.rows import Rows
from .._network import structure
from .._network.growth import Grower
from .._network.survey import SurveySpec, survey_rows
from .builder import Builder, target_variance
from .spec import Spec


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

    def __init__(self, spec: Spec, rows: Rows, size: Round, least: int, inner: int | None = None) -> None:
        capacity = max(size.width + 1, spec.width.bound(rows.d))
        search_rows = None if inner is None else lambda distinct: inner
        wanted = SurveySpec(spec.seed, spec.anchors, capacity, size.scored, search_rows=search_rows)
        self.survey = survey = survey_rows(rows, wanted)
        self.builder = Builder(spec, rows, survey, hold=True)
        width = min(max(least, survey.distinct // 5), size.width)
        self.width = max(1, min(width, survey.distinct // 3, int(survey.anchors.shape[0]) - 1))
        self.mean = to_numpy(survey.targets.mean_a)
        self.spread = float(np.sum(target_variance(survey) / self.builder.scale**2))
        """The squared error of always saying the mean."""
        self._growers: dict[tuple[str, int], Grower] = {}

    def grower(self, scaling: str, depth: int) -> Grower:
        """So many layers on this scaling of the input."""
        if (scaling, depth) not in self._growers:
            if depth == 0:
                grower = self.builder.grower(scaling)
            else:
                grower = copy.copy(self.grower(scaling, depth - 1))
                grower.step()
            self._growers[scaling, depth] = grower
        return self._growers[scaling, depth]
