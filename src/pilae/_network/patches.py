r"""Patch layers: pseudoinverse autoencoders on patches of images, pooled over a grid.

A patch layer is the layer of section III.A with patches for rows: its encoder (X'X + eps I)^-1 A' comes from the same
`Moments`, A being patches of the training images. A filter's responses over an image are cut at a threshold, both signs
apart, and averaged over the cells of a grid; nothing of size images x positions x filters is ever held.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array, Space, contiguous, dtype_name, matmul, namespace, space_of, take_rows, to_numpy
from .._arrays.threads import sharing
from .._base.saveable import saveable
from .._data.check import check_pixels
from .._data.keys import row_keys
from .._data.rows import BLOCK_BYTES
from .._engine.activations import neurons
from .._engine.linalg import PrimalGram
from .._engine.moments import Moments
from .layer import decoder_with_bias

PATCHES = 100_000
"""Patches that a layer is fitted on."""

DECODED = 20_000
"""Patches that a decoder is solved on."""

LEAST_CONTRAST = 1e-8
"""With none at all a flat patch would be divided by zero."""

FLAT = 1e-3
"""A patch whose square is below this fraction of the mean square says nothing, and does not become a filter."""

TINY = 1e-6
"""Pooled responses below this are rounding: a column that is zero but for them must not be standardised."""

DECODER_RIDGE = 1e-3


class Stage(NamedTuple):
    """How to build a patch layer."""

    patch: int
    filters: int
    encoder_ridge: float
    contrast: float | None


@saveable
class Shape(NamedTuple):
    """What an image is: rows, columns and channels of numbers."""

    height: int
    width: int
    channels: int


@saveable
@dataclass
class PatchLayer:
    """A fitted autoencoder of patches: relu(+-(normalised patch . filter) - threshold).

    Attributes
    ----------
    weights, bias : arrays d x p and p
        Filters, both signs where both are used, and what is added to their responses.
    decoder, decoder_bias : arrays p x d and d
        From responses back to the normalised patch.
    reconstruction_error : float
        Of that decoder, relative to the variance of the normalised patches, on patches it was solved on.
    """

    size: tuple[int, int]
    channels: int
    stride: int
    contrast: float | None
    """Added to the variance of a patch before it is divided by its root; None: patches are taken as they are."""
    weights: Array
    bias: Array
    decoder: Array = None
    decoder_bias: Array = None
    reconstruction_error: float = float("nan")
    seconds: float = 0.0

    @property
    def width(self) -> int:
        return int(self.weights.shape[1])

    def positions(self, shape: Shape) -> tuple[int, int]:
        """Rows and columns of places a patch can have in an image."""
        return (shape[0] - self.size[0]) // self.stride + 1, (shape[1] - self.size[1]) // self.stride + 1

    def __call__(self, X: Array) -> Array:
        """Responses at every position, n x positions x p, of images n x h x w x c."""
        n = int(X.shape[0])
        P, _ = normalised(patches_of(X, self.size, self.stride), self.contrast)
        H = neurons("relu", P, self.weights, self.bias)
        return namespace(H).reshape(H, (n, -1, self.width))

    def rebuild(self, X: Array) -> Array:
        """Images from the responses to their patches: each patch is decoded, and overlapping ones are averaged."""
        xp, device = space_of(X)
        n, h, w, c = (int(size) for size in X.shape)
        P, scales = normalised(patches_of(X, self.size, self.stride), self.contrast)
        back = matmul(neurons("relu", P, self.weights, self.bias), self.decoder) + self.decoder_bias
        if scales is not None:
            mean, root = scales
            back = back * root + mean
        (a, b), s = self.size, self.stride
        rows, columns = self.positions(Shape(h, w, c))
        back = xp.reshape(back, (n, rows, columns, a, b, c))
        total = xp.zeros((n, h, w, c), dtype=back.dtype, device=device)
        count = xp.zeros((1, h, w, 1), dtype=back.dtype, device=device)
        for i in range(a):
            for j in range(b):
                at = slice(i, i + s * (rows - 1) + 1, s), slice(j, j + s * (columns - 1) + 1, s)
                total[:, at[0], at[1], :] += back[:, :, :, i, j, :]
                count[:, at[0], at[1], :] += 1.0
        return total / xp.where(count > 0, count, xp.ones_like(count))


def patches_of(X: Array, size: tuple[int, int], stride: int = 1) -> Array:
    """All patches of images n x h x w x c as rows, by image, then down, then across: a copy."""
    (a, b), (n, h, w, c) = size, X.shape
    rows, columns = (h - a) // stride + 1, (w - b) // stride + 1
    if isinstance(X, np.ndarray):
        views = np.lib.stride_tricks.sliding_window_view(X, (a, b), axis=(1, 2))[:, ::stride, ::stride]
        return np.array(views.transpose(0, 1, 2, 4, 5, 3), order="C").reshape(-1, a * b * c)
    xp = namespace(X)
    down, across = stride * (rows - 1) + 1, stride * (columns - 1) + 1
    parts = [X[:, i : i + down : stride, j : j + across : stride, :] for i in range(a) for j in range(b)]
    return xp.reshape(xp.stack(parts, axis=3), (n * rows * columns, a * b * c))


def normalised(P: Array, contrast: float | None) -> tuple[Array, tuple[Array, Array] | None]:
    """Local contrast normalisation of patches, which may be written over: to mean zero and about unit variance.

    Also what undoes it, (mean, root), where there is anything to undo.
    """
    if contrast is None:
        return P, None
    xp, d = namespace(P), int(P.shape[1])
    mean = xp.mean(P, axis=1, keepdims=True)
    P -= mean
    squares = (
        np.einsum("ij,ij->i", P, P)[:, None] if isinstance(P, np.ndarray) else xp.sum(P * P, axis=1, keepdims=True)
    )
    root = xp.sqrt(squares / d + contrast)
    P /= root
    return P, (mean, root)


def fit_patches(
    images: Array,
    stage: Stage,
    seed: int,
    *,
    stride: int,
    threshold: float,
    both_signs: bool,
    tied: bool,
    decoders: bool,
    space: Space,
) -> PatchLayer:
    """A patch layer for these images (n x h x w x c); without `decoders` only what encoding needs."""
    start = time.perf_counter()
    xp, (n, h, w, c) = space.xp, images.shape
    size = (min(stage.patch, h), min(stage.patch, w))
    rng = np.random.default_rng(seed)
    # of wide patches, and of candidates, fewer are enough
    wanted = min(PATCHES if decoders else PATCHES // 3, max(20 * size[0] * size[1] * c, PATCHES // 3))
    each = max(1, min(-(-wanted // n), (h - size[0] + 1) * (w - size[1] + 1)))
    raw = _some_patches(images, size, each, rng)
    contrast = None
    if stage.contrast is not None:
        d = int(raw.shape[1])
        mean = xp.mean(raw, axis=1, keepdims=True)
        variance = float(xp.mean((raw - mean) ** 2)) if d > 1 else 0.0
        contrast = max(stage.contrast, LEAST_CONTRAST) * variance if variance > 0 else 1.0
    chosen = _different(raw, 3 * stage.filters, seed, rng)
    P, _ = normalised(raw, contrast)
    dtype = dtype_name(P)
    moments = Moments(space)
    for part in _parts(P):
        moments.add(part)
    mean = moments.mean_a
    A = space.asarray(take_rows(P, chosen), "float64") - mean
    squares = xp.sum(A * A, axis=1)
    loud = to_numpy(squares > FLAT * float(xp.mean(squares)))
    if not loud.any() or not bool(xp.all(xp.isfinite(squares))):
        raise ValueError(
            f"Patches of {size[0]} x {size[1]} pixels hold nothing but one level each, or numbers beyond the range of "
            f"{dtype}: use larger patches, contrast=None, or rescale the pixels."
        )
    A = take_rows(A, np.flatnonzero(loud)[: stage.filters])
    gram = PrimalGram(moments.gram(centred=True), moments.weight)
    # (20), (21) with a ridge; then responses have unit variance
    W = _unit(gram.pinv_rows(A, stage.encoder_ridge), gram)

    def made(W: Array) -> tuple[Array, Array]:
        bias = -(mean @ W) - threshold
        if both_signs:
            W, bias = xp.concat([W, -W], axis=1), xp.concat([bias, (mean @ W) - threshold])
        return contiguous(space.asarray(W, dtype)), space.asarray(bias, dtype)

    weights, bias = made(W)
    some = first_of(P, DECODED)
    layer = PatchLayer(size, c, stride, contrast, weights, bias)
    if tied or decoders:
        decoder, decoder_bias, error = _decoded(some, weights, bias, space)
    if tied:  # W_e = W_d'
        p = int(W.shape[1])
        back = space.asarray(decoder, "float64")
        W = _unit((back[:p, :] - back[p:, :] if both_signs else back).mT, gram)
        layer.weights, layer.bias = weights, bias = made(W)
        if decoders:
            decoder, decoder_bias, error = _decoded(some, weights, bias, space)
    if decoders:
        layer.decoder, layer.decoder_bias, layer.reconstruction_error = decoder, decoder_bias, error
    layer.seconds = time.perf_counter() - start
    return layer


def _some_patches(images: Array, size: tuple[int, int], each: int, rng: np.random.Generator) -> Array:
    """`each` patches of every image at places drawn at random, as rows."""
    n, h, w, _ = (int(s) for s in images.shape)
    down, across = rng.integers(0, h - size[0] + 1, (n, each)), rng.integers(0, w - size[1] + 1, (n, each))
    rows = (down[:, :, None] + np.arange(size[0])).reshape(n, each, size[0], 1)
    columns = (across[:, :, None] + np.arange(size[1])).reshape(n, each, 1, size[1])
    flat = (np.arange(n).reshape(n, 1, 1, 1) * h + rows) * w + columns
    xp = namespace(images)
    pixels = xp.reshape(images, (n * h * w, -1))
    return xp.reshape(take_rows(pixels, flat.reshape(-1)), (n * each, -1))


def _different(patches: Array, count: int, seed: int, rng: np.random.Generator) -> np.ndarray:
    """Which patches to make filters from: drawn at random, no two the same."""
    order = rng.permutation(int(patches.shape[0]))[: 20 * count]
    keys = row_keys(take_rows(patches, order), seed)
    _, first = np.unique(keys, return_index=True)
    if len(first) == 1:
        raise ValueError("All patches of the images are the same, so there is nothing to learn: check how X was read.")
    return order[np.sort(first)[:count]]


def _parts(P: Array) -> Iterator[Array]:
    n = int(P.shape[0])
    return (P[start : min(start + 8192, n), :] for start in range(0, n, 8192))


def first_of(x: Array, count: int) -> Array:
    return x[: min(count, int(x.shape[0])), ...]


def _unit(W: Array, gram: PrimalGram) -> Array:
    """Filters whose responses have unit variance."""
    xp = namespace(W)
    variance = gram.quadratic(W) / gram.weight
    return W / xp.sqrt(xp.where(variance > 0, variance, xp.ones_like(variance)))


def _decoded(P: Array, weights: Array, bias: Array, space: Space) -> tuple[Array, Array, float]:
    """The decoder (27), (28) with a bias, and its error relative to the variance of the patches."""
    xp = space.xp
    moments = Moments(space)
    for part in _parts(P):
        moments.add(neurons("relu", part, weights, bias), part, scratch=True)
    G, C = moments.gram(centred=True), moments.cross(centred=True)
    decoder, decoder_bias = decoder_with_bias(moments, DECODER_RIDGE, dtype_name(P))
    W_d = space.asarray(decoder, "float64")
    total = float(xp.sum(moments.variance_b())) * moments.weight
    left = total - 2 * float(xp.sum(W_d * C)) + float(xp.sum(W_d * matmul(G, W_d)))
    return decoder, decoder_bias, max(left, 0.0) / total if total > 0 else 0.0


@saveable
@dataclass
class Branch:
    """One or two patch layers, then pooling over a grid."""

    layers: list[PatchLayer]
    shape: Shape
    grid: tuple[int, int]
    pooling: str
    power: float
    mirror: bool

    @property
    def width(self) -> int:
        return self.grid[0] * self.grid[1] * self.layers[-1].width

    def maps(self, X: Array) -> Array:
        """What the last layer sees of images: themselves, or the halved maps of the layer below."""
        for layer in self.layers[:-1]:
            X = halved(layer(X), *layer.positions(shape_of(X)))
        return X

    def __call__(self, X: Array) -> Array:
        """Features of images n x h x w x c."""
        F = self._pooled(X)
        if self.mirror:
            F = (F + self._pooled(namespace(X).flip(X, axis=2))) / 2.0
        return F

    def _pooled(self, X: Array) -> Array:
        maps = self.maps(X)
        H = self.layers[-1](maps)
        xp = namespace(H)
        rows, columns = self.layers[-1].positions(shape_of(maps))
        whole = xp.reshape(H, (int(H.shape[0]), rows, columns, -1))
        over = xp.max if self.pooling == "max" else xp.mean
        cells = [
            over(whole[:, a:b, c:d, :], axis=(1, 2))
            for a, b in cells_of(rows, self.grid[0])
            for c, d in cells_of(columns, self.grid[1])
        ]
        F = xp.stack(cells, axis=1)
        F *= xp.astype(F > TINY, F.dtype)
        if self.power == 0.5:
            F = np.sqrt(F, out=F) if isinstance(F, np.ndarray) else xp.sqrt(F)
        elif self.power != 1:
            F = F**self.power
        return xp.reshape(F, (int(F.shape[0]), -1))


def shape_of(X: Array) -> Shape:
    return Shape(*(int(size) for size in X.shape[1:]))


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


def averages(rows: int, columns: int, grid: tuple[int, int]) -> np.ndarray:
    """The matrix that takes positions to cell averages."""
    M = np.zeros((grid[0] * grid[1], rows, columns))
    for k, (a, b) in enumerate(cells_of(rows, grid[0])):
        for m, (c, d) in enumerate(cells_of(columns, grid[1])):
            M[k * grid[1] + m, a:b, c:d] = 1.0 / ((b - a) * (d - c))
    return M.reshape(len(M), -1)


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


def features_of_images(branches: list[Branch], images: Any, block_rows: int | str, space: Space) -> Array:
    """Features of all branches, one beside the other."""
    xp = space.xp

    def of(X: Array) -> Array:
        parts = [branch(X) for branch in branches]
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=1)

    return blockwise(of, images, [layer for branch in branches for layer in branch.layers], space, block_rows)


def blockwise(f: Any, images: Any, layers: list[PatchLayer], space: Space, block_rows: int | str = "auto") -> Array:
    """f of the images, some at a time: as many as keep patches and responses of every layer within some megabytes."""
    n, h, w, _ = (int(size) for size in images.shape)
    widest = max(max(layer.width, layer.size[0] * layer.size[1] * layer.channels) for layer in layers)
    step = max(1, space.budget(BLOCK_BYTES) // 4 // (4 * h * w * widest))
    step = step if block_rows == "auto" else int(block_rows)
    out: Array = None
    parts = []
    for start in range(0, n, step):
        block = images[start : min(start + step, n), ...]
        with sharing(block):
            part = f(block)
        if isinstance(part, np.ndarray):  # written in place: no second copy of the result
            if out is None:
                out = np.empty((n, *part.shape[1:]), part.dtype)
            out[start : start + len(part)] = part
        else:
            parts.append(part)
    return out if out is not None else space.xp.concat(parts, axis=0)
