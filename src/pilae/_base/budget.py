"""Time that a search may take: inside `time_budget` it tries no further candidate when that is used up."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from .scalars import is_number


class Budget:
    """Seconds from now on, by a clock that tests may bring along."""

    def __init__(self, seconds: float = math.inf, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock, self._end = clock, clock() + seconds

    @property
    def used_up(self) -> bool:
        return self._clock() >= self._end


_active: ContextVar[Budget | None] = ContextVar("budget", default=None)


def active_budget() -> Budget:
    """The budget that is in force here; without one there is time for everything."""
    return _active.get() or Budget()


@contextlib.contextmanager
def time_budget(seconds: float) -> Iterator[None]:
    """Seconds for the searches of all fits inside, counted from here on.

    When they are used up a search tries no further candidate and ends with the best so far, which is then fitted to all
    rows as ever: that takes its own time. At least one candidate is always tried, the simplest. What was not tried
    stands in `search_`, with None as its loss. A budget that is not used up changes nothing.

    Parameters
    ----------
    seconds : float
        At least 0; infinity is no bound.

    Examples
    --------
    >>> import pilae
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> with pilae.time_budget(0):
    ...     model = pilae.PILAEClassifier().fit(X, y)
    >>> [row["head"] for row in model.search_ if row["loss"] is not None]
    ['ridge']
    """
    if not is_number(seconds) or not seconds >= 0:
        raise ValueError(f"A time budget must be a number of seconds of at least 0, not {seconds!r}.")
    before = _active.set(Budget(seconds))
    try:
        yield
    finally:
        _active.reset(before)
