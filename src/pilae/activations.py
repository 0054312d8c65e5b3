"""Activation functions by name."""

from __future__ import annotations

from collections.abc import Callable

from ._arrays import Array, erf, expit, namespace


def _softplus(x: Array) -> Array:
    xp = namespace(x)
    return xp.maximum(x, xp.zeros_like(x)) + xp.log1p(xp.exp(-xp.abs(x)))


def _relu(x: Array) -> Array:
    return namespace(x).clip(x, min=0.0)


def _relu2(x: Array) -> Array:
    y = _relu(x)
    return y * y


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "sigmoid": expit,
    "tanh": lambda x: namespace(x).tanh(x),
    "relu": _relu,
    "relu2": _relu2,
    "sin": lambda x: namespace(x).sin(x),
    "softplus": _softplus,
    "swish": lambda x: x * expit(x),
    "gelu": lambda x: 0.5 * x * (1.0 + erf(x * 0.5**0.5)),
    "linear": lambda x: x,
}
"""Name to function f of the paper's eq (4). Every function keeps the dtype, library and device of its input."""
