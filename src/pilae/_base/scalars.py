"""Plain numbers that users pass."""

import math
import numbers
from typing import TypeGuard

import numpy as np


def is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)) and not math.isnan(value)


def is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))


def seed_of(random_state: object) -> int:
    """One integer from random_state; None counts as 0, so that the default is deterministic."""
    if random_state is None:
        return 0
    if is_integer(random_state) and random_state >= 0:
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    raise ValueError(f"'random_state' must be None, a non-negative integer or a NumPy generator. Got {random_state!r}.")
