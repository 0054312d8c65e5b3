"""Rows that lose weight with age.

A row of age a counts with its weight times factor^a. Sums over rows are linear in the weights, so letting all rows grow
older by k is one multiplication of every sum by factor^k: exact, and nothing of the rows themselves is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .._base.saveable import saveable
from .._base.scalars import is_number


@saveable
@dataclass(frozen=True)
class Fading:
    """At what rate rows lose weight: `factor` for each unit of age, which is a call or a row that came later."""

    factor: float
    by_row: bool
    mixed: bool = False
    """Whether there were several rates, so that the age of a row does not say what it still weighs."""

    @classmethod
    def asked(cls, decay: object, half_life: object) -> Self | None:
        """From the arguments of `partial_fit`; None where neither is given."""
        if decay is not None and half_life is not None:
            raise ValueError("Give 'decay' (for each call) or 'half_life' (in rows), not both.")
        if decay is not None:
            if not is_number(decay) or not 0 < decay <= 1:  # type: ignore[operator]
                raise ValueError(f"'decay' must be a number above 0 and at most 1. Got {decay!r} instead.")
            return cls(float(decay), by_row=False)  # type: ignore[arg-type]
        if half_life is None:
            return None
        if not is_number(half_life) or not half_life > 0:  # type: ignore[operator]
            raise ValueError(f"'half_life' must be a positive number of rows. Got {half_life!r} instead.")
        return cls(0.5 ** (1.0 / float(half_life)), by_row=True)  # type: ignore[arg-type]

    def following(self, before: Fading | None) -> Self:
        """This rate, for rows that faded at another one before."""
        same = before is None or (not before.mixed and before.factor == self.factor and before.by_row == self.by_row)
        return self if same else replace(self, mixed=True)

    def kept(self, n: int) -> float:
        """What is left of those that are in when n rows come."""
        return self.factor**n if self.by_row else self.factor

    def weights(self, start: int, stop: int, n: int) -> np.ndarray | None:
        """Of the rows numbered start to stop - 1 among the n of one call; None is 1 each."""
        return self.factor ** np.arange(n - 1 - start, n - 1 - stop, -1.0) if self.by_row else None

    def at_age(self, age: object, n: int) -> np.ndarray:
        """What n rows of these ages still weigh."""
        unit = "rows" if self.by_row else "calls that decayed"
        if self.mixed:
            raise ValueError(
                "Rows of this model faded at several rates, so an age does not say what they still weigh: use "
                "forget(X, y, remaining=(X_rest, y_rest)), which fits again."
            )
        if age is None:
            raise ValueError(
                f"Rows of this model lose weight with age: give forget the age of each, the number of {unit} that came "
                "after it."
            )
        ages = np.asarray(age, dtype=np.float64)
        if ages.ndim > 1 or (ages.ndim == 1 and len(ages) != n) or not np.all(np.isfinite(ages)) or np.any(ages < 0):
            raise ValueError(f"'age' must be one number of at least 0 a row, {n} of them, or one for all.")
        return np.broadcast_to(self.factor**ages, n)

    def check(self) -> None:
        """An error where a file says something else."""
        if type(self.factor) is not float or not (math.isfinite(self.factor) and 0 <= self.factor <= 1):
            raise ValueError("a factor of fading is a share")
