"""Rules for the shape of a network: widths, depth, input scaling."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._arrays import NUMPY, Array, Space, to_numpy
from .._base.scalars import is_integer
from .._base.warn import warn

DECAY = 0.9
"""beta of eq (19): the paper's 784-705-634."""

RECONSTRUCTION_TARGET = 1e-3
"""width="auto": relative squared reconstruction error at which a layer is wide enough."""

RANK_TOLERANCE = 0.01
"""growth="rank" stops when ||H^+ H - I||^2 = N - rank falls below this fraction of N."""

HEAD_WIDTH_LIMIT = 6000
"""The widest head that SHLN(width="auto") considers."""

GPU_WIDTH_LIMIT = 30_000
"""The same on a GPU, where a fit of so many takes seconds."""

ROWS_A_NEURON, GPU_ROWS_A_NEURON = 15, 4

SECOND_WIDTH = 1000
"""Neurons up to which the second of two networks is as wide as the first."""

COUNTED_ROWS = 2 * HEAD_WIDTH_LIMIT
"""How far distinct rows are counted exactly; beyond, their number is estimated."""


FORMULA = (-522.949, 4.28098, 0.593006, -0.00300598, -3.85665e-05)
"""theta of eq (31), refitted on the paper's eleven data sets by studies/paper/fit_formula.py."""

FORMULA_RANKS, FORMULA_ROWS = (6, 970), (250, 10_000)
"""The ranks and numbers of rows it was fitted on."""


CURVED = ("asinh", "pieces")
"""Input scalings that are not linear: the sums of the raw columns say nothing about theirs."""


class Plan(NamedTuple):
    """What to build on rows: everything the search decides except widths and the output ridge."""

    input_scaling: str = "none"
    depth: int = 0
    head: str = "shln"
    neurons: str = "rows"
    encoder_ridge: float = 1.0
    activation: str = "relu"
    direct: bool = False
    skip: bool = False
    branches: int = 1
    length: float | None = None
    """Of radial neurons, in median distances between anchors."""
    rounds: int = 0
    """How often the metric was learnt from labels; 0: neurons see the inputs' own."""
    power: float = 0.5
    """Of the metric."""
    diagonal: bool = False
    """Whether the metric has one number a column."""
    taught: int = 1
    """The round of the search whose rows and neurons taught the metric."""


@dataclass(frozen=True)
class WidthRule:
    """How many neurons each layer gets: listed, one number for all, or a rule with its factor.

    "rank" is eq (18), p = r + alpha (d - r), with alpha 0 by default; "decay" is eq (19), p = beta d, with beta 0.9 by
    default. That is the most for "error", which is cut down to what the reconstruction needs.
    """

    kind: str
    factor: float = DECAY
    listed: tuple[int, ...] | None = None

    @classmethod
    def of(cls, width: str | int | tuple | list | np.ndarray) -> WidthRule:
        """From the estimators' parameter; "auto" is ("error", 1e-3)."""
        if isinstance(width, str):
            return cls(
                "error" if width == "auto" else width, {"auto": RECONSTRUCTION_TARGET, "rank": 0.0}.get(width, DECAY)
            )
        if is_integer(width):
            return cls("number", float(width))
        if isinstance(width[0], str):  # type: ignore[index]
            return cls(*width)  # type: ignore[misc]
        return cls("list", listed=tuple(int(p) for p in width))  # type: ignore[union-attr]

    @property
    def fixed(self) -> bool:
        """Whether the numbers themselves were given."""
        return self.kind in ("list", "number")

    @property
    def target(self) -> float | None:
        """The reconstruction error that beta of eq (19) is found from; None for rules that do not look at it."""
        return float(self.factor) if self.kind == "error" else None

    def neurons(self, layer: int, d: int, rank: int) -> int:
        """Of autoencoder number `layer` (from 0) on an input of d columns and the given rank."""
        if self.listed is not None:
            return self.listed[layer]
        if self.kind == "number":
            return int(self.factor)
        if self.kind == "rank":
            return max(1, int(rank + self.factor * (d - rank)))
        return max(1, int((self.factor if self.kind == "decay" else DECAY) * d))

    def bound(self, d: int) -> int:
        """The most neurons any layer of this rule can have on d input columns."""
        if self.listed is not None:
            return max(self.listed)
        return int(self.factor) if self.kind == "number" else d


def width_limit(space: Space) -> int:
    """The widest head that SHLN(width="auto") considers there."""
    return GPU_WIDTH_LIMIT if space.is_cuda else HEAD_WIDTH_LIMIT


def widest_head(distinct_rows: float, space: Space = NUMPY) -> int:
    """The widest head that SHLN(width="auto") considers on so many rows.

    Half the distinct rows, of fewer than 700 only a third (rows that are neurons choose nothing, and some must), and
    no more than a fit in seconds allows: 1,000 neurons and one for every 15 rows, on a card for every 4.
    """
    share = min(max(distinct_rows / 3, distinct_rows - 350), distinct_rows / 2)
    affordable = 1000 + distinct_rows / (GPU_ROWS_A_NEURON if space.is_cuda else ROWS_A_NEURON)
    return max(1, int(min(share, affordable, width_limit(space))))


def second_width(widest: int) -> int:
    """The same for a network beside another: half as wide, at a quarter of the time, where that is still wide."""
    return min(widest, max(SECOND_WIDTH, widest // 2))


def formula_width(rank: int, n_rows: int, available: int) -> int:
    """SHLN(width="formula"): P(r, N) of eq (31), and where it is not positive the rank, eq (30) with alpha 0.

    Outside the range of the data it was fitted on the formula means little (at 60,000 rows it is far below zero), so
    then it warns and says what it used.
    """
    theta = FORMULA
    p = math.ceil(theta[0] + theta[1] * rank + theta[2] * n_rows + theta[3] * rank**2 + theta[4] * n_rows**2)
    width = min(p if p > 0 else max(1, rank), available)
    inside = FORMULA_RANKS[0] <= rank <= FORMULA_RANKS[1] and FORMULA_ROWS[0] <= n_rows <= FORMULA_ROWS[1]
    if not inside or width == available:
        warn(
            f"SHLN(width='formula') was fitted on ranks {FORMULA_RANKS[0]} to {FORMULA_RANKS[1]} and {FORMULA_ROWS[0]} "
            f"to {FORMULA_ROWS[1]} rows; for rank {rank} and {n_rows} distinct rows it gives {p}, and {width} is used. "
            "SHLN(width='auto') chooses by leave-one-out instead."
        )
    return width


def scaling_rule(input_scaling: str, variance: Array) -> str:
    """input_scaling where nothing is searched; variance is that of the columns."""
    if input_scaling != "auto":
        return input_scaling
    return "standard" if wants_standardising(to_numpy(variance)) else "none"


def wants_standardising(variance: np.ndarray) -> bool:
    """input_scaling="auto": standardise unless the columns share one scale, as pixels and embeddings do.

    They share one when the median standard deviation of the columns that vary is at least a tenth of the largest.
    """
    spread = np.sqrt(variance[variance > 0])
    return bool(spread.size) and float(np.median(spread)) < 0.1 * float(spread.max())
