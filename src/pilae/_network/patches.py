"""Patch layers: pseudoinverse autoencoders on patches of images.

A patch layer is the layer of section III.A with patches for rows: its encoder (X'X + eps I)^-1 A' comes from the same
`Moments`, A being patches of the training images. A filter's responses over an image are cut at a threshold, both signs
apart, and averaged over the cells of a grid; nothing of size images x positions x filters is ever held.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._arrays import Array, contiguous, dtype_name, matmul, namespace, space_of, take_rows, to_numpy
from .._base.saveable import saveable
from .._data.keys import row_keys
from .._engine.activations import neurons
from .._engine.linalg import PrimalGram
from .._engine.moments import Moments
from .layer import decoder_with_bias, relative_error

PATCHES = 100_000
"""Patches that a layer is fitted on."""

DECODED = 20_000
"""Patches that a decoder is solved on."""

LEAST_CONTRAST = 1e-8
"""With none at all a flat patch would be divided by zero."""

FLAT = 1e-3
"""A patch whose square is below this fraction of the mean square says nothing, and does not become a filter."""

DECODER_RIDGE = 1e-3

CLIPPED_ROWS = 1024
"""Patches whose products stay in a cache until they are clipped."""

STEP_PIXELS = 48
"""A step of one pixel between patches for so many pixels of a square image's side."""


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
        P, *_ = normalised(patches_of(X, self.size, self.stride), self.contrast)
        H = neurons("relu", P, self.weights, self.bias)
        return namespace(H).reshape(H, (int(X.shape[0]), -1, self.width))

    @property
    def has_pairs(self) -> bool:
        """Whether every filter w is there as -w, too, and NumPy can be asked without waiting for an answer."""
        W, half = self.weights, self.width // 2
        return isinstance(W, np.ndarray) and np.array_equal(W[:, half:], -W[:, :half])

    def clipped(self, X: Array) -> Array:
        """Responses of pairs of filters before the last step, which `unclipped` does: with r = P w it is

            relu(r + b) = max(r, -b) + b,    relu(-r + b) = b - min(r, b),

        so that r is made once for both, and b added once to an average instead of to every number."""
        P, *_ = normalised(patches_of(X, self.size, self.stride), self.contrast)
        half = self.width // 2
        W, low, high = self.weights[:, :half], -self.bias[:half], self.bias[half:]
        H = np.empty((len(P), self.width), np.result_type(P, W))
        for part in (slice(start, start + CLIPPED_ROWS) for start in range(0, len(P), CLIPPED_ROWS)):
            R = P[part] @ W
            np.maximum(R, low, out=H[part, :half])
            np.minimum(R, high, out=H[part, half:])
        return H.reshape(len(X), -1, self.width)

    def unclipped(self, F: Array) -> Array:
        """Averages of responses from averages of clipped ones, written over."""
        half = self.width // 2
        F[..., :half] += self.bias[:half]
        np.subtract(self.bias[half:], F[..., half:], out=F[..., half:])
        return F

    def rebuild(self, X: Array) -> Array:
        """Images from the responses to their patches: each patch is decoded, and overlapping ones are averaged."""
        xp, device = space_of(X)
        n, h, w, c = (int(size) for size in X.shape)
        P, mean, root = normalised(patches_of(X, self.size, self.stride), self.contrast)
        back = matmul(neurons("relu", P, self.weights, self.bias), self.decoder) + self.decoder_bias
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


def stride_for(shape: Shape) -> int:
    """Steps between patches that leave a large image about as many of them as a small one has."""
    return max(1, int((shape.height * shape.width) ** 0.5) // STEP_PIXELS)


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


def normalised(P: Array, contrast: float | None) -> tuple[Array, Array, Array]:
    """Local contrast normalisation of patches, which may be written over: to mean zero and about unit variance.

    Also what undoes it, mean and root: times the root, plus the mean.
    """
    if contrast is None:
        return P, 0.0, 1.0
    xp, d = namespace(P), int(P.shape[1])
    mean = xp.mean(P, axis=1, keepdims=True)
    P -= mean
    squares = (
        np.einsum("ij,ij->i", P, P)[:, None] if isinstance(P, np.ndarray) else xp.sum(P * P, axis=1, keepdims=True)
    )
    root = xp.sqrt(squares / d + contrast)
    P /= root
    return P, mean, root


class PatchSpec(NamedTuple):
    """What patch layers of one network share."""

    stride: int = 1
    threshold: float = 0.25
    both_signs: bool = True
    tied: bool = False
    encoder_ridge: float = 1.0
    contrast: float | None = None
    """Share of the mean variance of patches that is added to that of each; None: patches are taken as they are."""
    mirrored: bool = False
    """Whether every filter has its mirror image beside it."""


def fit_patches(images: Array, patch: int, filters: int, spec: PatchSpec, seed: int, *, decoders: bool) -> PatchLayer:
    """A patch layer for these images (n x h x w x c); without `decoders` only what encoding needs."""
    start = time.perf_counter()
    c = int(images.shape[3])
    size = (min(patch, int(images.shape[1])), min(patch, int(images.shape[2])))
    rng = np.random.default_rng(seed)
    # of wide patches, and of candidates, fewer are enough
    count = min(PATCHES if decoders else PATCHES // 3, max(20 * size[0] * size[1] * c, PATCHES // 3))
    raw = _some_patches(images, size, count, rng)
    contrast = _contrast(raw, spec.contrast)
    chosen = _different(raw, 3 * filters, seed, rng)
    P, *_ = normalised(raw, contrast)
    bank, some = _Filters(P, spec, (*size, c)), first_of(P, DECODED)
    A = _loud(P, chosen, bank.mean, max(1, filters // 2) if spec.mirrored else filters, size)
    weights, bias = bank.signed(bank.gram.pinv_rows(A, spec.encoder_ridge))  # (20), (21) with a ridge
    if spec.tied:  # W_e = W_d'
        W_d, _, _ = _decoder(some, weights, bias)
        weights, bias = bank.signed(bank.tied(W_d))
    layer = PatchLayer(size, c, spec.stride, contrast, weights, bias)
    if decoders:
        layer.decoder, layer.decoder_bias, layer.reconstruction_error = _decoder(some, weights, bias)
    layer.seconds = time.perf_counter() - start
    return layer


def with_decoder(layer: PatchLayer, images: Array, seed: int) -> PatchLayer:
    """The same layer, and what its responses say of patches of these images."""
    raw = _some_patches(images, layer.size, DECODED, np.random.default_rng(seed))
    P, *_ = normalised(raw, layer.contrast)
    decoder, bias, error = _decoder(P, layer.weights, layer.bias)
    return replace(layer, decoder=decoder, decoder_bias=bias, reconstruction_error=error)


def _contrast(raw: Array, contrast: float | None) -> float | None:
    """What is added to the variance of a patch, from the share of the mean variance that is asked for."""
    if contrast is None:
        return None
    xp = namespace(raw)
    mean = xp.mean(raw, axis=1, keepdims=True)
    variance = float(xp.mean((raw - mean) ** 2)) if int(raw.shape[1]) > 1 else 0.0
    return max(contrast, LEAST_CONTRAST) * variance if variance > 0 else 1.0


def _loud(P: Array, chosen: np.ndarray, mean: Array, count: int, size: tuple[int, int]) -> Array:
    """The first of the chosen patches, about their mean, that are not flat."""
    space = space_of(P)
    xp = space.xp
    A = space.asarray(take_rows(P, chosen), "float64") - mean
    squares = xp.sum(A * A, axis=1)
    loud = to_numpy(squares > FLAT * float(xp.mean(squares)))
    if not loud.any() or not bool(xp.all(xp.isfinite(squares))):
        raise ValueError(
            f"Patches of {size[0]} x {size[1]} pixels hold nothing but one level each, or numbers beyond the range of "
            f"{dtype_name(P)}: use larger patches, contrast=None, or rescale the pixels."
        )
    return take_rows(A, np.flatnonzero(loud)[:count])


class _Filters:
    """Makes filters, given up to their lengths, whose responses to the patches P have unit variance."""

    def __init__(self, P: Array, spec: PatchSpec, shape: tuple[int, int, int]) -> None:
        self.shape = shape
        self.spec, self.space, self.dtype = spec, space_of(P), dtype_name(P)
        moments = Moments(self.space)
        for part in _parts(P):
            moments.add(part)
        self.mean, self.gram = moments.mean_a, PrimalGram(moments.gram(centred=True), moments.weight)

    def tied(self, decoder: Array) -> Array:
        """Filters from the decoder of a layer: those of both signs are one."""
        W_d = self.space.asarray(decoder, "float64")
        p = int(W_d.shape[0]) // 2
        return (W_d[:p, :] - W_d[p:, :] if self.spec.both_signs else W_d).mT

    def signed(self, W: Array) -> tuple[Array, Array]:
        """(weights, bias) of a layer: the threshold goes into the bias, negative responses are filters of their own."""
        xp, threshold = self.space.xp, self.spec.threshold
        variance = self.gram.quadratic(W) / self.gram.weight
        W = W / xp.sqrt(xp.where(variance > 0, variance, xp.ones_like(variance)))
        shift = self.mean @ W
        if self.spec.mirrored:  # exactly what the filter says of the mirrored patch: the same length and shift
            sides = xp.flip(xp.reshape(W, (*self.shape, -1)), axis=1)
            W, shift = xp.concat([W, xp.reshape(sides, W.shape)], axis=1), xp.concat([shift, shift])
        bias = -shift - threshold
        if self.spec.both_signs:
            W, bias = xp.concat([W, -W], axis=1), xp.concat([bias, shift - threshold])
        return contiguous(self.space.asarray(W, self.dtype)), self.space.asarray(bias, self.dtype)


def _some_patches(images: Array, size: tuple[int, int], count: int, rng: np.random.Generator) -> Array:
    """About so many patches, as many of every image, at places drawn at random, as rows."""
    n, h, w, _ = (int(s) for s in images.shape)
    each = max(1, min(-(-count // n), (h - size[0] + 1) * (w - size[1] + 1)))
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


def _decoder(P: Array, weights: Array, bias: Array) -> tuple[Array, Array, float]:
    """The decoder (27), (28) with a bias, and its error relative to the variance of the patches."""
    space = space_of(P)
    moments = Moments(space)
    for part in _parts(P):
        moments.add(neurons("relu", part, weights, bias), part, scratch=True)
    W_d, decoder_bias = decoder_with_bias(moments, DECODER_RIDGE, dtype_name(P))
    total = space.xp.sum(moments.variance_b()) * moments.weight
    G, C = moments.gram(centred=True), moments.cross(centred=True)
    return W_d, decoder_bias, relative_error(total, G, C, space.asarray(W_d, "float64"))


def shape_of(X: Array) -> Shape:
    return Shape(*(int(size) for size in X.shape[1:]))
