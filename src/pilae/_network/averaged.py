"""Several networks of the same rows, whose outputs are averaged: what one of them makes of a row by chance is halved.

Each has features and an output layer of its own, so all that is a sum over rows stays one, network by network. The
joint feature map is that of the first with the maps of the others beside it (`Network.others`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np

from .._arrays import Array, dtype_name, space_of, to_numpy
from .._base.saveable import check_shape, saveable
from .._data.rows import Rows
from .._engine.intervals import Quantile
from .._engine.scores import Scored
from .head import LinearHead
from .network import Network


@saveable
@dataclass
class AveragedHead(LinearHead):
    """The mean of the outputs of several output layers. Itself it is the first of them, and its leave-one-out results,
    probabilities and intervals are those of the mean."""

    others: tuple[LinearHead, ...] = ()
    columns: tuple[int, ...] = ()
    """How many of the features each sees, one after another; the first's come first."""

    @property
    def widest(self) -> int:
        return max(self.width, *(other.widest for other in self.others))

    def parts(self, F: Array) -> list[Array]:
        """What each sees of the features."""
        return [F[:, start:stop] for start, stop in pairwise(accumulate(self.columns, initial=0))]

    def features(self, F: Array) -> Array:
        """What the output layer of the first sees."""
        return super().features(F[:, : self.columns[0]])

    def outputs(self, F: Array) -> Array:
        return self._averaged(self.features(F), F)

    def _averaged(self, features: Array, F: Array) -> Array:
        """`features` are those of the first for F."""
        total = self.answers(features)
        for other, part in zip(self.others, self.parts(F)[1:], strict=True):
            total = total + other.outputs(part)
        return total / len(self.columns)

    def intervals(self, F: Array, quantile: Quantile) -> tuple[Array, Array]:
        features, scale = self.features(F), self.output.local_scale
        centre = self._averaged(features, F)
        half = quantile(to_numpy(centre)) * (1.0 if scale is None else scale(features))
        return centre, space_of(centre).asarray(half, dtype_name(centre))

    def with_local_scale(self, network: Callable[[Array], Array], scored: Rows) -> LinearHead:
        first = self.columns[0]
        return super().with_local_scale(lambda X: network(X)[:, :first], scored)

    def ready(self) -> None:
        super().ready()
        for other in self.others:
            other.ready()

    def settle(self) -> None:
        super().settle()
        for other in self.others:
            other.settle()

    def lean(self) -> LinearHead:
        return replace(super().lean(), others=tuple(other.lean() for other in self.others))  # type: ignore[call-arg]

    def check_shapes(self, columns: int, n_outputs: int) -> None:
        if not isinstance(self.others, tuple) or not all(type(other) is LinearHead for other in self.others):
            raise TypeError("what is averaged are no output layers")
        check_shape(np.empty(columns), sum(self.columns))
        for head, seen in zip((self.first, *self.others), self.columns, strict=True):
            head.check_shapes(seen, n_outputs)

    @property
    def first(self) -> LinearHead:
        """The first alone."""
        return LinearHead(self.hidden, self.output, self.calibration)


def side_by_side(networks: Sequence[Network], heads: Sequence[LinearHead], columns: int) -> tuple[Network, LinearHead]:
    """The networks as one, of rows of so many columns."""
    (first, *others), head = networks, heads[0]
    seen = tuple(network.check_shapes(columns) for network in networks)
    averaged = AveragedHead(head.hidden, head.output, head.calibration, tuple(heads[1:]), seen)
    return replace(first, others=(*first.others, *others)), averaged


def taken_apart(network: Network, head: LinearHead) -> list[tuple[Network, LinearHead]]:
    """The networks that were put side by side, each with its output layer; one alone is itself."""
    if not isinstance(head, AveragedHead):
        return [(network, head)]
    own = len(network.others) - len(head.others)  # stacks beside the layers of the first are its own
    first = replace(network, others=network.others[:own])
    return [(first, head.first), *zip(network.others[own:], head.others, strict=True)]


def mean_of(scores: Sequence[Scored]) -> Scored:
    """Leave-one-out results of the mean of the outputs, on rows that choose for each."""
    choosing = np.all([each.chooser > 0 for each in scores], axis=0)
    outputs = np.mean([each.outputs for each in scores], axis=0)
    return scores[0]._replace(outputs=outputs, chooser=np.where(choosing, scores[0].chooser, 0.0))
