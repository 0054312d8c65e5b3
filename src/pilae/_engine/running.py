"""How good a model is on a stream: every row is predicted before it is learnt, and late rows count most."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from .._base.saveable import check_shape, saveable
from .._base.scalars import is_number

USUAL_HALF_LIFE = 1000.0
"""Rows after which a prediction counts half."""

MOST_POINTS = 1024
"""Of the curve: where there would be more, every second is left out."""


@saveable
@dataclass(frozen=True, eq=False)
class RunningScore:
    """Accuracy, or R2 of numbers, of predictions made before their rows were learnt.

    With weights w that halve every `half_life` rows it is sum(w hit) / sum(w), and of each column z of numbers
    1 - sum(w (z - predicted)^2) / sum(w (z - mean)^2), the mean over columns.

    Attributes
    ----------
    count : int
        Rows predicted so far.
    rows, scores : ndarray
        The curve: after how many rows it was what; at most 1,024 calls, evenly spread.
    last : ndarray of shape (n_samples,)
        Of the last call, in row order: whether each prediction was right, or minus its squared error. What a test for
        drift such as river's ADWIN takes.
    """

    half_life: float
    count: int = 0
    weight: float = 0.0
    sums: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """One column each: w hit; or of numbers w error^2, w z and w z^2 about `shift`."""
    shift: np.ndarray = field(default_factory=lambda: np.zeros(0))
    calls: int = 0
    every: int = 1
    """Calls between two points of the curve."""
    rows: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    scores: np.ndarray = field(default_factory=lambda: np.zeros(0))
    last: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def asked(cls, test_first: object) -> Self | None:
        """From the argument of `partial_fit`; None where it is False."""
        if test_first is None:
            return None
        if isinstance(test_first, (bool, np.bool_)):
            return cls(USUAL_HALF_LIFE) if test_first else None
        if not is_number(test_first) or not test_first > 0:  # type: ignore[operator]
            raise ValueError(f"'test_first' must be a bool or a half-life in rows. Got {test_first!r} instead.")
        return cls(float(test_first))  # type: ignore[arg-type]

    @property
    def score(self) -> float:
        """As it is now; NaN where nothing was predicted, or numbers have not varied yet."""
        if not self.count:
            return float("nan")
        if self.sums.shape[0] == 1:
            return float(self.sums[0, 0] / self.weight)
        error, total, squares = self.sums
        spread = squares - total**2 / self.weight
        if not np.all(spread > 0):
            return float("nan")
        return float(np.mean(1.0 - error / spread))

    @property
    def measure(self) -> str:
        """What the score is."""
        return "R²" if self.sums.shape[0] == 3 else "accuracy"

    def with_hits(self, hits: np.ndarray, weight: np.ndarray | None) -> Self:
        """After these rows, of which some were predicted rightly."""
        return self._after(hits.astype(float)[None, :, None], self.shift, hits.astype(float), weight)

    def with_numbers(self, targets: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None) -> Self:
        """After these rows with their targets and what was predicted for them."""
        shift = self.shift if self.count else targets.mean(axis=0)
        errors, z = (targets - predicted) ** 2, targets - shift
        return self._after(np.stack([errors, z, z**2]), shift, -errors.mean(axis=1), weight)

    def _after(self, values: np.ndarray, shift: np.ndarray, last: np.ndarray, weight: np.ndarray | None) -> Self:
        """`values` are what is summed, by kind, row and column."""
        n = len(last)
        w = 0.5 ** (np.arange(n - 1, -1, -1.0) / self.half_life)
        w = w if weight is None else w * weight
        share = 0.5 ** (n / self.half_life)
        sums = np.einsum("n,knm->km", w, values)
        new = replace(
            self,
            count=self.count + n,
            calls=self.calls + 1,
            weight=share * self.weight + float(w.sum()),
            sums=sums if not self.count else share * self.sums + sums,
            shift=shift,
            last=last,
        )
        return new._with_point() if new.calls % new.every == 0 else new

    def _with_point(self) -> Self:
        rows, scores = np.append(self.rows, self.count), np.append(self.scores, self.score)
        if len(rows) <= MOST_POINTS:
            return replace(self, rows=rows, scores=scores)
        return replace(self, rows=rows[1::2], scores=scores[1::2], every=2 * self.every)

    def check(self) -> None:
        """An error where a file says something else."""
        for name, kind in (("half_life", float), ("weight", float), ("count", int), ("calls", int), ("every", int)):
            if type(getattr(self, name)) is not kind:
                raise TypeError(f"{name} is no {kind.__name__}")
        check_shape(self.scores, *self.rows.shape)
        if self.rows.ndim != 1 or self.sums.ndim != 2 or self.every < 1:
            raise ValueError("the sums of a running score are a table, its curve two columns")
