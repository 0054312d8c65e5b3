"""Leave-one-out errors of rows, and when one choice is better than another by them."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from .._arrays import Array
from .._base.saveable import saveable

TIE = 0.01
"""Two candidates are a tie within this fraction of the paired standard error of their difference."""

FEW_ROWS = 1000
"""With fewer scored rows than this a reported accuracy is over all of them."""

LEAST_LEFT = {"float64": 1e-7, "float32": 1e-4}
"""Below this 1 - leverage a row alone holds some direction of the features: the others say nothing about it. By dtype
of the features: leverages are as exact as these."""

Batches = Callable[[], Iterator[tuple[Array, Array, np.ndarray, np.ndarray, np.ndarray]]]
"""Yields (standardised features, targets, weights, units to leave out, chooser) of the scored rows, by blocks."""


@saveable
class Scored(NamedTuple):
    """Leave-one-out results on the scored rows, in NumPy."""

    outputs: np.ndarray
    targets: np.ndarray
    weight: np.ndarray
    unit: np.ndarray
    chooser: np.ndarray
    """Weights of the rows that choices are made on: those that are not neurons themselves, where there are enough."""

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
        mean = np.average(errors, weights=self.chooser)
        return float((np.average((errors - mean) ** 2, weights=self.chooser) / max(self.n_choosers, 1.0)) ** 0.5)

    @property
    def n_choosers(self) -> float:
        """How many rows the chooser stands for."""
        return rows_stood_for(self.chooser, self.unit)

    def lower(self, errors: np.ndarray, others: np.ndarray) -> bool:
        """Whether these errors of the rows are lower than the others by more than a tie."""
        return clearly_lower(errors, others, self.chooser, self.n_choosers)


def rows_stood_for(chooser: np.ndarray, unit: np.ndarray) -> float:
    """A row of weight 3 is three rows, a row of weight 0.3 is one."""
    return float(np.sum(chooser / np.where(unit > 0, unit, 1.0)))


def clearly_lower(errors: np.ndarray, others: np.ndarray, chooser: np.ndarray, count: float) -> bool:
    """Lower on average by more than 1% of the paired standard error; closer than that is a tie."""
    weight = chooser / chooser.sum()
    gain = others - errors
    mean = float(weight @ gain)
    return mean > TIE * (float(weight @ (gain - mean) ** 2) / max(count, 1.0)) ** 0.5


def walk(ridges: list[float], near: float, beats: Callable[[int, int], bool]) -> int:
    """The place of the ridge, smallest first, that is reached from the one nearest to `near` on a logarithmic scale: up
    as long as that does not hurt, or else down as long as it helps."""
    start = k = min(range(len(ridges)), key=lambda place: abs(np.log10(ridges[place] / near)))
    while k + 1 < len(ridges) and not beats(k, k + 1):
        k += 1
    while 0 < k <= start and beats(k - 1, k):
        k -= 1
    return k
