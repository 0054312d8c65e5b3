"""Images as users pass them: arrays of them, or rows of numbers."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.sparse

from .._arrays import Array, Space, namespace, space_of, to_numpy
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
            if fitted is not None and shape != fitted.image_shape:
                raise other_shape(shape, fitted.image_shape, type(self).__name__)
        known = None if fitted is None else fitted.columns
        X, columns = check_X(X, type(self).__name__, known, min_rows=2 if fitted is None else 1)
        if columns.count < 2:
            raise ValueError(
                f"Found images with 1 feature(s) (shape={tuple(X.shape)}): there is nothing to cut patches of."
            )
        return X, shape or shape_of_rows(columns.count, self.image_shape), columns

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = False
        return tags


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
        f"{fitted[0]} x {fitted[1]} with {fitted[2]}: bring them to that size."
    )
