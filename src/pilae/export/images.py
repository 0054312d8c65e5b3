"""Features of images as operations of a graph: patches are gathered from the row, so that every dtype will do."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._network.patches import TINY, Branch, PatchLayer, Shape, averages, cells_of, halved, patches_of
from .graph import Graph


def image_features(graph: Graph, branches: list[Branch], x: str) -> str:
    """What all branches make of images that come as rows of numbers, side by side."""
    parts = [_branch(graph, branch, x) for branch in branches]
    return parts[0] if len(parts) == 1 else graph.op("Concat", *parts, axis=1)


def _branch(graph: Graph, branch: Branch, x: str) -> str:
    h, w, c = branch.shape

    def pooled(x: str) -> str:
        shape = branch.shape
        for layer in branch.layers[:-1]:
            rows, columns = layer.positions(shape)
            H = responses(layer, x, shape)
            each = halved(np.eye(rows * columns)[:, :, None], rows, columns)[..., 0]  # what it makes of every position
            M = each.reshape(rows * columns, -1).T
            x = graph.op("Reshape", graph.op("MatMul", graph.constant(M), H), numbers([-1, len(M) * layer.width]))
            shape = Shape(each.shape[1], each.shape[2], layer.width)
        layer = branch.layers[-1]
        H = responses(layer, x, shape)
        rows, columns = layer.positions(shape)
        if branch.pooling == "max":
            places = np.arange(rows * columns).reshape(rows, columns)
            cells = [
                graph.op("ReduceMax", graph.op("Gather", H, numbers(places[a:b, d:e].ravel()), axis=1), numbers([1]))
                for a, b in cells_of(rows, branch.grid[0])
                for d, e in cells_of(columns, branch.grid[1])
            ]
            F = cells[0] if len(cells) == 1 else graph.op("Concat", *cells, axis=1)
        else:
            F = graph.op("MatMul", graph.constant(averages(rows, columns, branch.grid)), H)
        F = graph.op("Mul", F, graph.inside(graph.op("Greater", F, graph.constant(TINY))))
        if branch.power != 1:
            F = graph.op("Sqrt", F) if branch.power == 0.5 else graph.op("Pow", F, graph.constant(branch.power))
        return graph.op("Reshape", F, numbers([-1, branch.width]))

    def numbers(values: Any) -> str:
        return graph.constant(np.asarray(values, np.int64), np.int64)

    def responses(layer: PatchLayer, x: str, shape: Shape) -> str:
        places = np.arange(shape[0] * shape[1] * shape[2]).reshape(1, *shape)
        index = patches_of(places, layer.size, layer.stride)
        P = graph.op("Gather", x, numbers(index.ravel()), axis=1)
        P = graph.op("Reshape", P, numbers([-1, index.shape[1]]))
        if layer.contrast is not None:
            P = graph.op("Sub", P, graph.op("ReduceMean", P, numbers([1])))
            squares = graph.op("ReduceMean", graph.op("Mul", P, P), numbers([1]))
            P = graph.op("Div", P, graph.op("Sqrt", graph.op("Add", squares, graph.constant(layer.contrast))))
        H = graph.op("Add", graph.op("MatMul", P, graph.constant(layer.weights)), graph.constant(layer.bias))
        return graph.op("Reshape", graph.op("Relu", H), numbers([-1, index.shape[0], layer.width]))

    F = pooled(x)
    if branch.mirror:
        flipped = np.arange(h * w * c).reshape(h, w, c)[:, ::-1].ravel()
        other = pooled(graph.op("Gather", x, numbers(flipped), axis=1))
        F = graph.op("Mul", graph.op("Add", F, other), graph.constant(0.5))
    return F
