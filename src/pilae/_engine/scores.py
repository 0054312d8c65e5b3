"""Leave-one-out errors of rows, and when one choice is better than another by them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array
from .._base.saveable import saveable

TIE = 0.01
"""Two candidates are a tie within this fraction of the paired standard error of their difference."""

ROUNDING = 1e-6
"""And within this share of the larger one: what differs in rounding alone has a standard error of rounding too."""

FEW_ROWS = 1000
"""With fewer scored rows than this a reported accuracy is over all of them."""

LEAST_LEFT = {"float64": 1e-7, "float32": 1e-4}
"""Below this 1 - leverage a row alone holds some direction of the features: the others say nothing about it. By dtype
of the features: leverages are as exact as these."""


class Batch(NamedTuple):
    """Some of the scored rows; of groups, all rows of each."""

    F: Array
    """Standardised features."""
    Z: Array
    """Targets."""
    w: np.ndarray
    unit: np.ndarray
    """The weight that leaves with each row."""
    chooser: np.ndarray
    group: np.ndarray | None = None
    """Numbers of groups whose rows leave together, which come one after another; None where each leaves alone."""
    pieces: Callable[[], Iterator[Array]] | None = None
    """The features of one group that is too large to hold, some rows at a time; F is not there."""


Batches = Callable[[], Iterator[tuple]]
"""Yields the scored rows as what `Batch` is made of, by blocks."""


@saveable
class Scored(NamedTuple):
    """Leave-one-out results on the scored rows, in NumPy."""

    outputs: np.ndarray
    targets: np.ndarray
    weight: np.ndarray
    unit: np.ndarray
    chooser: np.ndarray
    """Weights of the rows that choices are made on: those that are not neurons themselves, where there are enough."""
    group: np.ndarray | None = None
    """Numbers of the groups that were left out whole, where rows belong together."""

    def at(self, rows: np.ndarray) -> "Scored":
        """The results of these rows."""
        columns: tuple[Any, ...] = tuple(None if column is None else column[rows] for column in self)
        return Scored(*columns)

    @property
    def judges(self) -> np.ndarray:
        """Weights of the rows that an accuracy is reported on. Few rows have made all the choices together, and hardly
        any of them is wrong then; rows that are neurons are the harder ones: there all count."""
        return self.weight if len(self.weight) < FEW_ROWS else self.chooser

    def row_errors(self, scale: np.ndarray) -> np.ndarray:
        """sum_k ((z - out)_k / scale_k)^2 of each row."""
        return np.sum(((self.targets - self.outputs) / scale) ** 2, axis=1)

    def squared_error(self, scale: np.ndarray) -> float:
        return float(np.average(self.row_errors(scale), weights=self.chooser))

    def standard_error(self, errors: np.ndarray) -> float:
        """Of the mean of these errors of the rows."""
        weight, [errors] = pooled(self.group, self.chooser, errors)
        mean = np.average(errors, weights=weight)
        off = np.sqrt(weight) * (errors - mean)  # not squared alone: rows of next to no weight may be far off
        return float((off @ off / weight.sum() / max(self.n_choosers, 1.0)) ** 0.5)

    @property
    def n_choosers(self) -> float:
        """How many rows the chooser stands for, or groups: their rows do not err apart from each other."""
        if self.group is None:
            return rows_stood_for(self.chooser, self.unit)
        return float(np.count_nonzero(pooled(self.group, self.chooser)[0]))

    def lower(self, errors: np.ndarray, others: np.ndarray) -> bool:
        """Whether these errors of the rows are lower than the others by more than a tie."""
        weight, (errors, others) = pooled(self.group, self.chooser, errors, others)
        return bool(clearly_lower(errors, others, weight, self.n_choosers))

    def lower_than_each(self, errors: np.ndarray, others: np.ndarray) -> np.ndarray:
        """The same against every column of the others."""
        if self.group is not None:
            return np.array([self.lower(errors, each) for each in others.T])
        return clearly_lower(errors[:, None], others, self.chooser, self.n_choosers)


def concatenated(parts: Sequence[np.ndarray | None]) -> Any:
    """A column of results, one part after another, where there is one."""
    return None if parts[0] is None else np.concatenate([part for part in parts if part is not None])


def pooled(group: np.ndarray | None, weight: np.ndarray, *values: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """The weight of each group and the mean of each of the values over it; of rows alone what there is."""
    if group is None:
        return weight, list(values)
    _, numbers = np.unique(group, return_inverse=True)
    total = np.bincount(numbers, weights=weight)
    inside = np.where(total > 0, total, 1.0)
    return total, [np.bincount(numbers, weights=weight * value) / inside for value in values]


def rows_stood_for(chooser: np.ndarray, unit: np.ndarray) -> float:
    """A row of weight 3 is three rows, a row of weight 0.3 is one."""
    return float(np.sum(chooser / np.where(unit > 0, unit, 1.0)))


def clearly_lower(errors: np.ndarray, others: np.ndarray, chooser: np.ndarray, count: float) -> np.ndarray:
    """Lower on average by more than 1% of the paired standard error, and than rounding; closer than that is a tie.
    Of several columns an answer each."""
    weight = chooser / chooser.sum()
    gain = others - errors
    mean = weight @ gain
    off = (np.sqrt(weight) * (gain - mean).T) ** 2
    tie = TIE * (off.sum(axis=-1) / max(count, 1.0)) ** 0.5
    return mean > np.maximum(tie, ROUNDING * (weight @ np.abs(others)))


def walk(ridges: list[float], near: float, beats: Callable[[int, int], bool]) -> int:
    """The place of the ridge, smallest first, that is reached from the one nearest to `near` on a logarithmic scale: up
    as long as that does not hurt, or else down as long as it helps."""
    start = k = min(range(len(ridges)), key=lambda place: abs(np.log10(ridges[place] / near)))
    while k + 1 < len(ridges) and not beats(k, k + 1):
        k += 1
    while 0 < k <= start and beats(k - 1, k):
        k -= 1
    return k
