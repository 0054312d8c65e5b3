"""Activation functions by name."""

import math
from collections.abc import Callable

import numpy as np

from .._arrays import Array, expit, namespace
from .._arrays.buffers import empty
from .._arrays.kernels import affine, erf, overwritten_by_expit, overwritten_by_relu, overwritten_by_tanh, pieces
from .._arrays.threads import in_parts


def _softplus(x: Array) -> Array:
    xp = namespace(x)
    return xp.maximum(x, xp.zeros_like(x)) + xp.log1p(xp.exp(-xp.abs(x)))


def _relu2(x: Array) -> Array:
    y = overwritten_by_relu(x)
    y *= y
    return y


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "sigmoid": overwritten_by_expit,
    "tanh": overwritten_by_tanh,
    "relu": overwritten_by_relu,
    "relu2": _relu2,
    "sin": lambda x: namespace(x).sin(x),
    "softplus": _softplus,
    "swish": lambda x: x * expit(x),
    "gelu": lambda x: 0.5 * x * (1.0 + erf(x * 0.5**0.5)),
    "linear": lambda x: x,
}
"""Name to function f of the paper's eq (4). Every function keeps the dtype, library and device of its input, and may
write over it: see `activate`."""


def _sigmoid_slope(x: Array) -> Array:
    s = expit(x)
    return s * (1.0 - s)


def _swish_slope(x: Array) -> Array:
    s = expit(x)
    return s * (1.0 + x * (1.0 - s))


def _gelu_slope(x: Array) -> Array:
    density = namespace(x).exp(-0.5 * x * x) * (0.5 / math.pi) ** 0.5
    return 0.5 * (1.0 + erf(x * 0.5**0.5)) + x * density


def _positive(x: Array) -> Array:
    xp = namespace(x)
    return xp.astype(x > 0, x.dtype)


SLOPES: dict[str, Callable[[Array], Array]] = {
    "sigmoid": _sigmoid_slope,
    "tanh": lambda x: 1.0 - namespace(x).tanh(x) ** 2,
    "relu": _positive,
    "relu2": lambda x: 2.0 * x * _positive(x),
    "sin": lambda x: namespace(x).cos(x),
    "softplus": expit,
    "swish": _swish_slope,
    "gelu": _gelu_slope,
    "linear": lambda x: namespace(x).ones_like(x),
}
"""Name to derivative f'."""


def activate(name: str, X: Array, bias: Array | None = None) -> Array:
    """f(X + bias). X is a product that nobody else holds, and is written over where the library can."""
    f = ACTIVATIONS[name]
    if not isinstance(X, np.ndarray):
        if bias is not None:
            X += bias
        return f(X)
    for part in pieces(X):
        x = X[part]
        if bias is not None:
            x += bias
        y = f(x)
        if y is not x:
            x[...] = y
    return X


def neurons(name: str, X: Array, weights: Array, bias: Array | None = None, out: np.ndarray | None = None) -> Array:
    """f(X W + bias): in NumPy a large one in several threads, into `out` if that is given."""
    if not isinstance(X, np.ndarray):
        return activate(name, X @ weights) if bias is None else activate(name, affine(X, weights, bias))
    H = empty((X.shape[0], weights.shape[1]), np.result_type(X, weights)) if out is None else out

    def rows(part: slice) -> None:
        activate(name, np.matmul(X[part], weights, out=H[part]), bias)

    in_parts(rows, len(H), 2.0 * X.shape[0] * X.shape[1] * weights.shape[1])
    return H
