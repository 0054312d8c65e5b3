"""The choice of what images are compared by: patches, grid and bends, by leave-one-out on some images."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array, Space
from .._base.progress import Progress
from .._base.saveable import saveable
from .._engine.dual import Dual, solve_dual
from .._network.angles import AngleKernel
from .._network.branches import Branch
from .._network.compared import in_common, moves, with_copies
from .._network.output import Output
from .._network.patches import PatchSpec, Shape, first_of, fit_patches, shape_of, stride_for
from .images import PATCH_IMAGES, WORTH
from .search import Judged, Merits, Search, row_losses

RIDGES = (1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0)
"""Output ridges that are tried, relative to the mean of the diagonal of K. Wrong labels need the large ones."""

MIDDLE, NOISY = 1e-2, 0.3
"""Of candidates, unless the first of them is best at the second or beyond: there labels are wrong, and all are compared
at its own. Below that a sample wants more than all images do."""

ROUNDS = 2

ENCODER_RIDGES, CONTRASTS = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0), (1e-3, 1e-2, 0.1, 1.0)
THRESHOLDS, BENDS = (0.25, 0.5, 1.0, 1.5, 2.0, 2.5), (1.0, 2.0, 4.0, 8.0)
"""Values that candidates may have, in order: from where they are one way or the other."""

SMOOTH = {"smooth": "smooth ", "average": ""}

PIXELS = 28
"""Copies are moved by a pixel, or two, of images of about so many along their shorter side."""


def ways(values: Sequence, now: Any) -> tuple[list, list]:
    """Those below, downwards, and those above, upwards."""
    return [v for v in reversed(values) if v < now], [v for v in values if v > now]


@saveable
class AnglePlan(NamedTuple):
    """A choice of everything that can be found."""

    patch: tuple[int, ...]
    pool: int
    encoder_ridge: float
    contrast: float | None
    threshold: float
    mirror: bool
    inner: float = 2.0
    outer: float = 1.0
    shift: int = 0
    """Pixels that copies of an image are moved by; 0: there are none."""
    pooling: str = "average"


@dataclass(frozen=True)
class AngleSpec:
    """What to compare by, and what to leave to the search."""

    plan: AnglePlan
    free: frozenset[str]
    filters: int | None
    """Of each patch size; None: as many as there is room for."""
    block_rows: int | str
    seed: int


def build_kernel(plan: AnglePlan, images: Array, filters: int, seed: int) -> AngleKernel:
    """The kernel of a plan, its filters from patches of these images."""
    images = first_of(images, PATCH_IMAGES)
    shape, branches = shape_of(images), []
    for patch in plan.patch:
        step = step_of(shape, patch, plan.mirror)
        spec = PatchSpec(step, plan.threshold, True, False, plan.encoder_ridge, plan.contrast, plan.mirror)
        layer = fit_patches(images, patch, filters, spec, seed, decoders=False)
        rows, columns = layer.positions(shape)
        grid = min(plan.pool, rows), min(plan.pool, columns)
        branches.append(Branch([layer], shape, grid, plan.pooling, 0.5, False))
    return AngleKernel(branches, plan.inner, plan.outer, plan.mirror)


def step_of(shape: Shape, patch: int, mirror: bool) -> int:
    """Pixels between patches: more than one in large images. With mirror images the last patch ends at the edge."""
    most = stride_for(shape)
    left = max(0, shape.width - patch)
    return next(step for step in range(most, 0, -1) if not (mirror and left % step))


class AngleSearch(Search[AnglePlan]):
    """One choice after another, each by leave-one-out of the output layer that compares with all images of a sample."""

    luck = 0.0
    """What of the score of the choice is the luck of having been chosen."""
    middle = MIDDLE
    """The output ridge that candidates are compared at."""

    def __init__(
        self,
        spec: AngleSpec,
        images: Array,
        Z: np.ndarray,
        filters: int,
        space: Space,
        progress: Progress,
        merits: Merits | None = None,
    ) -> None:
        super().__init__(progress, merits)
        self.spec, self.images, self.Z, self.filters, self.space = spec, images, Z, filters, space
        self.side = min((s for s in shape_of(images)[:2] if s > 1), default=1)

    def found(self, ridge: float | None, rows: int) -> tuple[AnglePlan, list[dict[str, Any]], list[float]]:
        """The plan, the table of candidates, and output ridges to try on so many rows: on many one factor is enough of
        work, so the ridge is that of the sample."""
        classes = np.count_nonzero(self.Z.any(axis=0))
        plan, table = self.run() if self.spec.free and classes > 1 else (self.spec.plan, [])
        if ridge is not None:
            return plan, table, [ridge]
        several = list(RIDGES)
        return plan, table, several if rows <= len(self.Z) else [self.solved(plan, several).ridge]

    def run(self) -> tuple[AnglePlan, list[dict[str, Any]]]:
        with contextlib.suppress(ValueError):  # by the first plan the images are all alike
            ridge = self.solved(self.spec.plan, list(RIDGES)).ridge
            self.middle = ridge if ridge >= NOISY else MIDDLE
        plan = self.go() or self.winner()
        if not self.table:  # there is no choice, and this says why
            self.solved(plan, [self.middle])
        self.luck = self.optimism(plan, self.spec.seed)
        return plan, self.finished(plan) + self.left()

    def walk(self) -> AnglePlan:
        plan, pixel = self.spec.plan, max(1, self.side // PIXELS)
        self.loss(plan)  # first: when time is used up, it is what is left
        for _ in range(ROUNDS):  # one choice changes what the others are worth
            plan = self._round(plan)
        [patch, *_] = plan.patch
        if len(plan.patch) == 1:
            sizes = [(max(2, patch - step), patch, patch + step) for step in (2, 3)]
            plan = self._improved(plan, "patch", *([s] for s in sizes if s[0] < patch and s[-1] <= self.side))
        if self.space.is_cuda and len(plan.patch) > 1:  # where candidates cost next to nothing
            plan = self._round(plan)
        return self._improved(plan, "shift", [pixel, 2 * pixel])

    def _round(self, plan: AnglePlan) -> AnglePlan:
        """Every choice once."""
        plan = self._improved(plan, "encoder_ridge", *ways(ENCODER_RIDGES, plan.encoder_ridge))
        plan = self._improved(plan, "mirror", [not plan.mirror])
        if len(plan.patch) == 1:
            [patch] = plan.patch
            sides = [p for p in range(max(2, patch - 2), patch + 5) if p <= self.side]
            smaller, larger = ([(p,) for p in way] for way in ways(sides, patch))
            plan = self._improved(plan, "patch", smaller, larger[1::2])
        plan = self._improved(plan, "pool", *ways(range(1, min(self.side, plan.pool + 3) + 1), plan.pool))
        plan = self._improved(plan, "pooling", [pooling for pooling in SMOOTH if pooling != plan.pooling])
        plan = self._improved(plan, "threshold", *ways(THRESHOLDS, plan.threshold))
        if plan.contrast is not None:
            plan = self._improved(plan, "contrast", *ways(CONTRASTS, plan.contrast), [None])
        plan = self._improved(plan, "inner", *ways(BENDS, plan.inner))
        return self._improved(plan, "outer", *ways(BENDS, plan.outer))

    def _improved(self, plan: AnglePlan, name: str, *further: Sequence) -> AnglePlan:
        """The better of the ways, if it is worth the change, and on along it as long as it is."""
        if name not in self.spec.free:
            return plan
        begun = [[plan._replace(**{name: value}) for value in way] for way in further if way]
        for other in min(begun, key=lambda way: self.loss(way[0]), default=[]):
            if self.loss(other) >= (1 - WORTH) * self.loss(plan):
                break
            plan = other
        return plan

    def judge(self, plan: AnglePlan, near: float | None) -> Judged | None:
        scale = np.ones(self.Z.shape[1])
        try:
            found = self.solved(plan, [self.middle])
        except ValueError:  # by this the images are all alike
            return None
        output = Output(found.a, found.b, found.ridge, "dual", found.loo, None, {})
        about = plan._asdict() | {"rows": len(self.Z), "filters": self.filters}
        return Judged([found.loo], [row_losses(found.loo, scale, True)], output, scale, about)

    def solved(self, plan: AnglePlan, ridges: list[float]) -> Dual:
        """The output layer that compares with all images of the sample."""
        kernel = build_kernel(plan, self.images, self.filters, self.spec.seed)
        K = in_common(kernel, with_copies(self.images, plan.shift), self.space, self.spec.block_rows)
        copies = len(moves(shape_of(self.images), plan.shift))
        return solve_dual(K, self.Z, ridges, np.ones(self.Z.shape[1]), copies)

    def in_words(self, plan: AnglePlan) -> str:
        cells = f"{plan.pool} x {plan.pool} {SMOOTH[plan.pooling]}cells"
        words = f"patches of {' and '.join(map(str, plan.patch))}, {cells}"
        words += f", ridge {plan.encoder_ridge:g}, contrast {plan.contrast}, threshold {plan.threshold:g}"
        words += f", bends {plan.inner:g} and {plan.outer:g}" + (", mirror images" if plan.mirror else "")
        return words + (f", copies moved by {plan.shift}" if plan.shift else "")
