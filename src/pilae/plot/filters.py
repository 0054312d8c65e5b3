"""Filters of image features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._arrays import to_numpy
from .displays import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def filters_of(model: BaseEstimator, branch: int = 0) -> np.ndarray:
    """The first patch layer's filters of a fitted `ConvPILAE` or `PILAEImageClassifier` as images from 0 to 1, gray or
    with three channels."""
    check_is_fitted(model)
    branches = model.kernel_.branches if hasattr(model, "kernel_") else model.branches_
    layer = branches[branch].layers[0]
    count = layer.width // (2 if getattr(model, "both_signs", True) else 1)  # the other half are their negatives
    W = to_numpy(layer.weights)[:, :count].T.reshape(count, *layer.size, layer.channels).astype(float)
    W = W if layer.channels == 3 else W.mean(axis=3)
    flat = np.abs(W).reshape(count, -1).max(axis=1).reshape(-1, *[1] * (W.ndim - 1))
    return 0.5 + 0.5 * W / np.where(flat > 0, flat, 1.0)


@dataclass
class FiltersDisplay(Display):
    """What a patch of an image is compared with.

    Attributes
    ----------
    filters : ndarray of shape (count, height, width) or (count, height, width, 3)
        From 0 to 1; a half is no weight.
    """

    filters: np.ndarray

    @classmethod
    def from_estimator(cls, model: BaseEstimator, *, branch: int = 0, count: int = 64, ax: Axes | None = None) -> Self:
        """Draw the first filters of a fitted `ConvPILAE` or `PILAEImageClassifier`."""
        return cls(filters_of(model, branch)[:count]).plot(ax=ax)

    def _draw(self, ax: Axes) -> None:
        columns = int(np.ceil(len(self.filters) ** 0.5))
        n, h, w = self.filters.shape[:3]
        sheet = np.ones((-(-n // columns) * (h + 1) + 1, columns * (w + 1) + 1, *self.filters.shape[3:]))
        for k, each in enumerate(self.filters):
            top, left = (k // columns) * (h + 1) + 1, (k % columns) * (w + 1) + 1
            sheet[top : top + h, left : left + w] = each
        ax.imshow(sheet, cmap="gray", vmin=0, vmax=1)
        ax.set_axis_off()
