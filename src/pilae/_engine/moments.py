r"""The additive statistic everything rests on.

For rows a_i (of A), b_i (of B) and weights w_i, `Moments` keeps

    W = sum w_i,   sum w_i a_i,   sum w_i b_i,   A'wA,   A'wB,   diag(B'wB)

about a fixed shift (c_a, c_b). Sums over rows add: any split of the rows into blocks, any order, any tree of
merges gives the same statistic up to rounding, and rows can be taken out again.

The shift is the mean of the first block: `A'A - W m m'` without one has no right digit when the mean is large
beside the spread. It changes rounding, never the result.
"""

import copy
import operator
from typing import Self

import numpy as np

from .._arrays import Array, Space, full_products
from .._arrays.buffers import empty
from .._arrays.kernels import column_squares, column_sums, diagonal, gram, matmul, pieces, shifted_into
from .._base.saveable import saveable

FLOAT32_RIDGE = 1e-5
"""A Gram that gets at least this ridge, relative to its mean diagonal, may be made of float32 products."""

SUMMED_ROWS = 4096
"""Rows of one float32 product outside NumPy: blocks are large on a GPU, and torch adds long columns less carefully."""

SAME = 1e-9
"""Sums that differ by less than this fraction may be of the same rows, added in another order."""

NOISE = {"float64": 1e-12, "float32": 1e-5}
"""What rounding may have left in sums, relative to the most they ever held, by dtype of the products."""

LEFT_NOISE = 1e3
"""Times `NOISE`: what may be left of the squares when the last row is taken out."""

CONSTANT = 1e-13
"""A column whose variance is below this fraction of its mean square is constant, and rounding makes the variance; one
whose standard deviation is below this fraction of its mean, too."""

ROUNDED = {"float64": CONSTANT, "float32": 1e-5}
"""A variance below this fraction of the squares about the shift is the rounding of their products, by their dtype."""

REMOVED = {"float64": 0.0, "float32": 1e-4}
"""Of the squares that were taken out of a column again, what may be left as rounding beyond that: a column that only
those rows had does not vary any more."""

VANISHED = 1e-250
"""Sums below it are nothing: numbers that went on fading would end where each operation takes a hundred times as long,
and never at zero."""

LARGEST = 1e305
"""Most that a sum times the number of columns may be: traces are made of it, and ridges of these."""

FAR = 1e4
"""The mean may be away from the shift by this many variances, squared distances compared, before sums that fade are
taken about another one: what they held about the old one fades, but what comes would lose digits."""


def product_under(ridge: float, space: Space, dtype: str) -> str:
    """The dtype of the products of a Gram of `dtype` rows that gets this ridge, relative to its mean diagonal."""
    return space.product(dtype) if ridge >= FLOAT32_RIDGE else "float64"


@saveable
class Moments:
    """Weighted first and second moments of pairs of row blocks (A, B).

    Parameters
    ----------
    space : Space
        Where the sums are kept.
    shifted : bool
        Accumulate about the first block's mean. Needed when centred moments will be read.
    product : {"float64", "float32"}
        Dtype of the block products. Sums are always float64. float32 is for float32 data and Grams that get a ridge
        (FLOAT32_RIDGE); whenever something depends on a rank or a pseudoinverse, products must be float64.
    full : bool
        Keep the whole A'wA; otherwise only its diagonal.

    Attributes
    ----------
    count : int
        Rows of positive weight. `weight` is the sum of their weights.

    Examples
    --------
    >>> import numpy as np
    >>> from pilae._arrays import NUMPY
    >>> A = np.arange(12.0).reshape(6, 2)
    >>> whole, parts = Moments(NUMPY), Moments(NUMPY)
    >>> whole.add(A)
    >>> parts.add(A[:2]); parts.add(A[2:])
    >>> bool(np.allclose(whole.gram(centred=True), parts.gram(centred=True)))
    True
    """

    def __init__(self, space: Space, *, shifted: bool = True, product: str = "float64", full: bool = True) -> None:
        self.space, self.shifted, self.product, self.full = space, shifted, product, full
        self.count = 0
        self.weight = 0.0
        self.heaviest = 0.0
        """The largest weight these sums ever held."""
        self.held = False
        """Whether the shift stays what it is although nothing is in yet."""
        nothing: Array = None
        self.shift_a = self.shift_b = self.sum_a = self.sum_b = self.aa = self.ab = self.bb = nothing
        self.largest: Array = 0.0
        """The largest diag(A'wA) these sums ever held; `largest_b` is the largest diag(B'wB)."""
        self.largest_b: Array = 0.0

    def add(self, A: Array, B: Array = None, weight: Array = None, *, scratch: bool = False) -> None:
        """Add rows. `weight` is one non-negative number a row; None means 1 each. `scratch`: A may be overwritten."""
        n = int(A.shape[0])
        step = max(n, 1) if self.product == "float64" or isinstance(A, np.ndarray) else SUMMED_ROWS
        for start in range(0, max(n, 1), step):  # in float32 only so many rows are added up
            part = slice(start, min(start + step, n))
            b, w = (None if x is None else x[part, ...] for x in (B, weight))
            with full_products(A):
                self._accumulate(self._of(A[part, :], b, w, scratch), 1.0)

    def remove(self, A: Array, B: Array = None, weight: Array = None) -> None:
        """Take rows out again. Refused, with nothing changed, when they cannot have been in."""
        self.subtract(self._of(A, B, weight))

    def subtract(self, removed: Self) -> None:
        """Take out the rows of another Moments, about the same shift (see `like`)."""
        slack = SAME * self.weight
        if removed.count > self.count or removed.weight > self.weight + slack:
            raise ValueError(
                f"Cannot remove {removed.count} rows of total weight {removed.weight:g}: only {self.count} rows of "
                f"total weight {self.weight:g} are in. Remove only rows that were added, with the weight they had."
            )
        if removed.count < self.count and self.weight - removed.weight <= slack:
            raise ValueError(
                f"Cannot remove rows of total weight {removed.weight:g}: beside them the {self.count - removed.count} "
                "rows that stay weigh so little that no digit is left of them. Fit again on the rows that stay."
            )
        if not self._may_hold(removed, all_of_them=self.weight - removed.weight <= slack):
            raise ValueError(
                "Cannot remove these rows: their squares do not fit into the sums kept, so they were never added. "
                "Remove only rows that were added, with the values and the weight they had."
            )
        self._accumulate(removed, -1.0)
        if self.weight > slack:  # parts of rows are left
            self.count = max(self.count, 1)
        else:  # an empty sum is exactly empty
            vars(self).update(vars(self.empty()))

    def _may_hold(self, removed: Self, all_of_them: bool) -> bool:
        """Whether the squares of these rows fit into the sums, and make them up if nothing else is in."""
        xp, noise = self.space.xp, NOISE[self.product]
        sides = [(self.squares(), removed.squares(), self.largest), (self.bb, removed.bb, self.largest_b)]
        for kept, taken, most in sides:  # sums that once held something large have lost the digits below it
            if kept is None or taken is None:
                continue
            if bool(xp.any(taken > kept * (1 + SAME) + noise * most)):
                return False
            if all_of_them and bool(xp.any(xp.abs(kept - taken) > LEFT_NOISE * noise * xp.max(most))):
                return False
        return True

    def merge(self, other: Self) -> None:
        """Add the rows of another Moments, whatever its shift."""
        if other.count:
            if self.count == 0:
                self.shift_a, self.shift_b = other.shift_a, other.shift_b
            same = other.shift_a is self.shift_a and other.shift_b is self.shift_b
            self._accumulate(other if same else other._about(self.shift_a, self.shift_b), 1.0)

    def fade(self, factor: float) -> None:
        """Multiply every weight, and what is remembered of the most these sums ever held."""
        xp = self.space.xp
        for name in ("sum_a", "sum_b", "aa", "ab", "bb", "largest", "largest_b"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, float):
                value = value * factor
                setattr(self, name, xp.where(xp.abs(value) < VANISHED, xp.zeros_like(value), value))
        self.weight, self.heaviest = self.weight * factor, self.heaviest * factor

    def follow(self) -> None:
        """Take the sums about the mean where that has gone far from the shift: means of rows that fade move on."""
        if not self.weight > 0 or not (
            self._is_far(self.sum_a, self.squares(), self.shift_a) or self._is_far(self.sum_b, self.bb, self.shift_b)
        ):
            return
        most = {name: getattr(self, name) for name in ("largest", "largest_b", "heaviest", "held")}
        about = self._about(self.mean_a, self.shift_b if self.sum_b is None else self.mean_b)
        vars(self).update(vars(about) | most)

    def _is_far(self, sums: Array, squares: Array, shift: Array) -> bool:
        if sums is None:
            return False
        moved = sums / self.weight
        spread = self.space.xp.abs(squares / self.weight - moved**2)
        return bool(self.space.xp.any(moved**2 > FAR * (spread + CONSTANT * (moved + shift) ** 2)))

    def empty(self) -> Self:
        """Of the same kind, with nothing in it."""
        return type(self)(self.space, shifted=self.shifted, product=self.product, full=self.full)

    def like(self) -> Self:
        """An empty Moments about the same shift."""
        new = self.empty()
        new.shift_a, new.shift_b, new.held = self.shift_a, self.shift_b, self.shift_a is not None
        return new

    def copy(self) -> Self:
        """The same rows; nothing is shared that is ever changed in place."""
        new = self.like()
        new.merge(self)
        new.largest, new.largest_b, new.heaviest = self.largest, self.largest_b, self.heaviest
        return new

    def arranged(self, columns: list[int | None]) -> Self:
        """The same rows with these columns of B; None is a column of zeros, as if it had always been there."""
        xp, device = self.space
        new = self.copy()
        for name in ("shift_b", "sum_b", "bb", "ab", "largest_b"):
            old = getattr(self, name)
            if old is not None and not isinstance(old, float):
                zeros = xp.zeros(old.shape[:-1], dtype=xp.float64, device=device)
                parts = [zeros if k is None else old[..., k] for k in columns]
                setattr(new, name, xp.stack(parts, axis=-1))
        return new

    @property
    def mean_a(self) -> Array:
        """Weighted mean of the rows of A."""
        return self.sum_a / self.weight + self.shift_a

    @property
    def mean_b(self) -> Array:
        """Weighted mean of the rows of B."""
        return self.sum_b / self.weight + self.shift_b

    def gram(self, *, centred: bool = False, scale: Array = None) -> Array:
        """A'wA, or the same with the columns centred and, with `scale`, multiplied by one number each."""
        xp = self.space.xp
        if not centred:
            return self.aa if not self.shifted else self._about(xp.zeros_like(self.shift_a), self.shift_b).aa
        if not isinstance(self.aa, np.ndarray):
            G = self.aa - _outer(self.sum_a, self.sum_a / self.weight)
            return G if scale is None else G * _outer(scale, scale)
        G, mean = empty(self.aa.shape, self.aa.dtype), self.sum_a / self.weight
        for part in pieces(G):
            np.subtract(self.aa[part], _outer(self.sum_a[part], mean), out=G[part])
            if scale is not None:
                G[part] *= scale[part, None]
                G[part] *= scale
        return G

    def cross(self, *, centred: bool = False) -> Array:
        """A'wB, or the same with both sides centred."""
        if centred:
            return self.ab - _outer(self.sum_a, self.sum_b / self.weight)
        xp = self.space.xp
        return self.ab if not self.shifted else self._about(xp.zeros_like(self.shift_a), xp.zeros_like(self.shift_b)).ab

    def variance_a(self) -> Array:
        """Weighted variance of each column of A (division by W)."""
        return self._variance(self.squares(), self.largest, self.sum_a, self.shift_a)

    def variance_b(self) -> Array:
        """Weighted variance of each column of B (division by W)."""
        return self._variance(self.bb, self.largest_b, self.sum_b, self.shift_b)

    def squares(self) -> Array:
        """diag(A'wA) about the shift; None if nothing is in."""
        return diagonal(self.aa) if self.full and self.aa is not None else self.aa

    def sizes(self) -> Array:
        """The size of each column of A: its root mean square about the shift, or its mean where that is larger."""
        xp = self.space.xp
        return xp.maximum(xp.abs(self.mean_a), xp.sqrt(self.squares() / self.weight))

    def is_finite(self) -> bool:
        """Whether neither has overflowed nor will what is made of them: no product exceeds its factors' squares."""
        xp, sums = self.space.xp, [x for x in (self.squares(), self.sum_a, self.bb, self.sum_b) if x is not None]
        most = LARGEST / (int(sums[0].shape[0]) if sums else 1)
        return self.weight <= most and all(bool(xp.all(xp.abs(x) <= most)) for x in sums)

    def leading(self, p: int) -> Self:
        """The same rows with only the first p columns of A."""
        new = copy.copy(self)
        new.aa = (self.aa[:p, :p] if self.full else self.aa[:p]) + 0.0  # copies: the rest can be freed
        for name in ("sum_a", "shift_a", "ab", "largest"):
            value = getattr(self, name)
            setattr(new, name, None if value is None else value[:p, ...] + 0.0)
        return new

    def _variance(self, squares: Array, largest: Array, sums: Array, shift: Array) -> Array:
        xp = self.space.xp
        v = squares / self.weight - (sums / self.weight) ** 2
        # what rounding alone leaves of a constant column is not variance: rounding of the sums when they held the most
        # (rows that were taken out again leave theirs), and of the shift
        most = xp.maximum(squares, largest + xp.zeros_like(squares))
        lost = ROUNDED[self.product] * most + REMOVED[self.product] * (most - squares)
        floor = lost / self.weight + (CONSTANT * (sums / self.weight + shift)) ** 2
        return xp.where(v > floor, v, xp.zeros_like(v))

    def _of(self, A: Array, B: Array, weight: Array, scratch: bool = False) -> Self:
        """The Moments of one block about this object's shift (taken from the block if this one is empty)."""
        xp, new = self.space.xp, self.empty()
        if weight is None:
            new.count, new.weight = int(A.shape[0]), float(A.shape[0])
        else:
            weight = self.space.asarray(weight, "float64")
            new.count, new.weight = int(xp.sum(xp.astype(weight > 0, xp.int64))), float(xp.sum(weight))
        if self.count == 0 and not self.held:
            self.shift_a = self._first_shift(A, weight, new.weight)
            self.shift_b = None if B is None else self._first_shift(B, weight, new.weight)
        new.shift_a, new.shift_b = self.shift_a, self.shift_b
        root = None if weight is None else xp.sqrt(weight)[:, None]
        a = self._shifted(A, self.shift_a, root, scratch)
        new.aa = gram(a) if self.full else column_squares(a)
        new.sum_a = column_sums(a) if root is None else _weighted_sums(xp, a, root)
        if B is not None:
            b = self._shifted(B, self.shift_b, root, False)
            new.ab = matmul(a.mT, b)
            new.sum_b = xp.sum(b if root is None else b * xp.astype(root, b.dtype), axis=0, dtype=xp.float64)
            new.bb = column_squares(b)
        return new

    def _first_shift(self, A: Array, weight: Array, total: float) -> Array:
        xp, device = self.space
        if not self.shifted or total <= 0:
            return xp.zeros(A.shape[1], dtype=xp.float64, device=device)
        if weight is None:
            mean = xp.sum(A, axis=0, dtype=xp.float64) / total
        elif isinstance(A, np.ndarray):
            share = weight / total
            mean = sum((share[part] @ A[part].astype(np.float64) for part in pieces(A)), np.zeros(A.shape[1]))
        else:
            mean = (weight / total) @ xp.astype(A, xp.float64)
        # a number of A's dtype, so that what is subtracted below is exactly what is remembered
        return xp.astype(xp.astype(mean, A.dtype), xp.float64)

    def _shifted(self, A: Array, shift: Array, root: Array | None, scratch: bool) -> Array:
        """(A - shift) sqrt(w) in the dtype of the products: A itself where nothing must change."""
        xp = self.space.xp
        kind = getattr(xp, self.product)
        if not isinstance(A, np.ndarray):
            if self.shifted and scratch:
                A -= xp.astype(shift, A.dtype, copy=False)
            elif self.shifted:
                A = A - xp.astype(shift, A.dtype, copy=False)
            A = xp.astype(A, kind, copy=False)
            return A if root is None else A * xp.astype(root, kind, copy=False)
        if not self.shifted and root is None:
            return A.astype(kind, copy=False)
        out = A if scratch and A.dtype == kind else empty(A.shape, kind)
        shifted_into(out, A, shift.astype(kind, copy=False) if self.shifted else kind(0), root)
        return out

    def _about(self, shift_a: Array, shift_b: Array) -> Self:
        """The same rows about another shift."""
        new = self.empty()
        new.count, new.weight, new.shift_a, new.shift_b = self.count, self.weight, shift_a, shift_b
        da = self.shift_a - shift_a
        new.sum_a = self.sum_a + self.weight * da
        if self.full:
            new.aa = self.aa + _outer(self.sum_a, da) + _outer(da, new.sum_a)
        else:
            new.aa = self.aa + 2 * self.sum_a * da + self.weight * da**2
        if self.sum_b is not None:
            db = self.shift_b - shift_b
            new.sum_b = self.sum_b + self.weight * db
            new.ab = self.ab + _outer(self.sum_a, db) + _outer(da, new.sum_b)
            new.bb = self.bb + 2 * self.sum_b * db + self.weight * db**2
        return new

    def _accumulate(self, part: Self, sign: float) -> None:
        xp, combine = self.space.xp, operator.iadd if sign > 0 else operator.isub
        for name in ("sum_a", "sum_b", "aa", "ab", "bb"):
            total, value = getattr(self, name), getattr(part, name)
            if value is not None:  # the first is a copy, so that what is added in place is ours
                setattr(self, name, xp.astype(value, xp.float64) if total is None else combine(total, value))
        for name, squares in (("largest", self.squares()), ("largest_b", self.bb)):
            if squares is not None:
                setattr(self, name, xp.maximum(squares, getattr(self, name) + xp.zeros_like(squares)))
        self.count += int(sign) * part.count
        self.weight += sign * part.weight
        self.heaviest = max(self.heaviest, self.weight)


def _outer(u: Array, v: Array) -> Array:
    return u[:, None] * v[None, :]


def _weighted_sums(xp, a: Array, root: Array) -> Array:
    """sum_i w_i a_i from rows already multiplied by sqrt(w_i)."""
    root = xp.astype(root, a.dtype)
    return root[:, 0] @ a if isinstance(a, np.ndarray) else xp.sum(a * root, axis=0, dtype=xp.float64)
