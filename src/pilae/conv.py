r"""Images: pseudoinverse autoencoders on patches, pooled over a grid.

A patch layer is the layer of section III.A with patches for rows: its encoder (X'X + eps I)^-1 A' comes from the same
`Moments`, A being patches of the training images. A filter's responses over an image are cut at a threshold, both signs
apart, and averaged over the cells of a grid; nothing of size images x positions x filters is ever held.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from . import _check
from ._arrays import Array, Space, contiguous, namespace, space_for, space_of, take_rows, to_numpy
from ._progress import CallbackSupportMixin, Progress, with_callbacks
from .activations import activate
from .anchors import row_keys
from .blocks import BLOCK_BYTES
from .export import OnnxMixin
from .layer import decoder_with_bias
from .linalg import PrimalGram
from .model import PILAEClassifier, PILAERegressor
from .moments import Moments
from .save import SaveMixin, saveable

PATCHES = 100_000
"""Patches that a layer is fitted on."""

PATCH_IMAGES = 4000
"""Images that they are taken from, at most."""

DECODED = 20_000
"""Patches that a decoder is solved on."""

LEAST_CONTRAST = 1e-8
"""With none at all a flat patch would be divided by zero."""

FLAT = 1e-3
"""A patch whose square is below this fraction of the mean square says nothing, and does not become a filter."""

SEARCH_IMAGES = 6000
SEARCH_FEATURES = 2400
"""How many images, and columns, candidates are compared with."""

MOST_FILTERS = 400
"""Of each patch size, where their number is not given."""

TINY = 1e-6
"""Pooled responses below this are rounding: a column that is zero but for them must not be standardised."""

MAP_BYTES = 2**28
"""Most that is held of a first layer's maps while the second one is fitted (they are a quarter of the positions)."""

WORTH = 0.01
"""A change of structure must lower the leave-one-out error by this fraction."""

FIRST_FILTERS = 64
"""Filters of the first of two layers: its maps are the second one's input."""

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
        H = activate("relu", P @ self.weights, self.bias)
        return namespace(H).reshape(H, (n, -1, self.width))

    def rebuild(self, X: Array) -> Array:
        """Images from the responses to their patches: each patch is decoded, and overlapping ones are averaged."""
        xp, device = space_of(X)
        n, h, w, c = (int(size) for size in X.shape)
        P, scales = normalised(patches_of(X, self.size, self.stride), self.contrast)
        back = activate("relu", P @ self.weights, self.bias) @ self.decoder + self.decoder_bias
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
    dtype = str(P.dtype).split(".")[-1]
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
    some = _first(P, DECODED)
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


def _first(x: Array, count: int) -> Array:
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
        moments.add(activate("relu", part @ weights, bias), part, scratch=True)
    G, C = moments.gram(centred=True), moments.cross(centred=True)
    decoder, decoder_bias = decoder_with_bias(moments, DECODER_RIDGE, str(P.dtype).split(".")[-1])
    W_d = space.asarray(decoder, "float64")
    total = float(xp.sum(moments.variance_b())) * moments.weight
    left = total - 2 * float(xp.sum(W_d * C)) + float(xp.sum(W_d * (G @ W_d)))
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
            X = halved(layer(X), *layer.positions(_shape(X)))
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
        rows, columns = self.layers[-1].positions(_shape(maps))
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


def _shape(X: Array) -> Shape:
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


class Plan(NamedTuple):
    """A choice of everything that can be found."""

    patch: tuple[int, ...]
    pool: int
    encoder_ridge: float
    contrast: float | None
    mirror: bool
    depth: int


@saveable
class ConvPILAE(
    SaveMixin,
    OnnxMixin,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
    onnx="transformer",
):
    """Image features by pseudoinverse autoencoders of patches, to put in front of any classifier.

    Patches of the training images, after local contrast normalisation, are the rows of an autoencoder layer; its
    filters are (X'X + eps I)^-1 A' for some patches A. Responses are thresholded, both signs apart, averaged over a
    grid and taken to the power one half.

    Parameters
    ----------
    patch : "auto", int or list of int, default="auto"
        Side of the patches in pixels. A list gives several sizes side by side.
    filters : "auto" or int, default="auto"
        Filters of each patch size. "auto": as many as `max_features` allows.
    pool : "auto" or int, default="auto"
        Cells of the grid along each side.
    pooling : {"average", "max"}, default="average"
    encoder_ridge : "auto" or float from 0 to infinity, default="auto"
        eps, relative to the mean of the diagonal of X'X. Small values whiten the patches.
    contrast : "auto", float or None, default="auto"
        Local contrast normalisation: each patch loses its mean and is divided by the root of its variance plus this
        fraction of the mean variance. None leaves patches as they are.
    mirror : "auto" or bool, default="auto"
        Average the features of an image and of its mirror image: right for objects, wrong for digits.
    depth : {"auto", 1, 2}, default="auto"
        Two: a first layer of 64 filters, whose halved maps are the images of the second.
    stride : int, default=1
        Step between patches.
    threshold : float, default=0.25
        Responses, of unit variance, count from here on.
    both_signs : bool, default=True
        Use negative responses too, as features of their own.
    power : float, default=0.5
        Of the pooled responses.
    tied : bool, default=False
        Take the transposed decoder as encoder, as in the paper's vector layers.
    max_features : int, default=6400
        Bound on the number of columns that `filters="auto"` gives.
    image_shape : tuple of int, optional
        (height, width) or (height, width, channels) of images that come as rows of numbers. By default such rows are
        square images if they can be, else strips of one pixel's height.
    device, dtype, block_rows, random_state, verbose
        As in `StackedPILAE`; integer pixels are computed in float32.

    Attributes
    ----------
    branches_ : list of Branch
        One for each patch size; their `layers` have weights, decoder and reconstruction_error.
    image_shape_ : tuple (height, width, channels)
    patch_, pool_, encoder_ridge_, contrast_, mirror_, depth_, filters_
        What was found or given.
    search_ : list of dict
        Every candidate with the leave-one-out error of a ridge on its features (empty without `y`).
    n_features_in_ : int

    Notes
    -----
    With "auto" parameters and a `y`, as in a pipeline, they are chosen by the leave-one-out error of a linear output
    layer on at most 6,000 training images. Without a `y` they are: patches of a quarter of the side, 4 x 4 cells,
    ridge 1, contrast 0.1, no mirror, one layer.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from pilae import ConvPILAE, PILAEClassifier
    >>> digits = load_digits()
    >>> model = make_pipeline(ConvPILAE(filters=20, max_features=800), PILAEClassifier(depth=0, head="ridge"))
    >>> model = model.fit(digits.images[:1200], digits.target[:1200])
    >>> model.score(digits.images[1200:], digits.target[1200:]) > 0.95
    True
    """

    def __init__(
        self,
        patch="auto",
        filters="auto",
        pool="auto",
        pooling="average",
        encoder_ridge="auto",
        contrast="auto",
        mirror="auto",
        depth="auto",
        stride=1,
        threshold=0.25,
        both_signs=True,
        power=0.5,
        tied=False,
        max_features=6400,
        image_shape=None,
        device=None,
        dtype=None,
        block_rows="auto",
        random_state=None,
        verbose=0,
    ):
        self.patch = patch
        self.filters = filters
        self.pool = pool
        self.pooling = pooling
        self.encoder_ridge = encoder_ridge
        self.contrast = contrast
        self.mirror = mirror
        self.depth = depth
        self.stride = stride
        self.threshold = threshold
        self.both_signs = both_signs
        self.power = power
        self.tied = tied
        self.max_features = max_features
        self.image_shape = image_shape
        self.device = device
        self.dtype = dtype
        self.block_rows = block_rows
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------------------------------------- fitting

    @with_callbacks
    def fit(self, X, y=None):
        """Find filters, and what is "auto".

        Parameters
        ----------
        X : array of shape (n, height, width), (n, height, width, channels) or (n, numbers)
            Integers or floats.
        y : array-like of shape (n,), optional
            Labels or numbers to choose by.

        Returns
        -------
        self
        """
        with _check.fresh_fit(self):
            self._check_parameters()
            seed = _check.seed_of(self.random_state)
            X, shape = self._images(X, reset=True)
            space, progress = space_for(X, self.device), Progress(self.verbose)
            progress.begin(self)
            dtype = self.dtype or ("float64" if str(X.dtype).endswith("float64") else "float32")
            chosen = self._sample(X, seed, SEARCH_IMAGES)
            images = space.asarray(take_rows(X, chosen), dtype)
            images = space.xp.reshape(images, (len(chosen), *shape))
            plan = self._default(shape)
            search: list[dict[str, Any]] = []
            if y is not None:
                labels = to_numpy(_check.plain_labels(y))
                if labels.ndim == 0 or len(labels) != int(X.shape[0]):
                    raise ValueError(
                        f"X has {X.shape[0]} images but y has {labels.size} targets: give one target for each image."
                    )
                if labels.dtype.kind == "f" and not np.isfinite(labels).all():
                    raise ValueError(
                        "y contains NaN or infinity, which ConvPILAE does not take: leave those images out."
                    )
                labels = labels[chosen]
                labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
                plan, search = self._search(images, labels, plan, seed, space, progress)
            progress.stage("filters")
            branches = self._build(
                _first(images, PATCH_IMAGES), plan, self._filters(plan, self.max_features), seed, space
            )
            progress.close()
            self.space_, self.dtype_ = space, dtype
            self.branches_ = branches
            self.image_shape_ = tuple(shape)
            self.search_ = search
            sides = [max(branch.layers[0].size) for branch in branches]
            self.patch_ = sides[0] if len(sides) == 1 else sides
            self.pool_ = max(branches[0].grid)
            self.encoder_ridge_, self.contrast_ = plan.encoder_ridge, plan.contrast
            self.mirror_, self.depth_ = plan.mirror, plan.depth
            self.filters_ = branches[0].layers[-1].width // (2 if self.both_signs else 1)
            self._n_features_out = sum(branch.width for branch in branches)
            progress.end()
        return self

    def _sample(self, X: Array, seed: int, most: int) -> np.ndarray:
        """The images of smallest key, in order of the key: the same ones in any order of the rows. Of equal images one
        counts, with the target of the first."""
        n = int(X.shape[0])
        keys = np.concatenate([row_keys(X[a : min(a + 4096, n), :], seed) for a in range(0, n, 4096)])
        _, first = np.unique(keys, return_index=True)
        return first[:most]

    def _default(self, shape: Shape) -> Plan:
        side = max(shape[:2])

        def given(name: str, value: Any) -> Any:
            return value if getattr(self, name) == "auto" else getattr(self, name)

        patch = given("patch", min(max(3, side // 4), 9))
        patches = (patch,) if _check.is_integer(patch) else tuple(patch)
        pool = given("pool", max(1, min(4, side // 4)))
        return Plan(
            tuple(dict.fromkeys(min(int(p), side) for p in patches)),  # no two the same
            min(int(pool), side),
            float(given("encoder_ridge", 1.0)),
            given("contrast", 0.1),
            bool(given("mirror", False)),
            int(given("depth", 1)),
        )

    def _filters(self, plan: Plan, columns: int) -> int:
        if self.filters != "auto":
            return int(self.filters)
        return max(1, min(MOST_FILTERS, columns // ((2 if self.both_signs else 1) * plan.pool**2 * len(plan.patch))))

    def _build(
        self, images: Array, plan: Plan, filters: int, seed: int, space: Space, *, decoders: bool = True
    ) -> list[Branch]:
        fit = partial(
            fit_patches,
            stride=self.stride,
            threshold=self.threshold,
            both_signs=self.both_signs,
            tied=self.tied,
            decoders=decoders,
            space=space,
        )
        branches = []
        for patch in plan.patch:
            layers, maps = [], images
            if plan.depth == 2:
                first = fit(maps, Stage(patch, FIRST_FILTERS, plan.encoder_ridge, plan.contrast), seed)
                h, w, _ = _shape(maps)
                maps = _first(maps, max(50, space.budget(MAP_BYTES) // (h * w * first.width)))
                maps = _blockwise(lambda X, f=first: halved(f(X), *f.positions(_shape(X))), maps, [first], space)
                layers.append(first)
                patch = max(1, min(4, *_shape(maps)[:2]))
            layers.append(fit(maps, Stage(patch, filters, plan.encoder_ridge, plan.contrast), seed))
            rows, columns = layers[-1].positions(_shape(maps))
            grid = min(plan.pool, rows), min(plan.pool, columns)
            branches.append(Branch(layers, _shape(images), grid, self.pooling, self.power, plan.mirror))
        return branches

    def _search(
        self, images: Array, y: np.ndarray, plan: Plan, seed: int, space: Space, progress: Progress
    ) -> tuple[Plan, list[dict[str, Any]]]:
        """One choice after another, each by the leave-one-out error of a ridge on the features."""
        if len(np.unique(y)) < 2 or "auto" not in [getattr(self, name) for name in Plan._fields]:
            return plan, []
        side = min(s for s in _shape(images)[:2] if s > 1) if max(_shape(images)[:2]) > 1 else 1
        known: dict[Plan, float] = {}
        many = y.ndim == 1 and y.dtype.kind in "iu" and len(np.unique(y)) > max(50, len(y) // 20)
        kind = PILAERegressor if many or type_of_target(y).startswith("continuous") else PILAEClassifier
        rows: list[dict[str, Any]] = []

        def error(plan: Plan) -> float:
            if plan not in known:
                progress.stage("comparing " + ", ".join(f"{k} {v}" for k, v in plan._asdict().items()))
                start = time.perf_counter()
                columns = min(self.max_features, SEARCH_FEATURES)
                filters = min(self._filters(plan, columns), max(1, columns // (2 * plan.pool**2)))
                branches = self._build(_first(images, PATCH_IMAGES), plan, filters, seed, space, decoders=False)
                F = _features(branches, images, self.block_rows, space)
                if int(F.shape[0]) < 2 * int(F.shape[1]):  # nearly interpolated: float32 would decide by rounding
                    F = space.asarray(F, "float64")
                judge = kind(depth=0, head="ridge", input_scaling="none", keep_statistics=False, random_state=seed)
                loo = judge.fit(F, y).head_.output.loo
                variance = np.average((loo.targets - np.average(loo.targets, axis=0)) ** 2, axis=0).sum()
                errors = loo.row_errors(np.full(loo.targets.shape[1], max(variance, 1e-300) ** 0.5))
                known[plan] = float(np.average(errors, weights=loo.weight))  # no row is a neuron here
                rows.append(
                    plan._asdict()
                    | {"filters": filters, "features": int(F.shape[1]), "error": known[plan]}
                    | {"seconds": time.perf_counter() - start, "chosen": False}
                )
            return known[plan]

        def improved(plan: Plan, name: str, values: list) -> Plan:
            if getattr(self, name) != "auto":
                return plan
            return better(plan, [plan._replace(**{name: value}) for value in values])

        def better(plan: Plan, others: list[Plan]) -> Plan:
            """The best of the others, if it is worth the change."""
            best = min(others, key=error, default=plan)
            return best if error(best) < (1 - WORTH) * error(plan) else plan

        [patch, *_] = plan.patch
        sizes = [(p,) for p in (patch - 2, patch + 2) if 2 <= p <= side]
        plan = improved(plan, "patch", sizes)
        plan = improved(plan, "encoder_ridge", [0.1, 10.0])
        plan = improved(plan, "mirror", [True])
        most = int((self.max_features / (2 * len(plan.patch))) ** 0.5)
        grids = [g for g in (plan.pool - 1, plan.pool + 1, plan.pool + 2) if 1 <= g <= min(side, most)]
        plan = improved(plan, "pool", grids)
        plan = improved(plan, "contrast", [0.01])
        if plan.patch[0] > 3:
            several = (plan.patch[0] - 2, plan.patch[0], plan.patch[0] + 2)
            plan = improved(plan, "patch", [several] if several[-1] <= side else [])
        if side >= 12 and self.depth == "auto":
            deep = plan._replace(depth=2, patch=plan.patch if self.patch != "auto" else (patch,))
            plan = better(plan, [deep])
        error(plan)
        for row in rows:
            row["chosen"] = all(row[key] == value for key, value in plan._asdict().items())
        return plan, rows

    # ----------------------------------------------------------------------------------------------------- using

    def onnx_features(self, graph: Any, x: str) -> str:
        """The features in a graph of `export`, from rows of numbers."""
        parts = [_in_onnx(graph, branch, x) for branch in self.branches_]
        return parts[0] if len(parts) == 1 else graph.op("Concat", *parts, axis=1)

    def transform(self, X):
        """Features of images.

        Parameters
        ----------
        X : array of the shape and kind that `fit` got

        Returns
        -------
        array of shape (n, features), in X's library and on its device
        """
        images, home = self._seen(X, "transform")
        return home.asarray(_features(self.branches_, images, self.block_rows, self.space_))

    def report(self, X=None, *, title=None):
        """A page about the features: filters, what they keep of some images, and why they are these.

        Parameters
        ----------
        X : images, optional
        title : str, optional

        Returns
        -------
        Report
            Shown in a notebook as it is; `save` writes HTML, Markdown or JSON.
        """
        from .report import ImageReport, summarise_images

        return ImageReport(summarise_images(self, X), title or "Report on a ConvPILAE")

    def reconstruct(self, X):
        """Images rebuilt from the responses of the first patch layer of every branch, averaged: what the layer keeps.

        Returns
        -------
        array of the shape of X
        """
        X = X if hasattr(X, "ndim") else np.asarray(X)
        images, home = self._seen(X, "reconstruct")
        layers = [branch.layers[0] for branch in self.branches_]
        parts = [_blockwise(layer.rebuild, images, [layer], self.space_, self.block_rows) for layer in layers]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        whole = total / float(len(parts))
        return home.xp.reshape(home.asarray(whole), tuple(int(size) for size in X.shape))

    def _seen(self, X: Any, method: str) -> tuple[Array, Space]:
        """Images as the branches take them, and where X lives."""
        check_is_fitted(self)
        X, _ = self._images(X, reset=False)
        shape = Shape(*self.image_shape_)  # rows of as many numbers are taken as images of that shape
        _check.check_same_space(self, method, X, self.space_)
        return _Images(X, shape, self.space_, self.dtype_), space_of(X)

    def _other_shape(self, shape: Shape) -> ValueError:
        return ValueError(
            f"Images are {shape[0]} x {shape[1]} with {shape[2]} channel(s), but ConvPILAE was fitted on "
            f"{self.image_shape_[0]} x {self.image_shape_[1]} with {self.image_shape_[2]}: bring them to that size."
        )

    def _images(self, X: Any, *, reset: bool) -> tuple[Array, Shape]:
        """X as rows of numbers, and the shape of an image."""
        if scipy.sparse.issparse(X):
            raise ValueError("ConvPILAE does not take sparse data: images are dense, use X.toarray().")
        if not hasattr(X, "ndim"):
            X = np.asarray(X)
        if X.ndim not in (2, 3, 4):
            raise ValueError(
                f"Expected images as a 3D or 4D array, or a 2D array of rows, got {X.ndim}D array instead. Reshape "
                "your data to (images, height, width) or (images, height, width, channels)."
            )
        shape = None
        if X.ndim > 2:
            shape = Shape(*(int(size) for size in X.shape[1:]), *([1] if X.ndim == 3 else []))
            if 0 in shape:
                raise ValueError(f"Images have no pixels: their shape is {tuple(X.shape[1:])}.")
            X = namespace(X).reshape(X, (int(X.shape[0]), shape[0] * shape[1] * shape[2]))
            if not reset and tuple(shape) != self.image_shape_:
                raise self._other_shape(shape)
        X = _check.check_X(self, X, reset=reset, min_rows=2 if reset else 1)
        d = int(X.shape[1])
        if d < 2:
            raise ValueError(
                f"Found images with 1 feature(s) (shape={tuple(X.shape)}): there is nothing to cut patches of."
            )
        if shape is None:
            shape = self._row_shape(d)
        return X, shape

    def _row_shape(self, d: int) -> Shape:
        if self.image_shape is not None:
            shape = Shape(*self.image_shape, *([1] if len(self.image_shape) == 2 else []))
            if shape[0] * shape[1] * shape[2] != d:
                raise ValueError(
                    f"Rows of {d} numbers are not images of image_shape={self.image_shape!r}: the product of its sizes "
                    f"must be {d}."
                )
            return shape
        side = round(d**0.5)
        return Shape(side, side, 1) if side * side == d else Shape(1, d, 1)

    def _check_parameters(self) -> None:
        auto = isinstance(self.patch, str) and self.patch == "auto"
        sizes = list(self.patch) if isinstance(self.patch, (list, tuple)) else [self.patch]
        if not auto and not (sizes and all(_check.is_integer(size) and size > 0 for size in sizes)):
            raise _check.bad(self, "patch", "'auto', a positive integer or a list of positive integers")
        for name in ("filters", "pool"):
            _check.check_count(self, name, ("auto",))
        for name in ("stride", "max_features"):
            _check.check_count(self, name)
        _check.check_choice(self, "pooling", ("average", "max"))
        _check.check_number(self, "encoder_ridge", ("auto",), infinite=True)
        _check.check_number(self, "contrast", ("auto", None))
        _check.check_choice(self, "mirror", ("auto", True, False))
        _check.check_choice(self, "depth", ("auto", 1, 2))
        _check.check_number(self, "threshold")
        _check.check_number(self, "power")
        for name in ("both_signs", "tied"):
            _check.check_choice(self, name, (True, False))
        _check.check_place(self)
        shape = self.image_shape
        if shape is not None and not (
            isinstance(shape, (tuple, list))
            and len(shape) in (2, 3)
            and all(_check.is_integer(size) and size > 0 for size in shape)
        ):
            raise _check.bad(self, "image_shape", "None, (height, width) or (height, width, channels)")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.three_d_array = True
        tags.array_api_support = True
        return tags


class _Images:
    """Rows of numbers as images, made float where they are wanted, a block at a time."""

    def __init__(self, X: Array, shape: Shape, space: Space, dtype: str) -> None:
        self.X, self.image, self.space, self.dtype_name = X, shape, space, dtype
        self.shape = (int(X.shape[0]), *shape)

    def __getitem__(self, part: tuple) -> Array:
        X = self.space.asarray(self.X[part[0], :], self.dtype_name)
        return self.space.xp.reshape(X, (int(X.shape[0]), *self.image))


def _features(branches: list[Branch], images: Any, block_rows: int | str, space: Space) -> Array:
    """Features of all branches, one beside the other."""
    xp = space.xp

    def of(X: Array) -> Array:
        parts = [branch(X) for branch in branches]
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=1)

    return _blockwise(of, images, [layer for branch in branches for layer in branch.layers], space, block_rows)


def _blockwise(f: Any, images: Any, layers: list[PatchLayer], space: Space, block_rows: int | str = "auto") -> Array:
    """f of the images, some at a time: as many as keep patches and responses of every layer within some megabytes."""
    n, h, w, _ = (int(size) for size in images.shape)
    widest = max(max(layer.width, layer.size[0] * layer.size[1] * layer.channels) for layer in layers)
    step = max(1, space.budget(BLOCK_BYTES) // 4 // (4 * h * w * widest))
    step = step if block_rows == "auto" else int(block_rows)
    out: Array = None
    parts = []
    for start in range(0, n, step):
        part = f(images[start : min(start + step, n), ...])
        if isinstance(part, np.ndarray):  # written in place: no second copy of the result
            if out is None:
                out = np.empty((n, *part.shape[1:]), part.dtype)
            out[start : start + len(part)] = part
        else:
            parts.append(part)
    return out if out is not None else space.xp.concat(parts, axis=0)


def _in_onnx(graph: Any, branch: Branch, x: str) -> str:
    """A branch as operations of a graph: patches are gathered from the row, so that every dtype will do."""
    h, w, c = branch.shape

    def pooled(x: str) -> str:
        shape = branch.shape
        for layer in branch.layers[:-1]:
            rows, columns = layer.positions(shape)
            H = responses(layer, x, shape)
            each = halved(np.eye(rows * columns)[:, :, None], rows, columns)[..., 0]  # what it makes of every position
            M = each.reshape(rows * columns, -1).T
            x = graph.op("Reshape", graph.op("MatMul", graph.constant(M), H), numbers([-1, len(M) * layer.width]))
            shape = Shape(*each.shape[1:], layer.width)
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
