"""What `fit` found, as one frozen value, and the attributes of an estimator that read it.

An estimator holds its parameters and one value more, `fitted_`. Whoever predicts reads it once, at the start, and an
update replaces it in one step: a thread sees one model or the next, never half of each, and an error or Ctrl-C at any
moment leaves the estimator as it was.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._arrays import Array
from .._arrays.threads import sharing
from .._base.progress import peak_megabytes
from .._base.saveable import check_shape, saveable
from .._data.columns import Columns
from .._data.halves import Halves
from .._data.opening import Running
from .._data.rows import Rows
from .._data.targets import Numbers, Targets
from .._engine.bounds import Bounds
from .._engine.fading import Fading
from .._engine.running import RunningScore
from .._network.head import Head, LinearHead
from .._network.linear import LinearPeer
from .._network.network import Network
from .window import Window


@saveable
class LeftOut(NamedTuple):
    """Rows of the training data, and what is predicted for each by an output layer that has not seen it."""

    rows: np.ndarray
    predicted: np.ndarray


class RowsIn(NamedTuple):
    """The rows that a model holds: how many, what they weigh together, and how they leave."""

    rows: int
    weight: float
    window: int | None = None
    decay: float | None = None
    half_life: float | None = None


@dataclass(frozen=True, eq=False)
class Fitted:
    """What every fitted estimator knows."""

    columns: Columns

    def ready(self) -> None:
        """Finish what was put off."""

    def settle(self) -> None:
        """The same where it can be done: a network without rows has nothing to solve."""

    def lean(self) -> Self:
        """What predicting needs, without what only training does."""
        return self


@dataclass(frozen=True, eq=False)
class FittedNetwork(Fitted):
    """Columns and the layers on them."""

    network: Network

    @property
    def features_out(self) -> int:
        width = self.columns.width
        return self.network.layers[-1].width if self.network.layers else self.network.scaled_width(width)

    @property
    def widest(self) -> int:
        return max(self.columns.width, self.network.widest)


@saveable
@dataclass(frozen=True, eq=False)
class FittedLayers(FittedNetwork):
    """Autoencoder layers."""

    passes: int
    reconstruction_error: float | None = None


@saveable
@dataclass(frozen=True, eq=False)
class FittedModel(FittedNetwork):
    """A whole network: layers, head, and what its outputs mean."""

    head: Head
    targets: Targets
    search: list[dict[str, Any]] = field(default_factory=list)
    stats: dict[str, float] = field(default_factory=dict)
    loo_score: float | None = None
    loo_predictions: LeftOut | None = None
    loo_is_stale: bool = False
    approximate: bool = False
    """Whether layers have followed later rows, so that the sums are of several networks."""
    weight_exponent: int = 0
    """`fit` divided weights of absurd size by two to this power; those of later rows are divided, too."""
    halves: Halves | None = None
    """Which rows shaped the network with their labels, where any did: these are never scored."""
    optimism: float = 0.0
    """What of its leave-one-out score is the luck of having been chosen by it."""
    importances: np.ndarray | None = None
    """How much each column moves the outputs."""
    bounds: Bounds | None = None
    """The range of each column, over all rows that were ever in it."""
    linear: LinearPeer | None = None
    """How good a plain linear model of the same rows is, where that was looked at."""
    row_weights: np.ndarray | None = None
    """What a robust fit gave each row."""
    fading: Fading | None = None
    """How rows lose weight with age, where they do."""
    window: Window | None = None
    """The rows that are in, where only the last ones are."""
    grouped: bool = False
    """Whether rows that belong together were left out together."""
    tested: RunningScore | None = None
    """How well rows were predicted before they were learnt, where somebody asked."""

    @property
    def widest(self) -> int:
        return max(super().widest, self.head.widest)

    @property
    def rows_in(self) -> RowsIn | None:
        """None where no sums are kept."""
        moments = self.head.output.sums() if isinstance(self.head, LinearHead) else None
        if moments is None:
            return None
        rate = {} if self.fading is None else self.fading.asked_for()
        return RowsIn(moments.count, float(moments.weight), None if self.window is None else self.window.size, **rate)

    def features(self, X: Array) -> Array:
        """What the head sees of rows that are asked about: far ones are brought back near those that were seen."""
        return self.network(X if self.bounds is None else self.bounds(X))

    @property
    def seen(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The lowest and the highest number that was to be predicted, for each output; None where nobody knows."""
        loo = self.head.output.loo if isinstance(self.head, LinearHead) else None
        if loo is None or self.bounds is None or not isinstance(self.targets, Numbers):
            return None
        targets = self.targets.of_users(loo).targets
        return targets.min(axis=0), targets.max(axis=0)

    @property
    def luck(self) -> float:
        """How much larger residuals are than those of the rows that chose the network, by its optimism of R2."""
        left = math.nan if self.loo_score is None else 1.0 - self.loo_score
        return math.sqrt(left / (left - self.optimism)) if left > self.optimism > 0 else 1.0

    def ready(self) -> None:
        self.head.ready()

    def settle(self) -> None:
        self.head.settle()

    def lean(self) -> Self:
        return replace(self, network=self.network.lean(), head=self.head.lean(), window=None)

    def judged(self, scored: Rows) -> FittedModel:
        """With the leave-one-out results of its head, where that has some, of these rows."""
        results, head = self.head.judged(self.targets), self.head
        if results is None:
            return self
        if isinstance(self.targets, Numbers):
            head = head.linear("predict_interval").with_local_scale(self.network, scored)
        rows, predicted, score = results
        left_out = LeftOut(rows, predicted)
        return replace(self, head=head, loo_predictions=left_out, loo_score=score - self.optimism, loo_is_stale=False)

    def check_streamed(self) -> None:
        """Whether weights of a source mean what they meant in `fit`."""
        if self.weight_exponent:
            raise ValueError(
                "This model was fitted with weights beyond 1e19 or below 1e-19: add arrays, or use other units."
            )

    def check(self) -> None:
        """An error where the parts of a model that was read do not fit together."""
        self.columns.check()
        self.head.check_shapes(self.network.check_shapes(self.columns.width), self.targets.n_outputs)
        self.targets.check_shapes()
        kinds = (self.halves, Halves), (self.fading, Fading), (self.tested, RunningScore), (self.window, Window)
        for part, kind in (*kinds, (self.linear, LinearPeer)):
            if part is not None and not isinstance(part, kind):
                raise TypeError(f"a {kind.__name__} is not what it is called")
        if type(self.optimism) is not float:
            raise TypeError("optimism is no number")
        for checked in (self.halves, self.fading, self.tested):
            if checked is not None:
                checked.check()
        if self.window is not None:
            self.window.check(self.columns.width)
        if not math.isfinite(self.optimism):
            raise ValueError("an optimism without end")
        for sized in (self.bounds, self.linear):
            if sized is not None:
                sized.check_shapes(self.columns.width)
        if self.importances is not None:
            check_shape(self.importances, self.columns.count)
            if not np.isfinite(self.importances).all():
                raise ValueError("importances are shares")


def stats_of(rows: Rows, seconds: float) -> dict[str, float]:
    """What a fit to these rows took."""
    return {
        "rows": rows.n,
        "passes": rows.passes,
        "seconds": seconds,
        "rows_per_second": rows.n * rows.passes / seconds,
        "peak_megabytes": peak_megabytes(),
    }


F = TypeVar("F", bound=Fitted)


class attribute(property):
    """An attribute of an estimator: this part of `fitted_`. There is none before `fit`, or where the part is None.

    `settled`: what was put off is finished before anybody looks. `missing` says why there may be none.
    """

    def __init__(self, path: str, *, settled: bool = False, missing: str = "this model found none") -> None:
        super().__init__(self._part)
        self.get, self.name, self.settled, self.missing = attrgetter(path), path, settled, missing

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def _part(self, estimator: Fitting) -> Any:
        fitted, value = estimator.fitted_, None
        if fitted is not None:
            if self.settled:
                fitted.settle()
            with contextlib.suppress(AttributeError):  # of a head that has no such thing
                value = self.get(fitted)
        if value is None:
            why = "it is not fitted yet" if fitted is None else self.missing
            raise AttributeError(f"This {type(estimator).__name__} has no {self.name}: {why}.")
        return value


class Fitting(BaseEstimator, Generic[F]):
    """An estimator whose `fitted_` is one value of type F."""

    fitted_: F | None = None
    _takes_gaps: ClassVar[bool] = False

    n_features_in_ = attribute("columns.count")
    feature_names_in_ = attribute("columns.names")

    def __sklearn_is_fitted__(self) -> bool:
        return self.fitted_ is not None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.array_api_support = True
        tags.input_tags.allow_nan = self._takes_gaps
        tags.input_tags.categorical = tags.input_tags.string = self._takes_gaps
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _read(self) -> F:
        """What is fitted at this moment, whatever another thread does to it meanwhile."""
        fitted = self.fitted_
        if fitted is None:
            check_is_fitted(self)  # which says so
        return fitted  # type: ignore[return-value]

    def _settled(self) -> Self:
        """This estimator as it is at this moment, what was put off finished: others may go on changing the original."""
        new, fitted = copy.copy(self), self._read()
        with sharing():
            fitted.settle()
        new.fitted_ = fitted
        return new

    def _refitted(self, make: Callable[[], F], *data: Any) -> Self:
        """Fitted anew to the data."""
        with sharing(*data):
            new = make()
        self.fitted_ = new
        return self

    def _updated(self, step: Callable[[F | None], F], *data: Any) -> Self:
        """Replace what is fitted by what `step` makes of it and the data. If another thread has replaced it meanwhile,
        once more, so that the rows of neither are lost."""
        while True:
            start = self.fitted_
            with sharing(*data):
                new = step(start)
            # no call in between, so that no other thread gets its turn; a lock could be left locked by Ctrl-C
            if self.fitted_ is start:
                self.fitted_ = new
                return self

    def _running(self) -> Running:
        return Running(type(self).__name__, self.device, self.dtype, self.block_rows, self.verbose)
