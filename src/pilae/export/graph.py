"""Nodes and constants of an ONNX graph that is being made: one of its own, or a part of skl2onnx's."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import to_numpy

FLOAT32, INT64, FLOAT64 = 1, 7, 11
"""ONNX's numbers of these dtypes."""


class Graph:
    """Nodes and constants of a graph that is being made. Values are known by their names."""

    def __init__(self, first: str) -> None:
        self.first = first
        """What the next product is computed in."""
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """One operation, and the name of its result."""
        from onnx import helper

        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=f"node_{len(self.nodes)}", **attributes))
        return name

    def tensor(self, array: np.ndarray) -> str:
        """An array as a constant."""
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """A constant. Float32 weights that are wanted in float64 are stored as they are: half the file, and runtimes
        cast them once, when they load it."""
        array = np.ascontiguousarray(to_numpy(value)).reshape(np.shape(value))
        if array.dtype == np.float32 and dtype == np.float64:
            return self.inside(self.tensor(array))
        return self.tensor(array.astype(dtype))

    def product(self, x: str, weights: Any) -> str:
        """x weights, rounded to float32 in the first product of a float32 graph alone."""
        first, self.first = self.first, "float64"
        if first == "float64":
            return self.op("MatMul", x, self.constant(weights))
        return self.inside(self.op("MatMul", self.outside(x), self.constant(weights, np.float32)))

    def inside(self, x: str) -> str:
        """x in the dtype that the graph computes in."""
        return self.op("Cast", x, to=FLOAT64)

    def outside(self, x: str) -> str:
        return self.op("Cast", x, to=FLOAT32)


class SharedGraph(Graph):
    """The same within a graph that skl2onnx makes."""

    def __init__(self, scope: Any, container: Any) -> None:
        self.first = "float64"
        self.scope, self.container = scope, container

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = self.scope.get_unique_variable_name(kind.lower())
        node = self.scope.get_unique_operator_name(kind)
        self.container.add_node(kind, list(inputs), [name], name=node, **attributes)
        return name

    def tensor(self, array: np.ndarray) -> str:
        from onnx import TensorProto, numpy_helper

        name = self.scope.get_unique_variable_name("constant")
        if array.dtype == object:
            content = [item.encode() for item in array.tolist()]
            self.container.add_initializer(name, TensorProto.STRING, list(array.shape), content)
        else:
            tensor = numpy_helper.from_array(array, name)
            self.container.add_initializer(name, tensor.data_type, list(array.shape), tensor)
        return name
