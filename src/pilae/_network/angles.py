r"""Two images compared by angles: hidden layers of infinite width, one for each cell of the grid and one for the image.

A branch of patch layers gives each cell c of an image a vector of pooled responses, brought to length 1: u_c. Two
images have in common

    s(x, x') = sum_c exp(g (u_c . u_c' - 1)),    k(x, x') = exp(h (s(x, x') / sqrt(s(x, x) s(x', x')) - 1)),

a function of the angles at every cell, then of the angle between the whole. Both are inner products of infinitely many
features, so that k can stand for K of an output layer.

Where an image and its mirror image are to be the same, s has a second sum, with the cells of the mirrored x'. Filters
come in mirrored pairs then, so that mirroring an image only changes the places of its responses, and outputs are
the same for both, to the rounding of sums in another order. With s itself for k a fit would be the one on all images
and their mirror images; k bends the sum of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._arrays import Array, Space, dtype_name, inner_products, overwritten_by_exp, space_of
from .._arrays.threads import in_parts
from .._base.saveable import saveable
from .branches import Branch, Images, blockwise
from .patches import Shape

NUMBERS_AT_ONCE = 2**26
"""Numbers of unit vectors looked at at once on a CPU; a multiple of it on a GPU."""

CACHED, TILE = 2**20, 4096
"""Numbers of s made at once on a CPU, where they stay in a cache; rows and columns on a GPU."""

MOST_BENT = 1e3
"""Beyond it nothing is like anything else."""

SHORTEST = 1e-6
"""A cell in which no filter answered has no direction: its vector stays zero."""


class Cells(NamedTuple):
    """What is compared of some images: for each branch unit vectors, images x cells x responses, and s(x, x)."""

    units: list[Array]
    own: Array


@saveable
@dataclass(frozen=True, eq=False, repr=False)
class AngleKernel:
    """Says what two images have in common, from 0 to 1."""

    branches: list[Branch]
    inner: float
    outer: float
    mirrored: bool

    @property
    def numbers(self) -> int:
        """That are compared of an image."""
        return sum(branch.width for branch in self.branches)

    def __repr__(self) -> str:
        bends = f"inner={self.inner:g}, outer={self.outer:g}, mirrored={self.mirrored}"
        return f"AngleKernel({len(self.branches)} patch sizes, {self.numbers:,} responses an image, {bends})"

    def cells(self, images: Array | Images, space: Space, block_rows: int | str = "auto") -> Cells:
        """Unit vectors of all cells. On a GPU they are rounded to half precision: what is compared are the angles of
        the rounded vectors, exactly."""
        units = []
        for branch in self.branches:

            def of(X: Array, branch: Branch = branch) -> Array:
                xp = space.xp
                F = branch(X)
                F = xp.reshape(F, (int(F.shape[0]), branch.grid[0] * branch.grid[1], -1))
                length = xp.sqrt(xp.sum(F * F, axis=2, keepdims=True))
                F = F / xp.clip(length, min=SHORTEST)
                return xp.astype(F, xp.float16) if space.is_cuda else F

            units.append(blockwise(of, images, branch.layers, space, block_rows))
        return Cells(units, self._own(units, space))

    def _own(self, units: list[Array], space: Space) -> Array:
        """s(x, x), in float32 like the sums it divides."""
        xp = space.xp
        step = max(1, space.budget(NUMBERS_AT_ONCE) // max(1, self.numbers))
        parts = []
        n = int(units[0].shape[0])
        for rows in (slice(start, min(start + step, n)) for start in range(0, n, step)):
            total: Array = 0.0
            for branch, unit in zip(self.branches, units, strict=True):
                kind = xp.float32 if dtype_name(unit) == "float16" else unit.dtype
                U = xp.astype(unit[rows, :, :], kind)
                total = total + xp.sum(self._bent(xp.sum(U * U, axis=2)), axis=1)
                if self.mirrored:
                    total = total + xp.sum(self._bent(xp.sum(U * mirrored(branch, U), axis=2)), axis=1)
            parts.append(total)
        return xp.concat(parts)

    def _bent(self, cosine: Array) -> Array:
        """exp(g (cosine - 1)), written over it."""
        cosine -= 1.0
        cosine *= self.inner
        return overwritten_by_exp(cosine)

    def __call__(self, one: Cells, other: Cells, space: Space) -> Array:
        """k of each image of one with each of the other, in float32, or float64 where the images are."""
        xp, alike = space.xp, one is other  # then what is right of the diagonal is left of it, too
        n, m = int(one.own.shape[0]), int(other.own.shape[0])
        K = xp.zeros((n, m), dtype=one.own.dtype, device=space.device)
        for branch, A, B in zip(self.branches, one.units, other.units, strict=True):
            for cell in range(int(A.shape[1])):
                partners = [B[:, cell, :]]
                if self.mirrored:
                    mirror_cell, responses = mirror_places(branch)
                    there = B[:, int(mirror_cell[cell]), :]
                    partners.append(xp.take(there, space.asarray(responses), axis=1))
                self._add(K, A[:, cell, :], partners, alike)
        roots = xp.sqrt(one.own), xp.sqrt(other.own)
        for rows in _parts(slice(0, n), m, space):
            columns = slice(0, rows.stop if alike else m)
            part = K[rows, columns]
            part /= roots[0][rows, None]
            part /= roots[1][None, columns]
            part -= 1.0
            part *= self.outer
            K[rows, columns] = overwritten_by_exp(part)
            if alike:
                K[rows, rows] = xp.tril(K[rows, rows]) + xp.tril(K[rows, rows], k=-1).mT
                K[: rows.start, rows] = K[rows, : rows.start].mT
        return K

    def _add(self, K: Array, A: Array, partners: list[Array], alike: bool) -> None:
        """Add what one cell says to s."""
        space, (n, m) = space_of(K), (int(size) for size in K.shape)

        def add(part: slice) -> None:
            for rows in _parts(part, m, space):
                # of few new images the products are the same for all columns anyway
                left = _whole(A, rows) if alike else A[rows, :]
                for columns in _across(rows.stop if alike else m, space):
                    for B in partners:
                        found = inner_products(left, _whole(B, columns))
                        found = found[: rows.stop - rows.start, : columns.stop - columns.start]
                        K[rows, columns] += self._bent(found)

        if isinstance(K, np.ndarray):
            in_parts(add, n, 2.0 * n * m * int(A.shape[1]))
        else:
            add(slice(0, n))

    def check(self, shape: Shape) -> None:
        """An error where what was read from a file is no kernel for images of this shape."""
        for bend in (self.inner, self.outer):
            if type(bend) is not float or not 0 < bend < MOST_BENT:
                raise TypeError("a bend is a number above 0")
        if type(self.mirrored) is not bool or not isinstance(self.branches, list) or not self.branches:
            raise TypeError("no branches")
        for branch in self.branches:
            branch.check(shape)
            if self.mirrored and branch.layers[-1].width % 4:
                raise ValueError("filters without their mirror images")


def _tile(space: Space) -> int | None:
    """Rows and columns of s that are made at once, where these must be the same everywhere.

    The products of a GPU round towards zero, each of its kernels in another way, and which one is taken depends on the
    shape. A matrix that is a little too small in one of its blocks is not positive definite.
    """
    return TILE if space.is_cuda else None


def _parts(rows: slice, m: int, space: Space) -> list[slice]:
    """Rows of s that are made at once."""
    step = _tile(space) or max(1, CACHED // max(1, m))
    return [slice(start, min(start + step, rows.stop)) for start in range(rows.start, rows.stop, step)]


def _across(m: int, space: Space) -> list[slice]:
    """Columns of s that are made at once."""
    step = _tile(space) or m
    return [slice(start, min(start + step, m)) for start in range(0, m, step)]


def _whole(A: Array, rows: slice) -> Array:
    """These rows; of a last tile, with zeros below that make it as large as the others."""
    space, count = space_of(A), rows.stop - rows.start
    missing = (_tile(space) or count) - count
    if not missing:
        return A[rows, :]
    zeros = space.xp.zeros((missing, int(A.shape[1])), dtype=A.dtype, device=space.device)
    return space.xp.concat([A[rows, :], zeros])


def mirror_places(branch: Branch) -> tuple[np.ndarray, np.ndarray]:
    """(for each cell the one that is its mirror image, for each response that of the mirrored filter)."""
    rows, columns = branch.grid
    cells = np.arange(rows * columns).reshape(rows, columns)[:, ::-1].reshape(-1)
    quarters = np.arange(branch.layers[-1].width).reshape(2, 2, -1)  # sign, filter or its mirror image, filter
    return cells, quarters[:, ::-1].reshape(-1)


def mirrored(branch: Branch, units: Array) -> Array:
    """Vectors of the mirrored images."""
    space = space_of(units)
    cells, responses = (space.asarray(places) for places in mirror_places(branch))
    return space.xp.take(space.xp.take(units, cells, axis=1), responses, axis=2)
