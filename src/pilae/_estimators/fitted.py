"""What `fit` found, as one frozen value, and the attributes of an estimator that read it.

An estimator holds its parameters and one value more, `fitted_`. Whoever predicts reads it once, at the start, and an
update replaces it in one step: a thread sees one model or the next, never half of each, and an error or Ctrl-C at any
moment leaves the estimator as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._arrays.threads import sharing
from .._base.saveable import saveable
from .._data.check import Columns
from .._data.opening import Running
from .._data.targets import Targets
from .._network.head import Head
from .._network.network import Network


@saveable
class LeftOut(NamedTuple):
    """Rows of the training data, and what is predicted for each by an output layer that has not seen it."""

    rows: np.ndarray
    predicted: np.ndarray


@saveable
@dataclass(frozen=True, eq=False)
class FittedLayers:
    """Autoencoder layers."""

    columns: Columns
    network: Network
    passes: int
    reconstruction_error: float | None = None

    @property
    def features_out(self) -> int:
        return self.network.layers[-1].width if self.network.layers else self.columns.count

    @property
    def widest(self) -> int:
        return max([self.columns.count, *(layer.width for layer in self.network.layers)])

    def ready(self) -> None:
        """Nothing was put off."""

    def lean(self) -> FittedLayers:
        return self


@saveable
@dataclass(frozen=True, eq=False)
class FittedModel:
    """A whole network: layers, head, and what its outputs mean."""

    columns: Columns
    network: Network
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
    row_weights: np.ndarray | None = None
    """What a robust fit gave each row."""

    @property
    def features_out(self) -> int:
        return self.network.layers[-1].width if self.network.layers else self.columns.count

    @cached_property
    def widest(self) -> int:
        return max([self.columns.count, self.head.width or 0, *(layer.width for layer in self.network.layers)])

    def ready(self) -> None:
        """Solve what was put off."""
        self.head.ready()

    def lean(self) -> FittedModel:
        """What predicting needs, without what only training does."""
        layers = [replace(layer, statistics=None) for layer in self.network.layers]
        return replace(self, network=replace(self.network, layers=layers), head=self.head.lean())

    def judged(self) -> FittedModel:
        """With the leave-one-out results of its head, where that has some."""
        output = getattr(self.head, "output", None)
        if output is None or output.loo is None:
            return self
        predicted, score = self.targets.judged(output.loo)
        left_out = LeftOut(output.scored_rows, predicted)
        return replace(self, loo_predictions=left_out, loo_score=score, loo_is_stale=False)

    def check_streamed(self) -> None:
        """Whether weights of a source mean what they meant in `fit`."""
        if self.weight_exponent:
            raise ValueError(
                "This model was fitted with weights beyond 1e19 or below 1e-19: add arrays, or use other units."
            )

    def check(self) -> None:
        """An error where the parts of a model that was read do not fit together."""
        self.head.check_shapes(self.network.check_shapes(self.columns.count), self.targets.n_outputs)


F = TypeVar("F")


def attribute(path: str, doc: str = "") -> Any:
    """An attribute of an estimator: this part of `fitted_`. There is none before `fit`, or where the part is None."""
    get = attrgetter(path)

    def read(self: Fitting) -> Any:
        value = None if self.fitted_ is None else get(self.fitted_)
        if value is None:
            name = type(self).__name__
            raise AttributeError(
                f"This {name} has no {path}: " + ("fit it first." if self.fitted_ is None else "none.")
            )
        return value

    return property(read, doc=doc)


class Fitting(BaseEstimator, Generic[F]):
    """An estimator whose `fitted_` is one value of type F."""

    fitted_: F | None = None

    n_features_in_ = attribute("columns.count")
    feature_names_in_ = attribute("columns.names")

    def __sklearn_is_fitted__(self) -> bool:
        return self.fitted_ is not None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.array_api_support = True
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _read(self) -> F:
        """What is fitted at this moment, whatever another thread does to it meanwhile."""
        fitted = self.fitted_
        if fitted is None:
            check_is_fitted(self)  # which says so
        return fitted  # type: ignore[return-value]

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
