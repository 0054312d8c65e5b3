"""`ConvPILAE`: image features, in front of any classifier."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from .._arrays import dtype_name, space_for, take_rows
from .._base.progress import CallbackSupportMixin, Progress, with_callbacks
from .._base.saveable import check_dtype, saveable
from .._base.scalars import is_integer, seed_of
from .._data.check import check_pixels
from .._network.branches import Branch, blockwise, features_of_images
from .._network.patches import PatchSpec, Shape, stride_for
from .._search.images import SEARCH_IMAGES, ImagePlan, ImageSearch, ImageSpec, build_branches
from ..export import OnnxMixin
from ..save import SaveMixin
from . import parameters
from .fitted import attribute
from .image_input import FittedToImages, TakesImages, labels_of_images, sample_of


@saveable
@dataclass(frozen=True, eq=False)
class FittedImages(FittedToImages):
    """Image features: branches of patch layers, and why they are these."""

    branches: list[Branch]
    plan: ImagePlan
    filters: int
    search: list[dict[str, Any]]

    @property
    def features_out(self) -> int:
        return sum(branch.width for branch in self.branches)

    @property
    def patch(self) -> int | list[int]:
        sides = [max(branch.layers[0].size) for branch in self.branches]
        return sides[0] if len(sides) == 1 else sides

    @property
    def pool(self) -> int:
        return max(self.branches[0].grid)

    def check(self) -> None:
        """An error where the parts of a model that was read do not fit together."""
        check_dtype(self.dtype)
        height, width, channels = self.image_shape
        if height * width * channels != self.columns.count:
            raise ValueError(f"{self.columns.count} numbers for an image of {self.image_shape}")
        for branch in self.branches:
            branch.check(self.image_shape)
        images = np.zeros((1, height, width, channels), dtype=self.dtype)
        if features_of_images(self.branches, images, 1, self.space).shape[1] != self.features_out:
            raise ValueError(f"not {self.features_out} features")


@saveable
class ConvPILAE(
    SaveMixin,
    OnnxMixin,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    TakesImages[FittedImages],
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
    pooling : {"auto", "smooth", "average", "max"}, default="auto"
        Of a cell: the average or the largest of its responses, or an average that reaches into the neighbouring cells,
        where responses count the less the further they are: as if features were averaged over copies of the image
        that are moved a little, at the cost of one. "auto" is smooth, unless plain averages are better.
    encoder_ridge : "auto" or float from 0 to infinity, default="auto"
        eps, relative to the mean of the diagonal of X'X. Small values whiten the patches.
    contrast : "auto", float or None, default="auto"
        Local contrast normalisation: each patch loses its mean and is divided by the root of its variance plus this
        fraction of the mean variance. None leaves patches as they are.
    mirror : "auto" or bool, default="auto"
        Average the features of an image and of its mirror image: right for objects, wrong for digits.
    depth : {"auto", 1, 2, 3}, default="auto"
        Patch layers. One that is not the last has 64 filters, and its halved maps are the images of the next.
    stride : "auto" or int, default="auto"
        Step between patches of the first layer. "auto": 1, and more of images with more than 95 pixels a side.
    threshold : "auto" or float, default="auto"
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
    patch_, pool_, pooling_, encoder_ridge_, contrast_, threshold_, mirror_, depth_, filters_
        What was found or given.
    search_ : list of dict
        Every candidate with the squared leave-one-out error of a ridge on its features (empty without `y`).
    n_features_in_, feature_names_in_
        Numbers of an image, and their names where they have some.

    Notes
    -----
    With "auto" parameters and a `y`, as in a pipeline, they are chosen by the squared leave-one-out error of a linear
    output layer on at most 6,000 training images. Without a `y` they are: patches of a quarter of the side, 4 x 4
    smooth cells, ridge 1, contrast 0.1, threshold 0.25, no mirror, one layer.

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

    branches_ = attribute("branches")
    search_ = attribute("search")
    image_shape_ = attribute("image_shape")
    pool_ = attribute("pool")
    pooling_ = attribute("plan.pooling")
    encoder_ridge_ = attribute("plan.encoder_ridge")
    mirror_ = attribute("plan.mirror")
    depth_ = attribute("plan.depth")
    threshold_ = attribute("plan.threshold")
    filters_ = attribute("filters")
    patch_ = attribute("patch")
    _n_features_out = attribute("features_out")

    @property
    def contrast_(self) -> float | None:
        """What was found or given."""
        return self._read().plan.contrast

    def __init__(
        self,
        patch="auto",
        filters="auto",
        *,
        pool="auto",
        pooling="auto",
        encoder_ridge="auto",
        contrast="auto",
        mirror="auto",
        depth="auto",
        stride="auto",
        threshold="auto",
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
        parameters.remember(self, locals())

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
        parameters.check(self, parameters.IMAGES)
        return self._refitted(partial(self._fitted_to, X, y, Progress(self.verbose)), X, y)

    def _fitted_to(self, X: Any, y: Any, progress: Progress) -> FittedImages:
        X, shape, columns = self._images(X, None)
        spec, space = self._spec(shape), space_for(X, self.device)
        progress.begin(self)
        dtype = self.dtype or ("float64" if dtype_name(X) == "float64" else "float32")
        chosen = sample_of(X, spec.seed, SEARCH_IMAGES)
        some = take_rows(X, chosen)
        check_pixels(some, dtype, fit=True)
        images = space.xp.reshape(space.asarray(some, dtype), (len(chosen), *shape))
        plan: ImagePlan = spec.plan
        search: list[dict[str, Any]] = []
        if y is not None:
            labels = labels_of_images(y, int(X.shape[0]), "ConvPILAE")[chosen]
            if spec.free and len(np.unique(labels)) > 1:
                plan, search = ImageSearch(spec, images, labels, space, progress).run()
        progress.stage("filters")
        branches = build_branches(spec, plan, images, spec.n_filters(plan, spec.max_features), space)
        progress.close()
        filters = branches[0].layers[-1].width // (2 if self.both_signs else 1)
        progress.end()
        return FittedImages(columns, shape, space, dtype, branches, plan, filters, search)

    def _spec(self, shape: Shape) -> ImageSpec:
        """The parameters as the search takes them: what is "auto" has a rule's value, and is free."""
        side = max(shape[:2])
        rules: dict[str, Any] = {
            "patch": min(max(3, side // 4), 9),
            "pool": max(1, min(4, side // 4)),
            "encoder_ridge": 1.0,
            "contrast": 0.1,
            "mirror": False,
            "depth": 1,
            "threshold": 0.25,
            "pooling": "smooth",
        }
        free = frozenset(name for name in rules if parameters.is_auto(getattr(self, name)))
        value = {name: rules[name] if name in free else getattr(self, name) for name in rules}
        patches = (value["patch"],) if is_integer(value["patch"]) else tuple(value["patch"])
        plan = ImagePlan(
            tuple(dict.fromkeys(min(int(p), side) for p in patches)),  # no two the same
            min(int(value["pool"]), side),
            float(value["encoder_ridge"]),
            value["contrast"],
            bool(value["mirror"]),
            int(value["depth"]),
            float(value["threshold"]),
            value["pooling"],
        )
        stride = parameters.unless_auto(self.stride, int) or stride_for(shape)
        return ImageSpec(
            plan,
            free,
            parameters.unless_auto(self.filters, int),
            PatchSpec(stride, both_signs=bool(self.both_signs), tied=bool(self.tied)),
            self.power,
            int(self.max_features),
            self.block_rows,
            seed_of(self.random_state),
        )

    def _check_loaded(self) -> None:
        self._read().check()

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
        fitted = self._read()
        images, home = self._to_ask(fitted, X, "transform")
        return home.asarray(features_of_images(fitted.branches, images, self.block_rows, fitted.space))

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
        X, fitted = X if hasattr(X, "ndim") else np.asarray(X), self._read()
        images, home = self._to_ask(fitted, X, "reconstruct")
        layers = [branch.layers[0] for branch in fitted.branches]
        parts = [blockwise(layer.rebuild, images, [layer], fitted.space, self.block_rows) for layer in layers]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return home.xp.reshape(home.asarray(total / float(len(parts))), tuple(int(size) for size in X.shape))
