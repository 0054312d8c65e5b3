"""How rows join a model: the arguments of `partial_fit`, checked."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from .._data.check import check_weight
from .._data.dask import is_dask
from .._data.sources import Source
from .._engine.fading import Fading
from .._engine.running import RunningScore
from .window import Window


class Arrival(NamedTuple):
    """How the rows of one call of `partial_fit` join those that are in."""

    layers: bool = False
    """Whether the layers follow them too."""
    fading: Fading | None = None
    """How those that are in lose weight."""
    test: RunningScore | None = None
    """An empty score where they are to be predicted first."""
    current: bool = False
    """Whether the solution follows at once."""
    window: int | None = None
    """How many of the last rows stay in."""

    @classmethod
    def asked(
        cls,
        how: object,
        decay: object = None,
        half_life: object = None,
        test_first: object = False,
        current: object = False,
        window: object = None,
    ) -> Self:
        """From the arguments of `partial_fit`."""
        if how not in ("head", "all"):
            raise ValueError(f"'update' must be 'head' or 'all'. Got {how!r} instead.")
        if not isinstance(current, (bool, np.bool_)):
            raise ValueError(f"'current' must be True or False. Got {current!r} instead.")
        fading = Fading.asked(decay, half_life)
        if how == "all" and fading is not None:
            raise ValueError("update='all' cannot fade: sums of the layers have no ages. Use update='head'.")
        arrival = cls(how == "all", fading, RunningScore.asked(test_first), bool(current), Window.checked(window))
        if arrival.window is not None:
            arrival.check_window()
        return arrival

    def check_window(self) -> None:
        """Whether rows may leave a window."""
        if self.layers or self.fading is not None or self.current:
            raise ValueError("Rows leave a window whole: it goes without decay, half_life, current and update='all'.")

    def first_weight(self, X: Any, sample_weight: Any) -> Any:
        """Weights of the rows of a first fit: with half_life the last one alone has all of its own."""
        if self.fading is None or not self.fading.by_row:
            return sample_weight
        if isinstance(X, Source):
            raise ValueError("The first call with half_life takes arrays: call partial_fit with some rows first.")
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        share, w = self.fading.weights(0, n, n), check_weight(sample_weight, n)
        return share if w is None else share * w

    def check_order(self, X: Any, window: Window | None) -> None:
        """Whether rows come in an order, where that matters; `window` is the one there is already."""
        if self.window is not None or window is not None:
            check_window_order(X)
        if self.test is not None and is_dask(X):
            raise ValueError(
                "test_first needs rows in the order they came, which partitions of Dask have not: give arrays, or "
                "call score(X, y) before partial_fit."
            )
        if self.fading is not None and self.fading.by_row and is_dask(X):
            raise ValueError(
                "half_life needs rows in the order they came, which partitions of Dask have not: use decay."
            )


def check_window_order(X: Any) -> None:
    if is_dask(X):
        raise ValueError("A window needs rows in the order they came, which partitions of Dask have not: give arrays.")
