"""Features of images as operations of a graph: patches are gathered from the row, so that every dtype will do."""

import math

import numpy as np

from .._network.branches import TINY, Branch, averages, cells_of, halved
from .._network.patches import PatchLayer, Shape, patches_of
from .graph import Graph


def image_features(graph: Graph, branches: list[Branch], x: str) -> str:
    """What all branches make of images that come as rows of numbers, side by side."""
    return graph.side_by_side([_branch(graph, branch, x) for branch in branches])


def _branch(graph: Graph, branch: Branch, x: str) -> str:
    F = _pooled(graph, branch, x)
    if branch.mirror:
        flipped = _numbered(branch.shape)[:, ::-1].ravel()
        mirrored = _pooled(graph, branch, graph.op("Gather", x, graph.integers(flipped), axis=1))
        F = graph.op("Mul", graph.op("Add", F, mirrored), 0.5)
    return F


def _numbered(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(math.prod(shape)).reshape(shape)


def _pooled(graph: Graph, branch: Branch, x: str) -> str:
    shape = branch.shape
    for layer in branch.layers[:-1]:
        x, shape = _halved(graph, layer, x, shape)
    F = _cells(graph, branch, x, shape)
    F = graph.op("Mul", F, graph.inside(graph.op("Greater", F, TINY)))
    if branch.power != 1:
        F = graph.op("Sqrt", F) if branch.power == 0.5 else graph.op("Pow", F, branch.power)
    return graph.op("Reshape", F, graph.integers([-1, branch.width]))


def _halved(graph: Graph, layer: PatchLayer, x: str, shape: Shape) -> tuple[str, Shape]:
    """The layer's map, as rows of numbers, with half as many positions each way: what the next layer sees."""
    rows, columns = layer.positions(shape)
    each = halved(np.eye(rows * columns)[:, :, None], rows, columns)[..., 0]  # what it makes of every position
    M = each.reshape(rows * columns, -1).T
    H = graph.op("MatMul", M, _responses(graph, layer, x, shape))
    x = graph.op("Reshape", H, graph.integers([-1, len(M) * layer.width]))
    return x, Shape(each.shape[1], each.shape[2], layer.width)


def _cells(graph: Graph, branch: Branch, x: str, shape: Shape) -> str:
    """The last layer's map, pooled over the cells of the grid."""
    H = _responses(graph, branch.layers[-1], x, shape)
    rows, columns = branch.layers[-1].positions(shape)
    if branch.pooling != "max":
        return graph.op("MatMul", averages(rows, columns, branch.grid, branch.pooling), H)
    positions = _numbered((rows, columns))
    cells = [
        graph.op("Gather", H, graph.integers(positions[a:b, c:d].ravel()), axis=1)
        for a, b in cells_of(rows, branch.grid[0])
        for c, d in cells_of(columns, branch.grid[1])
    ]
    return graph.side_by_side([graph.op("ReduceMax", cell, graph.integers([1])) for cell in cells])


def _responses(graph: Graph, layer: PatchLayer, x: str, shape: Shape) -> str:
    index = patches_of(_numbered((1, *shape)), layer.size, layer.stride)
    P = graph.op("Gather", x, graph.integers(index.ravel()), axis=1)
    P = graph.op("Reshape", P, graph.integers([-1, index.shape[1]]))
    if layer.contrast is not None:
        P = graph.op("Sub", P, graph.op("ReduceMean", P, graph.integers([1])))
        squares = graph.op("ReduceMean", graph.op("Mul", P, P), graph.integers([1]))
        P = graph.op("Div", P, graph.op("Sqrt", graph.op("Add", squares, layer.contrast)))
    H = graph.op("Relu", graph.op("Add", graph.op("MatMul", P, layer.weights), layer.bias))
    return graph.op("Reshape", H, graph.integers([-1, index.shape[0], layer.width]))
