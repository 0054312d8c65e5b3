"""`ConvPILAE`: image features, and the choice of their structure by leave-one-out."""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from .._arrays import Array, Space, dtype_name, namespace, space_for, space_of, take_rows, to_numpy
from .._base.progress import CallbackSupportMixin, Progress, with_callbacks
from .._base.saveable import check_shape, saveable
from .._base.scalars import is_integer, seed_of
from .._data.check import check_pixels, check_same_space, check_X
from .._data.keys import row_keys
from .._data.targets import plain_labels
from .._network.patches import (
    Branch,
    Images,
    Shape,
    Stage,
    blockwise,
    features_of_images,
    first_of,
    fit_patches,
    halved,
    shape_of,
)
from ..export import OnnxMixin
from ..save import SaveMixin
from . import parameters
from .classifier import PILAEClassifier
from .regressor import PILAERegressor
from .whole import whole_fit

PATCH_IMAGES = 4000
"""Images that patches are taken from, at most."""

SEARCH_IMAGES = 6000
SEARCH_FEATURES = 2400
"""How many images, and columns, candidates are compared with."""

MOST_FILTERS = 400
"""Of each patch size, where their number is not given."""

MAP_BYTES = 2**28
"""Most that is held of a first layer's maps while the second one is fitted (they are a quarter of the positions)."""

WORTH = 0.01
"""A change of structure must lower the leave-one-out error by this fraction."""

FIRST_FILTERS = 64
"""Filters of the first of two layers: its maps are the second one's input."""


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

    @whole_fit
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
        self._check_parameters()
        seed = seed_of(self.random_state)
        X, shape = self._images(X, reset=True)
        space, progress = space_for(X, self.device), Progress(self.verbose)
        progress.begin(self)
        dtype = self.dtype or ("float64" if dtype_name(X) == "float64" else "float32")
        chosen = self._sample(X, seed, SEARCH_IMAGES)
        some = take_rows(X, chosen)
        check_pixels(some, dtype, fit=True)
        images = space.xp.reshape(space.asarray(some, dtype), (len(chosen), *shape))
        plan = self._default(shape)
        search: list[dict[str, Any]] = []
        if y is not None:
            labels = to_numpy(plain_labels(y))
            if labels.ndim == 0 or len(labels) != int(X.shape[0]):
                raise ValueError(
                    f"X has {X.shape[0]} images but y has {labels.size} targets: give one target for each image."
                )
            if labels.dtype.kind == "f" and not np.isfinite(labels).all():
                raise ValueError("y contains NaN or infinity, which ConvPILAE does not take: leave those images out.")
            labels = labels[chosen]
            labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
            plan, search = self._search(images, labels, plan, seed, space, progress)
        progress.stage("filters")
        branches = self._build(
            first_of(images, PATCH_IMAGES), plan, self._filters(plan, self.max_features), seed, space
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

    def _check_loaded(self) -> None:
        height, width, channels = self.image_shape_
        if height * width * channels != self.n_features_in_:
            raise ValueError(f"{self.n_features_in_} numbers for an image of {self.image_shape_}")
        for branch in self.branches_:
            if not (1 <= branch.grid[0] <= height and 1 <= branch.grid[1] <= width):
                raise ValueError(f"a grid of {branch.grid} on an image of {self.image_shape_}")
            for layer in branch.layers:
                check_shape(layer.weights, math.prod(layer.size) * layer.channels, layer.width)
                check_shape(layer.bias, layer.width)
        images = np.zeros((1, height, width, channels), dtype=self.dtype_)
        if features_of_images(self.branches_, images, 1, self.space_).shape[1] != self._n_features_out:
            raise ValueError(f"not {self._n_features_out} features")

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
        patches = (patch,) if is_integer(patch) else tuple(patch)
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
                h, w, _ = shape_of(maps)
                maps = first_of(maps, max(50, space.budget(MAP_BYTES) // (h * w * first.width)))
                maps = blockwise(lambda X, f=first: halved(f(X), *f.positions(shape_of(X))), maps, [first], space)
                layers.append(first)
                patch = max(1, min(4, *shape_of(maps)[:2]))
            layers.append(fit(maps, Stage(patch, filters, plan.encoder_ridge, plan.contrast), seed))
            rows, columns = layers[-1].positions(shape_of(maps))
            grid = min(plan.pool, rows), min(plan.pool, columns)
            branches.append(Branch(layers, shape_of(images), grid, self.pooling, self.power, plan.mirror))
        return branches

    def _search(
        self, images: Array, y: np.ndarray, plan: Plan, seed: int, space: Space, progress: Progress
    ) -> tuple[Plan, list[dict[str, Any]]]:
        """One choice after another, each by the leave-one-out error of a ridge on the features."""
        if len(np.unique(y)) < 2 or "auto" not in [getattr(self, name) for name in Plan._fields]:
            return plan, []
        side = min(s for s in shape_of(images)[:2] if s > 1) if max(shape_of(images)[:2]) > 1 else 1
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
                branches = self._build(first_of(images, PATCH_IMAGES), plan, filters, seed, space, decoders=False)
                F = features_of_images(branches, images, self.block_rows, space)
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
        return home.asarray(features_of_images(self.branches_, images, self.block_rows, self.space_))

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
        from ..report import ImageReport, summarise_images

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
        parts = [blockwise(layer.rebuild, images, [layer], self.space_, self.block_rows) for layer in layers]
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
        check_same_space(self, method, X, self.space_)
        return Images(X, shape, self.space_, self.dtype_), space_of(X)

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
        X = check_X(self, X, reset=reset, min_rows=2 if reset else 1)
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
        if not auto and not (sizes and all(is_integer(size) and size > 0 for size in sizes)):
            raise parameters.bad(self, "patch", "'auto', a positive integer or a list of positive integers")
        for name in ("filters", "pool"):
            parameters.check_count(self, name, ("auto",))
        for name in ("stride", "max_features"):
            parameters.check_count(self, name)
        parameters.check_choice(self, "pooling", ("average", "max"))
        parameters.check_number(self, "encoder_ridge", ("auto",), infinite=True)
        parameters.check_number(self, "contrast", ("auto", None))
        parameters.check_flag(self, "mirror", ("auto",))
        parameters.check_choice(self, "depth", ("auto", 1, 2))
        parameters.check_number(self, "threshold")
        parameters.check_number(self, "power")
        for name in ("both_signs", "tied"):
            parameters.check_flag(self, name)
        parameters.check_place(self)
        shape = self.image_shape
        if shape is not None and not (
            isinstance(shape, (tuple, list))
            and len(shape) in (2, 3)
            and all(is_integer(size) and size > 0 for size in shape)
        ):
            raise parameters.bad(self, "image_shape", "None, (height, width) or (height, width, channels)")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.three_d_array = True
        tags.array_api_support = True
        return tags
