"""Images as users pass them: arrays of them, or rows of numbers."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.sparse

from .._arrays import Array, Space, namespace, space_of, to_numpy
from .._base.warn import warn
from .._data.check import check_same_space, check_X
from .._data.columns import Columns
from .._data.keys import row_keys
from .._data.labels import plain_labels
from .._network.branches import Images
from .._network.patches import Shape
from .fitted import Fitted, Fitting


@dataclass(frozen=True, eq=False)
class FittedToImages(Fitted):
    """What an estimator of images knows."""

    image_shape: Shape
    space: Space
    dtype: str


LEAST_IMAGE = 64
"""Rows of so many numbers are hardly meant as strips."""

COLOURS = (1, 3)
"""Channels that images of a camera have."""

F = TypeVar("F", bound=FittedToImages)


class TakesImages(Fitting[F], Generic[F]):
    """An estimator whose rows are images."""

    def _to_ask(self, fitted: F, X: Any, method: str) -> tuple[Images, Space]:
        """Images as the branches take them, and where X lives."""
        X, _, _ = self._images(X, fitted)  # rows of as many numbers are taken as images of the shape of `fit`
        if self.device is None:
            check_same_space(type(self).__name__, method, X, fitted.space)
        return Images(X, fitted.image_shape, fitted.space, fitted.dtype), space_of(X)

    def _images(self, X: Any, fitted: F | None) -> tuple[Array, Shape, Columns]:
        """X as rows of numbers, the shape of an image, and the columns."""
        if scipy.sparse.issparse(X):
            raise ValueError(f"{type(self).__name__} does not take sparse data: images are dense, use X.toarray().")
        if not hasattr(X, "ndim"):
            try:
                X = np.asarray(X)
            except ValueError:  # one list of arrays of several shapes
                raise ValueError(
                    "The images are of several sizes, or some are gray and some have colours: bring them to one, as "
                    "pilae.datasets.load_images does for files."
                ) from None
        if X.ndim not in (2, 3, 4):
            raise ValueError(
                f"Expected images as a 3D or 4D array, or a 2D array of rows, got {X.ndim}D array instead. Reshape "
                "your data to (images, height, width) or (images, height, width, channels)."
            )
        shape = None
        if fitted is not None and tuple(X.shape) == _without_batch(fitted.image_shape, X.ndim):
            raise ValueError(
                f"X has the shape of one image, {tuple(X.shape)}: give images one after another, X[None] for a single "
                "one."
            )
        if X.ndim > 2:
            shape = Shape(*(int(size) for size in X.shape[1:]), *([1] if X.ndim == 3 else []))
            if 0 in shape:
                raise ValueError(f"Images have no pixels: their shape is {tuple(X.shape[1:])}.")
            if fitted is None:
                self._check_layout(shape)
            X = namespace(X).reshape(X, (int(X.shape[0]), shape[0] * shape[1] * shape[2]))
            if fitted is not None and shape != fitted.image_shape:
                raise other_shape(shape, fitted.image_shape, type(self).__name__)
        known = None if fitted is None else fitted.columns
        try:
            X, columns = check_X(X, type(self).__name__, known, min_rows=2 if fitted is None else 1)
        except ValueError as error:
            if shape is not None and "NaN" in str(error):  # what fills gaps in tables takes no images
                raise ValueError(
                    "X contains NaN, and pixels are numbers: set those that are missing to one, for example with "
                    "numpy.nan_to_num(X), or leave those images out."
                ) from None
            raise
        if columns.count < 2:
            raise ValueError(
                f"Found images with 1 feature(s) (shape={tuple(X.shape)}): there is nothing to cut patches of."
            )
        taken = shape or shape_of_rows(columns.count, self.image_shape)
        said = fitted is not None or shape is not None or self.image_shape is not None
        if not said and taken.height == 1 and taken.width >= LEAST_IMAGE:
            warn(
                f"Rows of {columns.count} numbers are no square images and are taken as strips of one pixel's height: "
                "say what they are with image_shape=(height, width) or (height, width, channels)."
            )
        return X, taken, columns

    def _check_layout(self, shape: Shape) -> None:
        """Arrays say themselves what shape their images have, the channels last."""
        if shape.height in COLOURS and shape.channels > max(COLOURS) and 2 * shape.channels > shape.width:
            raise ValueError(
                f"Images of {shape.height} x {shape.width} pixels with {shape.channels} channels: the channels seem to "
                "stand first. Give X.transpose(0, 2, 3, 1), with the channels last (images that are so can be given as "
                "rows, with image_shape)."
            )
        if self.image_shape is not None and (*self.image_shape, 1)[:3] != tuple(shape):
            raise ValueError(
                f"image_shape={self.image_shape!r} is for images that come as rows, and these are an array of "
                f"{shape.height} x {shape.width} with {shape.channels} channel(s): leave image_shape out."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = False
        return tags


def _without_batch(shape: Shape, dimensions: int) -> tuple[int, ...] | None:
    """The shape that one image alone has as an array of so many dimensions, where that cannot be several images."""
    if dimensions == 3 and shape.channels > 1:
        return tuple(shape)
    return (shape.height, shape.width) if dimensions == 2 and shape.channels == 1 and shape.height > 1 else None


def sample_of(X: Array, seed: int, most: int) -> np.ndarray:
    """The images of smallest key, in order of the key: the same ones in any order of the rows. Of equal images one
    counts, with the target of the first."""
    n = int(X.shape[0])
    keys = np.concatenate([row_keys(X[a : min(a + 4096, n), :], seed) for a in range(0, n, 4096)])
    _, first = np.unique(keys, return_index=True)
    return first[:most]


def labels_of_images(y: Any, n: int, name: str) -> np.ndarray:
    """Targets to choose by, one for each image."""
    labels = to_numpy(plain_labels(y))
    if labels.ndim == 0 or len(labels) != n:
        raise ValueError(f"X has {n} images but y has {labels.size} targets: give one target for each image.")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"y contains NaN or infinity, which {name} does not take: leave those images out.")
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def shape_of_rows(d: int, image_shape: tuple[int, ...] | None) -> Shape:
    """Of images that come as rows of d numbers: what is given, else square if they can be, else strips."""
    if image_shape is None:
        side = round(d**0.5)
        return Shape(side, side, 1) if side * side == d else Shape(1, d, 1)
    shape = Shape(*image_shape, *([1] if len(image_shape) == 2 else []))
    if shape[0] * shape[1] * shape[2] != d:
        raise ValueError(
            f"Rows of {d} numbers are not images of image_shape={image_shape!r}: the product of its sizes must be {d}."
        )
    return shape


def other_shape(shape: Shape, fitted: Shape, name: str) -> ValueError:
    return ValueError(
        f"Images are {shape[0]} x {shape[1]} with {shape[2]} channel(s), but {name} was fitted on "
        f"{fitted[0]} x {fitted[1]} with {fitted[2]}: bring them to that size and those channels."
    )
