"""The choice of image features by leave-one-out, and building them."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.multiclass import type_of_target

from .._arrays import Array, Space, dtype_name
from .._base.progress import Progress
from .._base.saveable import saveable
from .._data.rows import Rows
from .._data.targets import read_labels, read_numbers
from .._network.branches import Branch, blockwise, features_of_images, maps_of
from .._network.fit_output import HeadInput, OutputSpec
from .._network.network import FeatureCache, Network
from .._network.patches import PatchSpec, first_of, fit_patches, shape_of
from .._network.solving import fit_output
from .search import Judged, Search

PATCH_IMAGES = 4000
"""Images that patches are taken from, at most."""

SEARCH_IMAGES = 6000
SEARCH_FEATURES = 2400
"""How many images, and columns, candidates are compared with."""

MAP_BYTES = 2**28
"""Most that is held of a layer's maps while the next one is fitted (they are a quarter of the positions)."""

WORTH = 0.01
"""A change of structure must lower the leave-one-out loss by this fraction."""

FIRST_FILTERS = 64
"""Filters of a layer that is not the last: its maps are the next one's input."""

DEEP_SIDES = {2: 12, 3: 24}
"""So many pixels along the shorter side leave something to see for so many layers."""


@saveable
class ImagePlan(NamedTuple):
    """A choice of everything that can be found."""

    patch: tuple[int, ...]
    pool: int
    encoder_ridge: float
    contrast: float | None
    mirror: bool
    depth: int
    threshold: float = 0.25
    pooling: str = "average"


@dataclass(frozen=True)
class ImageSpec:
    """What to build, and what to leave to the search."""

    plan: ImagePlan
    """What is given, and a rule's value for what is not."""
    free: frozenset[str]
    """Fields of the plan that the search may change."""
    filters: int | None
    patches: PatchSpec
    power: float
    max_features: int
    block_rows: int | str
    seed: int

    def n_filters(self, plan: ImagePlan, columns: int) -> int:
        if self.filters is not None:
            return self.filters
        signs = 2 if self.patches.both_signs else 1
        return max(1, columns // (signs * plan.pool**2 * len(plan.patch)))


def build_branches(
    spec: ImageSpec, plan: ImagePlan, images: Array, filters: int, space: Space, *, decoders: bool = True
) -> list[Branch]:
    """One branch for each patch size, its filters from these images."""
    found = {name: getattr(plan, name) for name in ("encoder_ridge", "contrast", "threshold")}
    patches = spec.patches._replace(**found)
    further = patches._replace(stride=1)  # maps are halved as they are
    fit = partial(fit_patches, seed=spec.seed, decoders=decoders)
    images = first_of(images, PATCH_IMAGES)
    branches = []
    for patch in plan.patch:
        layers, maps = [], images
        for _ in range(plan.depth - 1):
            layer = fit(maps, patch, FIRST_FILTERS, patches if maps is images else further)
            h, w, _ = shape_of(maps)
            maps = first_of(maps, max(50, space.budget(MAP_BYTES) // (h * w * layer.width)))
            maps = blockwise(partial(maps_of, layer), maps, [layer], space, "auto")
            layers.append(layer)
            patch = max(1, min(4, *shape_of(maps)[:2]))
        layers.append(fit(maps, patch, filters, further if layers else patches))
        rows, columns = layers[-1].positions(shape_of(maps))
        grid = min(plan.pool, rows), min(plan.pool, columns)
        branches.append(Branch(layers, shape_of(images), grid, plan.pooling, spec.power, plan.mirror))
    return branches


class ImageSearch(Search[ImagePlan]):
    """One choice after another, each by the leave-one-out loss of a ridge on the features."""

    def __init__(self, spec: ImageSpec, images: Array, y: np.ndarray, space: Space, progress: Progress) -> None:
        super().__init__(progress)
        self.spec, self.images, self.space = spec, images, space
        self.side = min((s for s in shape_of(images)[:2] if s > 1), default=1)
        n = len(y)
        many = y.ndim == 1 and y.dtype.kind in "iu" and len(np.unique(y)) > max(50, n // 20)
        if many or type_of_target(y).startswith("continuous"):
            _, self.encoding = read_numbers(y, n, "float64", "ConvPILAE")
        else:
            _, self.encoding = read_labels(y, n, None, "ConvPILAE")
        targets = self.encoding.targets
        spread = np.ones(self.encoding.n_classes) if targets is None else np.std(targets, axis=0)
        self.scale = np.where(spread > 0, spread, 1.0)

    def run(self) -> tuple[ImagePlan, list[dict[str, Any]]]:
        plan = self.go() or self.winner()
        return plan, self.finished(plan) + self.left()

    def walk(self) -> ImagePlan:
        spec, side = self.spec, self.side
        plan = spec.plan
        [patch, *_] = plan.patch
        plan = self._improved(plan, "patch", [(p,) for p in (patch - 2, patch + 2) if 2 <= p <= side])
        plan = self._improved(plan, "encoder_ridge", [0.1, 10.0])
        plan = self._improved(plan, "mirror", [True])
        most = int((spec.max_features / (2 * len(plan.patch))) ** 0.5)
        grids = [g for g in (plan.pool - 1, plan.pool + 1, plan.pool + 2) if 1 <= g <= min(side, most)]
        plan = self._improved(plan, "pool", grids)
        plan = self._improved(plan, "pooling", ["average"])
        plan = self._improved(plan, "contrast", [0.01, None])
        plan = self._improved(plan, "threshold", [0.5, 1.0])
        if plan.patch[0] > 3:
            several = (plan.patch[0] - 2, plan.patch[0], plan.patch[0] + 2)
            plan = self._improved(plan, "patch", [several] if several[-1] <= side else [])
        for depth in (2, 3):
            if "depth" in spec.free and side >= DEEP_SIDES[depth] and plan.depth == depth - 1:
                one = (patch,) if "patch" in spec.free else plan.patch
                plan = self._better(plan, [plan._replace(depth=depth, patch=one)])
        self.loss(plan)
        return plan

    def _improved(self, plan: ImagePlan, name: str, values: list) -> ImagePlan:
        return self._better(plan, [plan._replace(**{name: v}) for v in values]) if name in self.spec.free else plan

    def _better(self, plan: ImagePlan, others: list[ImagePlan]) -> ImagePlan:
        """The best of the others, if it is worth the change."""
        best = min(others, key=self.loss, default=plan)
        return best if self.loss(best) < (1 - WORTH) * self.loss(plan) else plan

    def judge(self, plan: ImagePlan, near: float | None) -> Judged | None:
        spec, space = self.spec, self.space
        columns = min(spec.max_features, SEARCH_FEATURES)
        filters = min(spec.n_filters(plan, columns), max(1, columns // (2 * plan.pool**2)))
        branches = build_branches(spec, plan, self.images, filters, space, decoders=False)
        F = features_of_images(branches, self.images, spec.block_rows, space)
        if int(F.shape[0]) < 2 * int(F.shape[1]):  # nearly interpolated: float32 would decide by rounding
            F = space.asarray(F, "float64")
        rows = Rows(F, space, **self.encoding._asdict(), dtype=dtype_name(F))
        head_input = HeadInput(rows, rows, FeatureCache(Network(space, rows.dtype)), rows.d)
        head = fit_output(head_input, None, np.zeros(rows.n, bool), OutputSpec("auto", self.scale))
        about = plan._asdict() | {"rows": rows.n, "filters": filters}
        scores = head.residuals()
        # classes are compared by squared errors, too, as they always were
        return Judged([scores], [scores.row_errors(self.scale)], head.output, self.scale, about)

    def in_words(self, plan: ImagePlan) -> str:
        return ", ".join(f"{name} {value}" for name, value in plan._asdict().items())
