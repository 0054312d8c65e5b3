"""Some rows, where they are computed with."""

from typing import NamedTuple, overload

import numpy as np

from .._arrays import Array


class Block(NamedTuple):
    """One block: its rows, their 0/1 or real targets, their weights (None: all 1) and the first row's number.

    `codes` are class numbers, `unit` the weight that leaving one row out takes away and `group` keys of the groups that
    rows belong to, in NumPy, where there are any.
    """

    X: Array
    Z: Array
    w: Array
    start: int
    codes: np.ndarray | None = None
    unit: np.ndarray | None = None
    group: np.ndarray | None = None


@overload
def unit_of(w: np.ndarray) -> np.ndarray: ...
@overload
def unit_of(w: np.ndarray | None) -> np.ndarray | None: ...
def unit_of(w: np.ndarray | None) -> np.ndarray | None:
    """The weight that leaving one row out takes away: of a weight of 3, which is three equal rows, one."""
    return None if w is None else np.minimum(w, 1.0)
