"""How much each column moves the outputs: the diagonal of M = E[J J'] (see `gradients`) of the network that stays.

The Jacobian goes back through the head, the layers and the input scaling by the chain rule. Of each row one random
combination of the outputs, with signs + and -, is followed instead of all: its mean square is that of all together.
"""

from itertools import pairwise

import numpy as np

from .._arrays import Array, namespace, to_numpy
from .._data.rows import Rows
from .._engine.activations import SLOPES
from .._engine.pieces import Pieces
from .head import LinearHead
from .network import Network
from .neurons import Hidden, HiddenLayer
from .radial import squared_distances, under

ROWS = 500
"""Rows that gradients are taken at, at most."""


def importances(network: Network, head: LinearHead, scored: Rows, scale: np.ndarray, seed: int) -> np.ndarray | None:
    """One number a column of the rows, all together 1: the mean square of the change of the outputs (in their `scale`)
    when a column changes by its standard deviation. The ramps of a column add up. None where no column matters."""
    rows = scored.first(ROWS)
    X, xp = rows.whole().X, rows.space.xp
    weight = np.ones(rows.n) if rows.weight is None else rows.weight
    signs = np.random.default_rng([seed, 2]).choice([-1.0, 1.0], (rows.n, len(scale))) / scale
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        coef = xp.astype(head.output.coef, xp.float64, copy=False)
        G = rows.space.asarray(signs, "float64") @ coef.mT
        F = network(X)
        G = G if head.hidden is None else _through_hidden(head.hidden, F, G)
        columns = np.zeros(rows.d)
        _back(network, X, G, weight / weight.sum(), columns)
    total = float(columns.sum())
    return columns / total if np.isfinite(total) and total > 0 else None


def _through_hidden(hidden: HiddenLayer, F: Array, G: Array) -> Array:
    """From the gradient in what a hidden layer makes to that in what it sees."""
    xp = namespace(F)
    X = xp.astype(F if hidden.scaling is None else hidden.scaling(F), xp.float64, copy=False)
    links, G = G[:, : hidden.links], G[:, hidden.links :]
    if isinstance(hidden, Hidden):
        W = xp.astype(hidden.weights, xp.float64, copy=False)
        before = X @ W + xp.astype(hidden.bias, xp.float64, copy=False)
        G = (G * SLOPES[hidden.activation](before)) @ W.mT
    else:
        T = under(X, hidden.root)
        G = G * hidden.pulls(squared_distances(T, hidden.anchors))
        G = G @ hidden.anchors - xp.sum(G, axis=1, keepdims=True) * T
        if hidden.root is not None:
            G = G * hidden.root if hidden.root.ndim == 1 else G @ hidden.root.mT
    if hidden.direct:
        G = G + links
    return G if hidden.scaling is None else G * xp.astype(hidden.scaling.inverse, xp.float64, copy=False)


def _back(network: Network, X: Array, G: Array, weight: np.ndarray, columns: np.ndarray) -> None:
    """Add to each column the mean square that the gradient G in the network's features gives it."""
    xp = namespace(X)
    levels = [xp.astype(X if network.scaling is None else network.scaling(X), xp.float64, copy=False)]
    for layer in network.layers:
        levels.append(xp.astype(layer(xp.astype(levels[-1], X.dtype, copy=False)), xp.float64, copy=False))
    seen = levels if network.skip else levels[-1:]
    edges = np.cumsum([0, *(int(level.shape[1]) for level in seen)])
    parts = [G[:, start:stop] for start, stop in pairwise(edges)]
    rest = int(edges[-1])
    for other in network.others:
        width = other.check_shapes(int(X.shape[1]))
        _back(other, X, G[:, rest : rest + width], weight, columns)
        rest += width
    G = parts.pop()
    for depth in range(len(network.layers), 0, -1):
        layer = network.layers[depth - 1]
        W = xp.astype(layer.weights, xp.float64, copy=False)
        G = (G * SLOPES[layer.activation](levels[depth - 1] @ W)) @ W.mT
        if parts:
            G = G + parts.pop()
    z, g = to_numpy(levels[0]), to_numpy(G)
    mean = weight @ z
    sizes = (weight @ g**2) * (weight @ (z - mean) ** 2)
    d = len(columns)
    columns += sizes[:d]
    if isinstance(network.scaling, Pieces):
        np.add.at(columns, to_numpy(network.scaling.source), sizes[d:])
