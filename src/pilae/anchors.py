"""Which rows become neurons, which rows are scored: choices by a hash of the row itself.

A row's key depends on its values and the seed alone, so the same rows are chosen in any order, any blocks and any
partition, and a row that is repeated counts once. What is kept while reading is bounded by the number of rows
asked for, and two keepers can be merged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ._arrays import bits

_SCORE_SALT = np.uint64(0x9E3779B97F4A7C15)


def row_keys(X: Any, seed: int) -> np.ndarray:
    """One 64-bit key per row, from the float32 bytes of its entries and the seed.

    A sum of bits times random odd numbers modulo 2**64, then mixed. Zeros add nothing, so a CSR row and the same
    row written densely have one key.
    """
    multipliers = np.random.default_rng(seed).integers(0, 2**63, size=X.shape[1], dtype=np.uint64) * np.uint64(
        2
    ) + np.uint64(1)
    if scipy.sparse.issparse(X):
        words = scipy.sparse.csr_array((bits(X.data), X.indices, X.indptr), shape=X.shape)
    else:
        words = bits(X)
    return _mix(words @ multipliers + np.uint64(seed))


def _mix(key: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64: every input bit reaches every output bit."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


class Spread:
    """The rows of smallest key, distinct, interleaved by class: `anchors="spread"`.

    The candidates are ordered by (rank of the key within its class, class): first the smallest key of each class,
    then the second smallest, and so on. A row that left the first `capacity` places can never come back, so
    forgetting it is exact.
    """

    def __init__(self, count: int, n_classes: int = 1) -> None:
        # a row under several labels takes a place under each until the end: with one place per class and row there
        # are always `count` distinct ones (rows under more than 16 labels are not worth the memory)
        self.capacity = count * min(max(n_classes, 1), 16)
        self.keys = np.empty(0, np.uint64)
        self.codes = np.empty(0, np.int64)
        self.index = np.empty(0, np.int64)

    def add(self, keys: np.ndarray, codes: np.ndarray, index: np.ndarray) -> None:
        """Offer rows: their keys, class numbers and row numbers."""
        keys = np.concatenate([self.keys, keys])
        codes = np.concatenate([self.codes, codes])
        index = np.concatenate([self.index, index])
        order = np.lexsort((index, keys, codes))
        keys, codes, index = keys[order], codes[order], index[order]
        fresh = np.ones(len(keys), bool)
        fresh[1:] = (keys[1:] != keys[:-1]) | (codes[1:] != codes[:-1])
        keys, codes, index = keys[fresh], codes[fresh], index[fresh]
        first_of_class = np.searchsorted(codes, codes, side="left")
        place = np.lexsort((codes, np.arange(len(codes)) - first_of_class))[: self.capacity]
        self.keys, self.codes, self.index = keys[place], codes[place], index[place]

    def rows(self, count: int) -> np.ndarray:
        """Row numbers of the first `count` distinct rows, in order (fewer if there are not so many)."""
        _, first = np.unique(self.keys, return_index=True)
        return self.index[np.sort(first)][:count]


class First:
    """The first rows read: `anchors="first"`, the paper's choice."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.index = np.empty(0, np.int64)

    def add(self, keys: np.ndarray, codes: np.ndarray, index: np.ndarray) -> None:
        if len(self.index) < self.capacity:
            self.index = np.concatenate([self.index, index])[: self.capacity]

    def rows(self, count: int) -> np.ndarray:
        return self.index[:count]


class ScoredRows:
    """About `capacity` rows to score by leave-one-out: those of smallest salted key, repeats included.

    The salt makes them independent of the anchors, which are the rows of smallest unsalted key.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.keys = np.empty(0, np.uint64)
        self.index = np.empty(0, np.int64)

    def add(self, keys: np.ndarray, index: np.ndarray) -> None:
        salted = np.concatenate([self.keys, _mix(keys ^ _SCORE_SALT)])
        index = np.concatenate([self.index, index])
        distinct = np.unique(salted)
        if len(distinct) > self.capacity:
            keep = salted <= distinct[self.capacity - 1]
            salted, index = salted[keep], index[keep]
        self.keys, self.index = salted, index

    def rows(self) -> np.ndarray:
        return self.index
