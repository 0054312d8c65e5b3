"""Branches of image features: patch layers, pooled over a grid; and images in blocks."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._arrays import NUMPY, Array, Space, dtype_name, namespace, space_of
from .._arrays.threads import in_parts, sharing
from .._base.saveable import check_shape, saveable
from .._data.check import check_pixels
from .._data.rows import BLOCK_BYTES
from .patches import PatchLayer, Shape, shape_of

POOLING = ("smooth", "average", "max")

CACHE_BYTES = 2**23
"""That responses of images may take which NumPy works on in one go, for each thread."""

TINY = 1e-6
"""Pooled responses below this are rounding: a column that is zero but for them must not be standardised."""


@saveable
@dataclass
class Branch:
    """Patch layers, one to three, then pooling over a grid."""

    layers: list[PatchLayer]
    shape: Shape
    grid: tuple[int, int]
    pooling: str
    power: float
    mirror: bool

    @property
    def width(self) -> int:
        return self.grid[0] * self.grid[1] * self.layers[-1].width

    def check(self, shape: Shape) -> None:
        """An error where what was read from a file is no branch for images of this shape."""
        height, width, _ = shape
        if not (1 <= self.grid[0] <= height and 1 <= self.grid[1] <= width):
            raise ValueError(f"a grid of {self.grid} on an image of {shape}")
        if self.pooling not in POOLING:
            raise ValueError(f"pooling {self.pooling!r}")
        for layer in self.layers:
            check_shape(layer.weights, math.prod(layer.size) * layer.channels, layer.width)
            check_shape(layer.bias, layer.width)

    def maps(self, X: Array) -> Array:
        """What the last layer sees of images: themselves, or the halved maps of the layer below."""
        for layer in self.layers[:-1]:
            X = maps_of(layer, X)
        return X

    def __call__(self, X: Array) -> Array:
        """Features of images n x h x w x c."""
        F = self._pooled(X)
        if self.mirror:
            F = (F + self._pooled(namespace(X).flip(X, axis=2))) / 2.0
        return F

    def _pooled(self, X: Array) -> Array:
        maps, layer, xp = self.maps(X), self.layers[-1], namespace(X)
        rows, columns = layer.positions(shape_of(maps))
        by_pairs = self.pooling != "max" and layer.has_pairs
        H = layer.clipped(maps) if by_pairs else layer(maps)
        H = xp.reshape(H, (int(X.shape[0]), rows, columns, -1))
        if self.pooling == "smooth":
            F = smoothed(H, self.grid)
        else:
            pool = xp.max if self.pooling == "max" else xp.mean
            cells = [
                pool(H[:, a:b, c:d, :], axis=(1, 2))
                for a, b in cells_of(rows, self.grid[0])
                for c, d in cells_of(columns, self.grid[1])
            ]
            F = xp.stack(cells, axis=1)
        tiny = TINY
        if by_pairs:  # what is added back was rounded relative to itself
            F, tiny = layer.unclipped(F), TINY * max(1.0, float(np.max(np.abs(layer.bias))))
        F *= xp.astype(tiny < F, F.dtype)
        F = xp.sqrt(F) if self.power == 0.5 else F**self.power
        return xp.reshape(F, (int(F.shape[0]), -1))


def maps_of(layer: PatchLayer, X: Array) -> Array:
    """What the next layer sees of images, or of the maps below."""
    return halved(layer(X), *layer.positions(shape_of(X)))


def halved(H: Array, rows: int, columns: int) -> Array:
    """Averages of two by two positions, n x rows/2 x columns/2 x p; the last of an odd number is left out."""
    xp = namespace(H)
    H = xp.reshape(H, (int(H.shape[0]), rows, columns, -1))
    if rows < 2 or columns < 2:
        return H
    r, c = 2 * (rows // 2), 2 * (columns // 2)
    return (H[:, 0:r:2, 0:c:2, :] + H[:, 1:r:2, 0:c:2, :] + H[:, 0:r:2, 1:c:2, :] + H[:, 1:r:2, 1:c:2, :]) / 4.0


def cells_of(positions: int, cells: int) -> list[tuple[int, int]]:
    """Where each cell begins and ends: all positions are covered, by as equal cells as can be."""
    return [((k * positions) // cells, -((-(k + 1) * positions) // cells)) for k in range(cells)]


def shares(positions: int, cells: int, pooling: str) -> np.ndarray:
    """The matrix that takes positions along one side to averages of cells. Those of smooth pooling reach to the middles
    of their neighbours, and positions there count less: what an average over copies of the image, each moved a little
    further, comes to."""
    M = np.zeros((cells, positions))
    for k, (a, b) in enumerate(cells_of(positions, cells)):
        M[k, a:b] = 1.0
    if pooling == "smooth":
        middles = (np.arange(cells) + 0.5) * positions / cells
        apart = np.abs(np.arange(positions) + 0.5 - middles[:, None])
        M = np.maximum(0.0, 1.0 - apart * cells / positions)
    return M / np.sum(M, axis=1, keepdims=True)


def averages(rows: int, columns: int, grid: tuple[int, int], pooling: str) -> np.ndarray:
    """The matrix that takes positions to cell averages."""
    return np.kron(shares(rows, grid[0], pooling), shares(columns, grid[1], pooling))


@functools.lru_cache(maxsize=32)
def _averages_there(space: Space, dtype: str, rows: int, columns: int, grid: tuple[int, int]) -> Array:
    """The matrix of smooth cells, brought to a device once and not for every block of images."""
    return space.asarray(averages(rows, columns, grid, "smooth"), dtype)


def smoothed(H: Array, grid: tuple[int, int]) -> Array:
    """Averages of responses n x rows x columns x p over smooth cells, n x cells x p."""
    space, (n, rows, columns, p) = space_of(H), (int(size) for size in H.shape)
    if space != NUMPY:  # elsewhere a product with a thin matrix is mostly reading, and best done once
        return space.xp.matmul(
            _averages_there(space, dtype_name(H), rows, columns, grid), space.xp.reshape(H, (n, -1, p))
        )
    down, across = (
        space.asarray(shares(positions, cells, "smooth"), dtype_name(H))
        for positions, cells in zip((rows, columns), grid, strict=True)
    )
    F = space.xp.matmul(down, space.xp.reshape(H, (n, rows, columns * p)))
    F = space.xp.matmul(across, space.xp.reshape(F, (n, grid[0], columns, p)))
    return space.xp.reshape(F, (n, grid[0] * grid[1], p))


class Images:
    """Rows of numbers as images, made float where they are wanted, a block at a time."""

    def __init__(self, X: Array, shape: Shape, space: Space, dtype: str) -> None:
        self.X, self.image, self.space, self.dtype_name = X, shape, space, dtype
        self.shape = (int(X.shape[0]), *shape)

    def __getitem__(self, part: tuple) -> Array:
        X = self.X[part[0], :]
        check_pixels(X, self.dtype_name)
        X = self.space.asarray(X, self.dtype_name)
        return self.space.xp.reshape(X, (int(X.shape[0]), *self.image))


def features_of_images(branches: list[Branch], images: Array | Images, block_rows: int | str, space: Space) -> Array:
    """Features of all branches, one beside the other."""

    def features(X: Array) -> Array:
        parts = [branch(X) for branch in branches]
        return parts[0] if len(parts) == 1 else space.xp.concat(parts, axis=1)

    return blockwise(features, images, [layer for branch in branches for layer in branch.layers], space, block_rows)


def blockwise(
    f: Callable[[Array], Array], images: Array | Images, layers: list[PatchLayer], space: Space, block_rows: int | str
) -> Array:
    """f of the images, some at a time: as many as keep patches and responses of every layer within some megabytes, or
    in NumPy within a cache, by several threads."""
    n, few, many = int(images.shape[0]), *_steps(images, layers, space, block_rows)
    out: Array = None
    for start in range(0, n, many):
        block = images[start : min(start + many, n), ...]
        with sharing(block):
            part = f(block[: min(few, n - start), ...])
            if out is None:  # written in place: no second copy of the result
                out = space.xp.empty((n, *part.shape[1:]), dtype=part.dtype, device=space.device)
            out[start : min(start + few, n), ...] = part
            _fill(out[start : min(start + many, n), ...], f, block, few, layers)
    return out


def _steps(images: Array | Images, layers: list[PatchLayer], space: Space, block_rows: int | str) -> tuple[int, int]:
    """How many images are worked on in one go, and how many are made float at once."""
    _, h, w, c = (int(size) for size in images.shape)
    widest = max(max(layer.width, layer.size[0] * layer.size[1] * layer.channels) for layer in layers)
    few = max(1, space.budget(BLOCK_BYTES) // 4 // (4 * h * w * widest))
    if space.library != "numpy":
        few = few if block_rows == "auto" else int(block_rows)
        return few, few
    many = max(1, BLOCK_BYTES // 4 // (4 * h * w * c)) if block_rows == "auto" else int(block_rows)
    return min(many, max(1, CACHE_BYTES // (4 * h * w * widest))), many


def _fill(out: Array, f: Callable[[Array], Array], block: Array, few: int, layers: list[PatchLayer]) -> None:
    """f of the images after the first few."""
    n, h, w, _ = (int(size) for size in block.shape)

    def fill(part: slice) -> None:
        for start in range(few + part.start, few + part.stop, few):
            rows = slice(start, min(start + few, few + part.stop))
            out[rows, ...] = f(block[rows, ...])

    work = 2.0 * n * h * w * sum(int(layer.weights.shape[0]) * layer.width for layer in layers)
    if n > few:
        in_parts(fill, n - few, work)
