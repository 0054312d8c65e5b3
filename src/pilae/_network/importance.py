"""How much each column moves the outputs: the diagonal of M = E[J J'] (see `gradients`) of the network that stays.

The Jacobian goes back through the head, the layers and the input scaling by the chain rule. Of each row one random
combination of the outputs, with signs + and -, is followed instead of all: its mean square is that of all together.
"""

from itertools import pairwise

import numpy as np

from .._arrays import Array, namespace, to_numpy
from .._data.rows import Rows
from .._engine.activations import SLOPES
from .averaged import AveragedHead
from .head import LinearHead
from .network import Network
from .neurons import Hidden, HiddenLayer
from .radial import squared_distances, under

ROWS = 500
"""Rows that gradients are taken at, at most."""

MOST_NUMBERS = 20_000_000
"""Of these gradients."""


def importances(network: Network, head: LinearHead, scored: Rows, scale: np.ndarray, seed: int) -> np.ndarray | None:
    """One number a column of the rows, all together 1: the mean square of the change of the outputs (in their `scale`)
    when a column changes by its standard deviation. None where no column matters."""
    rows = scored.first(max(1, min(ROWS, MOST_NUMBERS // scored.d)))
    X = rows.whole().X
    weight = np.ones(rows.n) if rows.weight is None else rows.weight
    signs = np.random.default_rng([seed, 2]).choice([-1.0, 1.0], (rows.n, len(scale))) / scale
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        G = _through_head(head, network(X), rows.space.asarray(signs, "float64"))
        share, x = weight / weight.sum(), to_numpy(X).astype(np.float64)
        columns = (share @ _back(network, X, G) ** 2) * (share @ (x - share @ x) ** 2)
    total = float(columns.sum())
    return columns / total if np.isfinite(total) and total > 0 else None


def _through_head(head: LinearHead, F: Array, G: Array) -> Array:
    """From the gradient in the outputs to that in the features F."""
    xp = namespace(F)
    if isinstance(head, AveragedHead):
        each = zip((head.first, *head.others), head.parts(F), strict=True)
        return xp.concat([_through_head(*one, G) for one in each], axis=1) / len(head.columns)
    G = G @ xp.astype(head.output.coef, xp.float64, copy=False).mT
    return G if head.hidden is None else _through_hidden(head.hidden, F, G)


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


def _back(network: Network, X: Array, G: Array) -> np.ndarray:
    """From the gradient in the network's features to that in the rows."""
    xp = namespace(X)
    levels = [xp.astype(X if network.scaling is None else network.scaling(X), xp.float64, copy=False)]
    for layer in network.layers:
        levels.append(xp.astype(layer(xp.astype(levels[-1], X.dtype, copy=False)), xp.float64, copy=False))
    seen = levels if network.skip else levels[-1:]
    edges = np.cumsum([0, *(int(level.shape[1]) for level in seen)])
    parts, rest = [G[:, start:stop] for start, stop in pairwise(edges)], int(edges[-1])
    total = np.zeros((int(X.shape[0]), int(X.shape[1])))
    for other in network.others:
        width = other.check_shapes(int(X.shape[1]))
        total += _back(other, X, G[:, rest : rest + width])
        rest += width
    G = parts.pop()
    for depth in range(len(network.layers), 0, -1):
        layer = network.layers[depth - 1]
        W = xp.astype(layer.weights, xp.float64, copy=False)
        G = (G * SLOPES[layer.activation](levels[depth - 1] @ W)) @ W.mT
        if parts:
            G = G + parts.pop()
    g = to_numpy(G)
    return total + (g if network.scaling is None else network.scaling.gradient(to_numpy(X).astype(np.float64), g))
