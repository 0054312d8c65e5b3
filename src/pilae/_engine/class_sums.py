"""Sums over rows, class by class.

Balanced weights depend on how many rows of each class there are, so they cannot be part of a sum. Sums by class are
kept instead: each is multiplied by the weight of its class when somebody needs them all.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Self

from .._arrays import Array, Space
from .._base.saveable import saveable
from .moments import Moments

MOST_BYTES = 2**31
"""Of the sums by class: more are refused."""


@saveable
class ClassSums:
    """One `Moments` for each class; B has a 0/1 column for each. To be added to and taken from as one is."""

    def __init__(self, parts: list[Moments]) -> None:
        self.parts = parts

    @classmethod
    def of(cls, classes: int, space: Space, product: str) -> Self:
        return cls([Moments(space, product=product) for _ in range(classes)])

    def __copy__(self) -> Self:
        return self._each(copy.copy)

    def _each(self, change: Callable[[Moments], Moments]) -> Self:
        return type(self)([change(part) for part in self.parts])

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts)

    @property
    def weight(self) -> float:
        return sum(part.weight for part in self.parts)

    def add(self, A: Array, B: Array, weight: Array = None, *, scratch: bool = False) -> None:
        """Add rows, each to the sums of its class."""
        xp = self.parts[0].space.xp
        for number, part in enumerate(self.parts):
            at = xp.nonzero(B[:, number] > 0.5)[0]
            if at.shape[0]:
                part.add(
                    xp.take(A, at, axis=0),
                    xp.take(B, at, axis=0),
                    None if weight is None else xp.take(weight, at, axis=0),
                    scratch=True,
                )

    def merge(self, other: Self) -> None:
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            mine.merge(theirs)

    def subtract(self, removed: Self) -> None:
        """Take rows out; refused where they cannot have been in, and then some may be gone: use a copy."""
        for mine, theirs in zip(self.parts, removed.parts, strict=True):
            if theirs.count:
                mine.subtract(theirs)

    def fade(self, factor: float) -> None:
        for part in self.parts:
            part.fade(factor)

    def follow(self) -> None:
        for part in self.parts:
            part.follow()

    def like(self) -> Self:
        return self._each(Moments.like)

    def copy(self) -> Self:
        return self._each(Moments.copy)

    def arranged(self, columns: list[int | None]) -> Self:
        """The same rows with these classes; None is one that nobody has met."""
        empty = self.parts[0].empty()
        return type(self)([empty.copy() if k is None else self.parts[k].arranged(columns) for k in columns])

    def is_finite(self) -> bool:
        return all(part.is_finite() for part in self.parts)

    def balanced(self) -> Moments:
        """The sums of all rows, weighted so that every class that has rows weighs the same."""
        total, weight = self.parts[0].empty(), self.weight
        most, most_b = 0.0, 0.0
        for part in self.parts:
            if part.weight > 0:
                share = part.copy()
                share.fade(weight / (len(self.parts) * part.weight))
                most, most_b = most + share.largest, most_b + share.largest_b
                total.merge(share)
        if total.count:
            xp = total.space.xp
            total.largest, total.largest_b = xp.maximum(total.largest, most), xp.maximum(total.largest_b, most_b)
            total.heaviest = max(total.heaviest, sum(part.heaviest for part in self.parts))
        return total


def check_room(classes: int, width: int) -> None:
    """Whether sums of so many features by class can be kept."""
    size = 8 * classes * width * width
    if size > MOST_BYTES:
        raise ValueError(
            f"Sums by class of {classes} classes and {width} features would take {size / 1e9:.1f} GB, and at most "
            f"{MOST_BYTES / 1e9:.1f} GB are kept: use a narrower head, such as SHLN(width=500), or give the weight of "
            "each class as a dict."
        )
