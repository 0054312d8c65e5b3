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
    """Whether there were several rates, or rows came between that let none fade, so that the age of a row does not say
    what it still weighs."""
    oldest: int | None = None
    """The age of those that were in when the first others faded; None where a file does not say."""

    @classmethod
    def asked(cls, decay: object, half_life: object) -> Self | None:
        """From the arguments of `partial_fit`; None where neither is given, or nothing would fade."""
        if decay is not None and half_life is not None:
            raise ValueError("Give 'decay' (for each call) or 'half_life' (in rows), not both.")
        if decay is not None:
            if not is_number(decay) or not 0 < decay <= 1:  # type: ignore[operator]
                raise ValueError(f"'decay' must be a number above 0 and at most 1. Got {decay!r} instead.")
            return cls(float(decay), by_row=False) if decay < 1 else None  # type: ignore[operator,arg-type]
        if half_life is None:
            return None
        if not is_number(half_life) or not half_life > 0:  # type: ignore[operator]
            raise ValueError(f"'half_life' must be a positive number of rows. Got {half_life!r} instead.")
        factor = 0.5 ** (1.0 / float(half_life))  # type: ignore[arg-type]
        return cls(factor, by_row=True) if factor < 1 else None

    def after(self, before: Fading | None, n: int) -> Self:
        """This rate, now that n rows have come which let the others fade by it; `before` is what was before."""
        units = n if self.by_row else 1
        if before is None:
            return replace(self, oldest=units)
        same = not before.mixed and before.factor == self.factor and before.by_row == self.by_row
        return replace(self, mixed=not same, oldest=None if before.oldest is None else before.oldest + units)

    def asked_for(self) -> dict[str, float]:
        """The argument of `partial_fit` that this came from."""
        if not self.by_row:
            return {"decay": self.factor}
        return {"half_life": float(f"{-math.log(2) / math.log(self.factor):.9g}") if self.factor > 0 else 0.0}

    def kept(self, n: int) -> float:
        """What is left of those that are in when n rows come."""
        return self.factor**n if self.by_row else self.factor

    def weights(self, start: int, stop: int, n: int) -> np.ndarray | None:
        """Of the rows numbered start to stop - 1 among the n of one call; None is 1 each."""
        return self.factor ** np.arange(n - 1 - start, n - 1 - stop, -1.0) if self.by_row else None

    def at_age(self, age: object, n: int, method: str) -> np.ndarray:
        """What n rows that are in still weigh at these ages."""
        if self.mixed:
            raise ValueError(
                "Rows of this model faded at several rates, or not at all in some calls, so an age does not say what "
                "they still weigh: fit again, forget(X, y, remaining=(X_rest, y_rest), age=...) does."
            )
        ages = self.ages(age, n, method)
        if self.oldest is not None and np.any(ages > self.oldest):
            raise ValueError(
                f"No row of this model is older than {self.oldest}, and 'age' says {ages.max():g}: it is the number of "
                f"{self._unit} after a row, so that those that were in before the first of them are {self.oldest} old."
            )
        return self.factor**ages

    @property
    def _unit(self) -> str:
        return "rows that came with half_life" if self.by_row else "calls with decay"

    def ages(self, age: object, n: int, method: str) -> np.ndarray:
        """The argument, as one number for each of n rows."""
        if age is None:
            raise ValueError(
                f"Rows of this model lose weight with age: give {method} the 'age' of each, the number of "
                f"{self._unit} after it."
            )
        try:
            ages = np.asarray(age, dtype=np.float64)
        except (TypeError, ValueError):
            ages = np.asarray(np.nan)
        if ages.ndim > 1 or (ages.ndim == 1 and len(ages) != n) or not np.all(np.isfinite(ages)) or np.any(ages < 0):
            raise ValueError(f"'age' must be one number of at least 0 a row, {n} of them, or one for all.")
        return np.broadcast_to(ages, n)

    def check(self) -> None:
        """An error where a file says something else."""
        if type(self.factor) is not float or not (math.isfinite(self.factor) and 0 <= self.factor <= 1):
            raise ValueError("a factor of fading is a share")
        if self.oldest is not None and (type(self.oldest) is not int or self.oldest < 0):
            raise ValueError("an age is a number of calls or rows")


def now_fading(before: Fading | None, asked: Fading | None, n: int) -> Fading | None:
    """How rows fade after n more came, for which this was `asked`."""
    if asked is not None:
        return asked.after(before, n)
    return None if before is None else replace(before, mixed=True)
