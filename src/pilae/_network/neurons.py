"""The hidden layer of the output network: anchor rows, pairs of them, or distances to them, as neurons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._arrays import Array, contiguous
from .._base.saveable import check_shape, saveable
from .._data.rows import Rows
from .._engine.activations import neurons
from .._engine.linalg import Gram
from .._engine.scaling import Scaling, reciprocal
from .metric import NO_SHAPE, Shape
from .radial import Neurons, Radial, under, unit_length
from .structure import Plan

LEAST_SPREAD = 0.1
"""A neuron's pre-activation has unit variance; if its output varies less than this, it fires on next to no rows."""


@saveable
@dataclass
class Hidden(Neurons):
    """The SHLN's hidden layer: f((x - mean) / scale W + b), each neuron centred and scaled on its own.

    Where `scaling` is None, that is part of W and b.
    Because nothing of a neuron depends on the others, the first p neurons of a wide layer are the layer of width p.
    With `direct` the scaled input stands before the neurons: direct links to the output.
    """

    scaling: Scaling | None
    weights: Array
    bias: Array
    activation: str
    direct: bool = False

    def responses(self, X: Array, out: np.ndarray | None = None) -> Array:
        return neurons(self.activation, X, self.weights, self.bias, out)

    @property
    def width(self) -> int:
        return int(self.bias.shape[0])

    @property
    def inputs(self) -> int:
        return int(self.weights.shape[0])

    def least_spread(self, weight: float) -> float:
        """Neurons that vary less are not stretched to unit variance (see `standardised`)."""
        return LEAST_SPREAD

    def check_shapes(self, columns: int) -> None:
        """An error where the parts do not fit together behind so many features."""
        p = self.width
        check_shape(self.weights, columns, p)
        check_shape(self.bias, p)
        if self.scaling is not None:
            self.scaling.check_shapes(columns)

    def leading(self, columns: int) -> Hidden:
        """The layer whose first `columns` outputs are this one's."""
        p = columns - self.links
        return Hidden(self.scaling, contiguous(self.weights[:, :p]), self.bias[:p] + 0.0, self.activation, self.direct)


HiddenLayer = Hidden | Radial


def fit_hidden(
    rows: Rows,
    scaling: Scaling | None,
    gram: Gram,
    anchors: Array,
    width: int,
    plan: Plan,
    seed: int,
    shape: Shape = NO_SHAPE,
) -> HiddenLayer:
    """Neurons (G + eps I)^-1 a, or S a under a metric S, scaled to unit variance; or distances to the anchors.

    For neurons="rows" a is an anchor row and the bias is drawn from the seed; for "pairs" it is the difference of two
    anchors, and the neuron's border runs midway between them. `gram` is that of the scaled head input, which has mean
    zero, so every pre-activation is centred already.
    """
    space, xp, metric = rows.space, rows.space.xp, shape.metric
    if plan.neurons == "radial":
        root = None if metric is None else metric.root
        length = (plan.length or 1.0) * (shape.unit or unit_length(anchors, root))
        return Radial(scaling, root, contiguous(under(anchors[:width, :], root)), length, plan.activation, plan.direct)
    rng = np.random.default_rng([seed, 1])
    if plan.neurons == "pairs":
        second = space.asarray(rng.integers(0, np.arange(1, width + 1)))  # of the anchors before it: widths nest
        a, b = anchors[1 : width + 1, :], xp.take(anchors, second, axis=0)
        directions, midway = a - b, 0.5 * (a + b)
    else:
        directions = anchors[:width, :]
    W = gram.pinv_rows(directions, plan.encoder_ridge) if metric is None else metric.directions(directions)
    W = W * reciprocal(xp.sqrt(gram.quadratic(W) / gram.weight))
    bias = -xp.sum(midway.mT * W, axis=0) if plan.neurons == "pairs" else space.asarray(rng.standard_normal(width))
    if scaling is not None and not plan.direct and scaling.is_mild():  # one pass over the input fewer
        W = scaling.inverse[:, None] * W
        bias, scaling = bias - scaling.mean @ W, None
    return Hidden(scaling, space.asarray(W, rows.dtype), space.asarray(bias, rows.dtype), plan.activation, plan.direct)
