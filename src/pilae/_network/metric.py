"""What distances and directions are measured by: a metric S = R R', learnt from labels (see `gradients`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .._arrays import Array, diagonal, matmul, namespace

FULL_COLUMNS = 800
"""Up to so many columns a metric is full, beyond it is diagonal."""

TRACE = 1e-4
"""What of I is added to a metric whose largest eigenvalue is 1."""


@dataclass(frozen=True, eq=False)
class Metric:
    """S and a root R of it, S = R R'."""

    matrix: Array
    """d x d, or its diagonal."""
    root: Array

    def directions(self, A: Array) -> Array:
        """S A', one column for each row of A."""
        return self.matrix[:, None] * A.mT if self.matrix.ndim == 1 else matmul(self.matrix, A.mT)


def metric_of(M: Array, power: float) -> Metric:
    """The metric of a power of M, which is full or a diagonal."""
    xp = namespace(M)
    if M.ndim == 2 and float(xp.max(diagonal(M))) > 0:
        values, V = xp.linalg.eigh(M)
        S = (xp.clip(values, min=0.0) / values[-1]) ** power + TRACE
        return Metric(matmul(V * S, V.mT), V * xp.sqrt(S))
    M = M if M.ndim == 1 else diagonal(M)
    largest = float(xp.max(M))
    S = (M / largest) ** power + TRACE if largest > 0 else xp.ones_like(M)  # outputs that nothing moves weigh nothing
    return Metric(S, xp.sqrt(S))


class Shape(NamedTuple):
    """What the labels, or a sample of the rows, have decided about hidden neurons before they are made."""

    metric: Metric | None = None
    unit: float | None = None
    """Of lengths; found from the anchors where it is not given."""


NO_SHAPE = Shape()
