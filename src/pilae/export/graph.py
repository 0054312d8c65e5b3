"""Nodes and constants of an ONNX graph that is being made: one of its own, or a part of skl2onnx's."""

from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np

from .._arrays import Array, to_numpy

FLOAT32, INT64, STRING, FLOAT64 = 1, 7, 8, 11
"""ONNX's numbers of these dtypes."""


class Output(NamedTuple):
    """A result of a graph."""

    name: str
    value: str
    dtype: int
    columns: list[int]
    """One number, or none where a row has a single result."""


class Graph:
    """Nodes and constants of a graph that is being made. Values are known by their names."""

    def __init__(self, first: str, unique: Callable[[str], str] | None = None, taken: Collection[str] = ()) -> None:
        self.first = first
        """What the next product is computed in."""
        self.taken = taken
        """Names of inputs."""
        self.unique = unique or self._unique
        """From what a value is to a name that nothing else has."""
        self.nodes: list[tuple[str, list[str], str, dict]] = []
        """(kind, inputs, output, attributes) of each."""
        self.constants: dict[str, np.ndarray] = {}

    def _unique(self, kind: str) -> str:
        name = f"{kind}_{len(self.nodes) + len(self.constants)}"
        while name in self.taken:
            name += "_"
        return name

    def op(self, kind: str, *inputs: Array, **attributes) -> str:
        """One operation, and the name of its result. Inputs are names, or numbers: float64 constants."""
        names = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        self.nodes.append((kind, names, self.unique(kind.lower()), attributes))
        return self.nodes[-1][2]

    def tensor(self, array: np.ndarray) -> str:
        """An array as a constant."""
        name = self.unique("constant")
        self.constants[name] = array
        return name

    def constant(self, value: Array, dtype: type = np.float64) -> str:
        """A constant. Float32 weights that are wanted in float64 are stored as they are: half the file, and runtimes
        cast them once, when they load it."""
        array = np.ascontiguousarray(to_numpy(value)).reshape(np.shape(value))
        if array.dtype == np.float32 and dtype == np.float64:
            return self.inside(self.tensor(array))
        return self.tensor(array.astype(dtype))

    def integers(self, values: Array) -> str:
        return self.constant(values, np.int64)

    def product(self, x: str, weights: Array) -> str:
        """x weights, rounded to float32 in the first product of a float32 graph alone."""
        first, self.first = self.first, "float64"
        if first == "float64":
            return self.op("MatMul", x, weights)
        return self.inside(self.op("MatMul", self.outside(x), self.constant(weights, np.float32)))

    def side_by_side(self, parts: list[str]) -> str:
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=1)

    def inside(self, x: str) -> str:
        """x in the dtype that the graph computes in."""
        return self.op("Cast", x, to=FLOAT64)

    def outside(self, x: str) -> str:
        return self.op("Cast", x, to=FLOAT32)
