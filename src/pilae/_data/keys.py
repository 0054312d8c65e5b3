"""Which rows become neurons, which rows are scored: choices by a hash of the row itself.

A row's key depends on its values and the seed alone, so the same rows are chosen in any order, any blocks and any
partition, and a row that is repeated counts once. What is kept while reading is bounded by the number of rows
asked for.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from .._arrays import Array, namespace, space_of, to_numpy, word_sums

_SCORE_SALT = 0x9E3779B97F4A7C15
_TARGET_SALT = 0xD1B54A32D1920000
_LOW = 0xFFFF
_ALL = np.uint64(2**64 - 1)

CACHED_NUMBERS = 2**16
"""Row keys are made of pieces of about this many numbers, which stay in the processor's cache."""


WAITING_ROWS = 2**13
"""Offers that are collected before they are sorted; those of one block may be more."""


def row_keys(X: Array, seed: int, *, stay: bool = False) -> Array:
    """One 64-bit key per row, from the float32 bytes of its entries and the seed.

    A sum of bits times random odd numbers modulo 2**64, then mixed. The lowest 16 bits come from what float32
    cannot hold: rows that differ only there are still different rows, and rounding to float32 hardly ever
    changes the order of the keys, so float32 and float64 copies of a table choose the same rows.

    Keys are uint64 in NumPy. With `stay` those of rows in torch or CuPy stay there, as the int64 of the same bits.
    """
    rng = np.random.default_rng(seed)
    odd = [rng.integers(0, 2**63, size=X.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1) for _ in range(2)]
    n, numbers = int(X.shape[0]), CACHED_NUMBERS if isinstance(X, np.ndarray) else 2**26
    step = max(16, numbers // max(1, int(X.shape[1])))
    keys = []
    for start in range(0, max(n, 1), step):
        words, beyond = word_sums(X[start : min(start + step, n), :], odd)
        low, high = _masks(words)
        key = mix(words + _alike(seed, words)) & high
        keys.append(key if beyond is None else key | (mix(beyond) & low))
    joined = namespace(keys[0]).concat(keys)
    return joined if stay or isinstance(joined, np.ndarray) else to_numpy(joined).view(np.uint64)


def among(keys: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether each key is one of the others. By sorting: NumPy's table of a narrow range overflows at 64 bits."""
    return np.isin(keys, others, kind="sort")


def row_signs(keys: np.ndarray, count: int, draw: int) -> np.ndarray:
    """So many signs, 1.0 or -1.0, for each row, from its key: other ones for every draw."""
    words, first = [], keys & np.uint64(~_LOW & 2**64 - 1)  # the lowest bits are those of what float32 cannot hold
    for word in range(-(-count // 32)):
        mixed = mix(first + np.uint64(1000 * draw + word + 1))
        words.append((mixed[:, None] >> np.arange(32, 64, dtype=np.uint64)) & np.uint64(1))
    bits = np.concatenate(words, axis=1)[:, :count]
    return 2.0 * bits.astype(np.float64) - 1.0


def _alike(number: int, keys: Array) -> Any:
    """A 64-bit number as it stands beside keys: unsigned in NumPy, else the signed one of the same bits."""
    number %= 2**64
    if isinstance(keys, np.ndarray):
        return np.uint64(number)
    return number - 2**64 if number >= 2**63 else number


def _masks(keys: Array) -> tuple[Any, Any]:
    """Of the lowest 16 bits, and of the others."""
    return _alike(_LOW, keys), _alike(~_LOW, keys)


def mix(keys: Array) -> Array:
    """The finaliser of splitmix64: every input bit reaches every output bit."""
    first, second = _alike(0xBF58476D1CE4E5B9, keys), _alike(0x94D049BB133111EB, keys)
    if not isinstance(keys, np.ndarray):
        keys = (keys ^ (keys >> 30 & 2**34 - 1)) * first  # shifts of signed numbers bring ones in from the left
        keys = (keys ^ (keys >> 27 & 2**37 - 1)) * second
        return keys ^ (keys >> 31 & 2**33 - 1)
    mixed = keys.copy()
    for start in range(0, len(mixed), CACHED_NUMBERS):
        key = mixed[start : start + CACHED_NUMBERS]
        key ^= key >> np.uint64(30)
        key *= first
        key ^= key >> np.uint64(27)
        key *= second
        key ^= key >> np.uint64(31)
    return mixed


def _mix_high(keys: Array) -> Array:
    """Mixed again, the lowest 16 bits aside: float32 and float64 copies of a row stay neighbours."""
    low, high = _masks(keys)
    return (mix(keys & high) & high) | (keys & low)


def _in_order(keys: Array) -> Array:
    """Signed numbers in the order of the keys, which count as unsigned."""
    turned = keys ^ _alike(2**63, keys)
    return turned.view(np.int64) if isinstance(keys, np.ndarray) else turned


Table = tuple[np.ndarray, ...]
"""Columns of offers, the keys first."""


def _at(table: Table, rows: np.ndarray) -> Table:
    return tuple(column[rows] for column in table)


class _Keeper:
    """Collects offers and sorts them only now and then, so that small blocks stay cheap."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.kept: list[Table] = []
        self.waiting = 0
        self.overflowed = False

    def add(self, *table: np.ndarray) -> None:
        hopeless = self._hopeless(table)
        if hopeless is not None and hopeless.any():
            self.overflowed = True
            table = _at(table, ~hopeless)
        self.kept.append(table)
        self.waiting += len(table[0])
        if len(self.kept) > 1 and self.waiting > max(self.capacity, WAITING_ROWS):
            self.settle()

    def merge(self, other: _Keeper) -> None:
        """Add what another keeper was offered."""
        self.overflowed |= other.overflowed
        for table in other.kept:
            self.add(*table)

    def offers(self) -> Table:
        """All that was kept."""
        return tuple(np.concatenate(parts) for parts in zip(*self.kept, strict=True))

    def settle(self) -> Table:
        """Reduce what was offered to what may still be chosen."""
        if not self.kept:
            return ()
        self.kept, self.waiting = [self._reduce(self.offers())], 0
        return self.kept[0]

    def _reduce(self, table: Table) -> Table:
        raise NotImplementedError

    def _hopeless(self, table: Table) -> np.ndarray | None:
        """Which rows cannot be chosen any more, after what was met before; None: cannot tell."""
        return None


class Spread(_Keeper):
    """The rows of smallest key, distinct, interleaved by class: `anchors="spread"`.

    Offered are keys, class numbers and row numbers. They are ordered by (rank of the key within its class, class):
    first the smallest key of each class, then the second smallest, and so on. A row that left the first
    `capacity` places can never come back, so forgetting it is exact.
    """

    def __init__(self, count: int, n_classes: int = 1) -> None:
        # a row under several labels takes a place under each until the end: with one place per class and row there
        # are always `count` distinct ones (rows under more than 16 labels are not worth the memory)
        super().__init__(count * min(max(n_classes, 1), 16))
        self.count = count
        self.limits = np.empty(0, np.uint64)
        """By class: the largest key kept where larger ones had to go."""

    def _reduce(self, table: Table) -> Table:
        keys, codes, index = table
        if np.all(index[1:] > index[:-1]):  # stable sorts keep that order, and are fast on small numbers
            by_key = np.argsort(keys, kind="stable")
            order = by_key[np.argsort(codes.astype(np.min_scalar_type(int(codes.max())))[by_key], kind="stable")]
        else:
            order = np.lexsort((index, keys, codes))
        keys, codes, index = _at(table, order)
        fresh = np.ones(len(keys), bool)
        fresh[1:] = (keys[1:] != keys[:-1]) | (codes[1:] != codes[:-1])
        table = keys, codes, index = _at((keys, codes, index), fresh)
        starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
        turn = np.arange(len(codes)) - np.repeat(starts, np.diff(np.r_[starts, len(codes)]))
        place = np.argsort(turn, kind="stable")[: self.capacity]  # within a turn they are in order of class already
        if len(place) < len(keys):
            top = int(codes[-1]) + 1
            went = np.bincount(codes, minlength=top) > np.bincount(codes[place], minlength=top)
            largest = np.zeros(top, np.uint64)
            np.maximum.at(largest, codes[place], keys[place])
            self.limits = np.where(went, largest, _ALL)
        return _at(table, place)

    def _hopeless(self, table: Table) -> np.ndarray | None:
        keys, codes, _ = table
        return keys > self.limits[codes] if self.has_limit(int(codes.max(initial=0))) else None

    def has_limit(self, top: int) -> bool:
        """Whether rows of classes up to this number may be hopeless."""
        return top < len(self.limits)

    def hopeful(self, keys: Array, codes: Array) -> Array:
        """Which of these keys, in torch or CuPy, may still be chosen."""
        return _in_order(keys) <= space_of(keys).asarray(_in_order(self.limits))[codes]

    def _quickly(self) -> Table | None:
        """The places that are needed without sorting all rows; None where that is not certain to be enough."""
        table = keys, codes, _ = self.offers()
        if len(keys) <= 4 * self.count:
            return None
        counts = np.bincount(codes)
        share = 2 * self.count // int(np.count_nonzero(counts)) + 64  # a class will hardly need more places
        by_class = np.argsort(codes.astype(np.min_scalar_type(len(counts))), kind="stable")
        near = []
        for members in np.split(by_class, np.cumsum(counts)[:-1]):
            small = np.partition(keys[members], share)[share] if len(members) > share else _ALL
            near.append(members[keys[members] <= small])
        places = copy.copy(self)._reduce(_at(table, np.sort(np.concatenate(near))))
        have = np.bincount(places[1], minlength=len(counts))
        turns = have[counts > share].min(initial=len(keys))  # so many are complete in every class
        complete = int(np.minimum(have, turns).sum())
        enough = len(np.unique(places[0][:complete])) >= self.count
        return tuple(column[:complete] for column in places) if enough else None

    def rows(self) -> np.ndarray:
        """Row numbers of the first `count` distinct rows, in order."""
        keys, _, index = self._quickly() or self.settle()
        for kept in (2 * self.count, len(keys)):  # a row under several labels is rare
            _, first = np.unique(keys[:kept], return_index=True)
            if len(first) >= self.count:
                break
        return index[np.sort(first)[: self.count]]


class First(_Keeper):
    """The first rows: `anchors="first"`, the paper's choice."""

    def _reduce(self, table: Table) -> Table:
        return _at(table, np.argsort(table[-1])[: self.capacity])  # parts of the data may arrive in any order

    def rows(self) -> np.ndarray:
        return self.settle()[2]


class Sample(_Keeper):
    """Distinct rows of smallest salted key, with the weight of all their repeats.

    Offered are keys, row numbers, weights and units (see `loo`; of repeats the mean by weight). The salt makes the
    choice independent of the anchors, which are the rows of smallest unsalted key. A key among the smallest at the end
    was so whenever it was met: no weight is lost.
    """

    limit = None
    """The largest key kept, once there are enough."""

    def _hopeless(self, table: Table) -> np.ndarray | None:
        return None if self.limit is None else table[0] > self.limit

    def _reduce(self, table: Table) -> Table:
        keys, enough = table[0], 2 * self.capacity
        if len(keys) > 2 * enough:  # most are far too large: found without sorting them
            small = keys <= np.partition(keys, enough)[enough]
            if len(np.unique(keys[small])) > self.capacity:
                self.overflowed = True
                table = _at(table, small)
        keys, index, weight, unit = table
        distinct, which = np.unique(keys, return_inverse=True)
        if self.capacity and len(distinct) >= self.capacity:
            self.limit = distinct[self.capacity - 1]
        self.overflowed |= len(distinct) > self.capacity
        first = np.full(len(distinct), np.iinfo(np.int64).max)
        np.minimum.at(first, which, index)
        total = np.bincount(which, weights=weight, minlength=len(distinct))
        units = np.bincount(which, weights=weight * unit, minlength=len(distinct)) / total
        return tuple(column[: self.capacity] for column in (distinct, first, total, units))

    def add_salted(self, keys: np.ndarray, index: np.ndarray, weight: np.ndarray, unit: np.ndarray) -> None:
        self.add(_salted(keys), index, weight, unit)

    def hopeful(self, keys: Array) -> Array:
        """Which of these keys, in torch or CuPy, may still be chosen, once there is a limit."""
        return _in_order(_salted(keys)) <= _in_order(np.asarray(self.limit))

    def met_more_than(self, count: int) -> bool:
        """Whether there were more distinct keys than that (at most the capacity)."""
        kept = self.settle()  # which may find that some must go
        return self.overflowed or (bool(kept) and len(kept[0]) > count)

    def estimate(self) -> float:
        """How many distinct keys were met: exact up to the capacity, beyond it from how dense the smallest lie."""
        if not self.kept:
            return 0.0
        keys = self.settle()[0]
        return float(len(keys)) if len(keys) < self.capacity else (len(keys) - 1) / (float(keys[-1]) / 2.0**64)

    def rows(self, *, by_key: bool = False) -> Table:
        """(row numbers, their weights, their units), ascending; by key the first m are the sample of m rows."""
        _, *rows = self.settle()
        return tuple(rows) if by_key else _at(tuple(rows), np.argsort(rows[0]))


def _salted(keys: Array) -> Array:
    return _mix_high(keys ^ _alike(_SCORE_SALT, keys))


def with_targets(keys: Array, target_keys: np.ndarray, codes: Array | None = None) -> Array:
    """Keys of (row, target) pairs: equal only where both are. With `codes` target_keys[codes] are those of the rows."""
    salted = _mix_high(target_keys ^ np.uint64(_TARGET_SALT))
    if not isinstance(keys, np.ndarray):
        salted = space_of(keys).asarray(salted.view(np.int64))
    return _mix_high(keys) ^ (salted if codes is None else salted[codes])
