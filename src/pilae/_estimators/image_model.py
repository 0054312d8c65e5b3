"""What a `PILAEImageClassifier` knows: a kernel, images to compare with, an output layer."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .._arrays import Array, namespace
from .._base.saveable import check_dtype, check_shape, saveable
from .._base.scalars import is_integer
from .._base.warn import warn
from .._data.targets import Classes
from .._network.angles import AngleKernel, Cells
from .._network.branches import Images
from .._network.compared import ANSWERED_BYTES, are_few, copied, moves
from .._network.head import LinearHead
from .._search.angles import AnglePlan
from .fitted import LeftOut
from .image_input import FittedToImages

LOOKED_AT = 1000
"""Images whose levels are compared with those of fit."""

LEVELS = 4.0
"""Images whose largest pixel is beyond this are not from 0 to 1, even where contrast was raised."""


@saveable
@dataclass(frozen=True, eq=False)
class FittedImageModel(FittedToImages):
    """A kernel, the images to compare with, and an output layer on what others have in common with these."""

    kernel: AngleKernel
    anchors: np.ndarray
    """Rows of pixels as they came."""
    head: LinearHead
    targets: Classes
    plan: AnglePlan
    search: list[dict[str, Any]]
    loo_score: float
    loo_predictions: LeftOut
    stats: dict[str, float]
    kept: list[Cells] = field(default_factory=list)
    """Unit vectors of the anchors, where they are few."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "largest"} | {"kept": []}

    @property
    def patch(self) -> int | list[int]:
        return self.plan.patch[0] if len(self.plan.patch) == 1 else list(self.plan.patch)

    @property
    def has_all(self) -> bool:
        """Whether others are compared with every image that it was fitted on."""
        return len(self.anchors) == self.stats["rows"]

    @property
    def optimism(self) -> float:
        """What was taken off its score; earlier versions took nothing."""
        return self.stats.get("optimism", 0.0)

    @property
    def filters(self) -> int:
        return self.kernel.branches[0].layers[0].width // 2

    @cached_property
    def largest(self) -> float:
        """Pixel of the images that others are compared with."""
        return float(self.anchors.max())

    def check_levels(self, X: Array) -> None:
        """A warning where pixels are from 0 to 1 that were from 0 to more in `fit`, or the other way round."""
        then, now = self.largest, float(namespace(X).max(X[: min(LOOKED_AT, int(X.shape[0])), :]))
        if 0 < now <= 1 < LEVELS < then or then <= 1 < LEVELS < now:
            warn(
                f"The largest pixel is {now:g}, and it was {then:g} in the images of fit: if these are the same levels "
                "on another scale, bring them to that one."
            )

    def anchor_cells(self, block_rows: int | str) -> Cells:
        if self.kept:
            return self.kept[0]
        anchors = copied(Images(self.anchors, self.image_shape, self.space, self.dtype), self.plan.shift)
        cells = self.kernel.cells(anchors, self.space, block_rows)
        self.keep(cells)
        return cells

    def keep(self, cells: Cells | None) -> None:
        """For the next prediction, where they are few."""
        if cells is not None and are_few(cells, self.kernel, self.space):
            self.kept.append(cells)

    def outputs(self, images: Images, block_rows: int | str) -> Array:
        """What the output layer says of images."""
        space, there = self.space, self.anchor_cells(block_rows)
        n, most = images.shape[0], space.budget(ANSWERED_BYTES) // 4
        step = max(1, min(most // self.kernel.numbers, most // int(there.own.shape[0])))
        xp, output, parts = space.xp, self.head.output, []
        for start in range(0, n, step):
            cells = self.kernel.cells(images[start : min(start + step, n), ...], space, block_rows)
            K = xp.astype(self.kernel(cells, there, space), xp.float64)  # large terms of either sign cancel
            parts.append(xp.astype(K @ output.coef + output.intercept, getattr(xp, self.dtype)))
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)

    def check(self) -> None:
        """An error where the parts of a model that was read do not fit together."""
        check_dtype(self.dtype)
        self.kernel.check(self.image_shape)
        check_shape(self.anchors, len(self.anchors), self.columns.count)
        if self.anchors.dtype.kind not in "biuf":
            raise TypeError("images are numbers")
        if not is_integer(self.plan.shift) or self.plan.shift < 0:
            raise TypeError("a shift is a number of pixels")
        copies = len(moves(self.image_shape, self.plan.shift))
        self.head.check_shapes(len(self.anchors) * copies, self.targets.n_outputs)
        self.targets.check_shapes()
