"""Hidden neurons that answer to a distance: exp(-r / L) and exp(-(r / L)^2)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._arrays import Array, contiguous, matmul, namespace, to_numpy
from .._arrays.buffers import empty
from .._arrays.kernels import pieces
from .._arrays.threads import in_parts
from .._base.saveable import check_shape, saveable
from .._engine.scaling import Scaling

KERNELS = ("laplace", "gauss")

FIXED_SET = 256
"""The unit of length is the median distance between so many anchors."""

AT_THE_ANCHOR = 1e-6
"""At the anchor itself "laplace" has no gradient, and rounding leaves so much of a length as distance."""

FAR = 1e6
"""The square of a distance, in units of the length, beyond which exp says zero."""

NUMBERS = 2**17
"""Distances made at once: a product, and what stays in the cache from step to step."""

AT_ZERO = 1.0 - 1e-13
"""Squares of lengths are taken times this, so that a distance of zero, the difference of large squares, is zero and not
the root of their rounding."""

SINGLE_ROWS = 3.0
"""A neuron is not stretched as if its variance came from fewer rows than this: one row alone would be a column."""


class Neurons:
    """What hidden layers share: the input is scaled, and with `direct` stands before the neurons."""

    scaling: Scaling | None
    direct: bool

    def responses(self, X: Array, out: np.ndarray | None = None) -> Array:
        """Of the neurons to scaled rows; in NumPy into `out` if that is given."""
        raise NotImplementedError

    def __call__(self, X: Array) -> Array:
        if self.scaling is not None:
            X = self.scaling(X)
        if not self.direct:
            return self.responses(X)
        if not isinstance(X, np.ndarray):
            return namespace(X).concat([X, self.responses(X)], axis=1)
        beside = empty((len(X), self.columns), X.dtype)
        beside[:, : self.links] = X
        self.responses(X, beside[:, self.links :])
        return beside

    @property
    def width(self) -> int:
        """Neurons."""
        raise NotImplementedError

    @property
    def inputs(self) -> int:
        """Columns that the neurons see."""
        raise NotImplementedError

    @property
    def links(self) -> int:
        """Columns that come before the neurons."""
        return self.inputs if self.direct else 0

    @property
    def columns(self) -> int:
        return self.width + self.links


@saveable
@dataclass
class Radial(Neurons):
    """The SHLN's hidden layer of distances r = |(x - a) R| to anchors a under a metric R R'.

    "laplace" is exp(-r / L), "gauss" exp(-(r / L)^2). With `direct` the scaled input stands before the neurons.
    """

    scaling: Scaling | None
    root: Array | None
    """R, columns x directions; a vector where R is diagonal, None where it is the identity."""
    anchors: Array
    """a R, one row each, in float64: a distance of zero is a difference of large numbers."""
    length: float
    activation: str
    direct: bool = False

    def responses(self, X: Array, out: np.ndarray | None = None) -> Array:
        xp = namespace(X)
        T = under(xp.astype(X, xp.float64, copy=False), self.root)
        return _responses(T, self.anchors, self.length, self.activation == "gauss", X.dtype, out)

    def pulls(self, r2: Array) -> Array:
        """g of each row and anchor, by their squared distances: the gradient in x R is -g (x - a) R."""
        xp, L = namespace(r2), self.length
        if self.activation == "gauss":
            return xp.exp(-r2 / L**2) * (2.0 / L**2)
        r = xp.sqrt(r2)
        away = r > AT_THE_ANCHOR * L
        return xp.where(away, xp.exp(-r / L) / (L * xp.where(away, r, xp.ones_like(r))), xp.zeros_like(r))

    @property
    def width(self) -> int:
        return int(self.anchors.shape[0])

    @property
    def inputs(self) -> int:
        return int(self.anchors.shape[1] if self.root is None else self.root.shape[0])

    def least_spread(self, weight: float) -> float:
        """Neurons that vary less are not stretched to unit variance (see `standardised`)."""
        return (SINGLE_ROWS / weight) ** 0.5

    def check_shapes(self, columns: int) -> None:
        """An error where the parts do not fit together behind so many features."""
        if self.scaling is not None:
            self.scaling.check_shapes(columns)
        check_shape(self.anchors, self.width, columns if self.root is None else int(self.root.shape[-1]))
        if self.root is not None:
            check_shape(self.root, columns, *self.root.shape[1:])
        if self.activation not in KERNELS or not 0 < self.length < math.inf:
            raise ValueError("no neurons of a distance")

    def leading(self, columns: int) -> Radial:
        """The layer whose first `columns` outputs are this one's."""
        return replace(self, anchors=contiguous(self.anchors[: columns - self.links, :]))


def under(X: Array, root: Array | None) -> Array:
    """X R."""
    if root is None:
        return X
    return X * root if root.ndim == 1 else matmul(X, root)


def unit_length(anchors: Array, root: Array | None) -> float:
    """The median distance between the first anchors: the same for every width."""
    A = to_numpy(under(anchors[: min(FIXED_SET, int(anchors.shape[0])), :], root))
    first, second = np.triu_indices(len(A), 1)
    squares = (A**2).sum(axis=1)
    r2 = squares[first] + squares[second] - 2.0 * (A @ A.T)[first, second]
    middle = float(np.median(r2)) if len(r2) else 0.0
    return middle**0.5 if middle > 0 else 1.0


def squared_distances(T: Array, anchors: Array) -> Array:
    """|t_i - a_j|^2, one row for each t, without differences of all pairs; never below zero."""
    xp = namespace(T)
    r2 = matmul(T, -2.0 * anchors.mT)
    r2 += AT_ZERO * xp.sum(T * T, axis=1, keepdims=True)
    r2 += AT_ZERO * xp.sum(anchors * anchors, axis=1)[None, :]
    return xp.clip(r2, min=0.0)


def _responses(
    T: Array, anchors: Array, length: float, gauss: bool, dtype: Any, out: np.ndarray | None = None
) -> Array:
    xp = namespace(T)
    if not isinstance(T, np.ndarray):
        r2 = squared_distances(T, anchors)
        return xp.astype(xp.exp(-r2 / length**2 if gauss else -xp.sqrt(r2) / length), dtype, copy=False)
    (n, d), unit = T.shape, 1.0 / length**2
    # |t|^2 - 2 t'a + |a|^2 as one product, in units of the length
    left, right = np.ones((n, d + 2)), np.ones((d + 2, len(anchors)))
    left[:, :d], right[:d, :] = T, -2.0 * unit * anchors.T
    left[:, d], right[d + 1, :] = (AT_ZERO * unit * np.einsum("ij,ij->i", A, A) for A in (T, anchors))
    H = empty((n, len(anchors)), dtype) if out is None else out

    def rows(part: slice) -> None:
        for few in pieces(H[part], NUMBERS):
            r2 = left[part][few] @ right
            h = H[part][few]
            h[...] = np.clip(r2, 0.0, FAR, out=r2)  # no digits are lost in a distance that is one
            if not gauss:
                np.sqrt(h, out=h)
            np.negative(h, out=h)
            np.exp(h, out=h)

    in_parts(rows, n, 2.0 * n * len(anchors) * (d + 20))
    return H
