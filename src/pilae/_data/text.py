"""Columns of text as numbers: the directions in which their pieces of three and four letters vary most.

A text is the weights of its n-grams (how often, and how rare they are), scaled to length one. The right singular
vectors V of these rows are kept, and a text becomes its products with them. Hashes stand for n-grams, so that no word
of the table is in the model file. Every number is the same for any count of threads: only V comes from a solver, in
float64, with a gap between any two singular values, and it is rounded far above the solver's own rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from .._base.saveable import check_shape, saveable
from .frames import Column, Kind, factorized
from .keys import mix

DIRECTIONS = 30

MOST_GRAMS, GRAMS_OF_A_ROW = 8192, 2
"""As many n-grams as this are kept, and at most two for each row of the sample: the file grows with them."""

SAMPLE_TEXTS, MOST_TEXTS = 10_000, 100_000
"""Different texts that the directions are found on, and those that n-grams are counted in."""

GRAM_BITS = 20
"""Of the hash that stands for an n-gram."""

LONGEST_TEXT, BLOCK_LETTERS = 4096, 2**21
"""Letters of a cell that count, and letters that are cut into n-grams at once."""

GRID = np.float32(2.0**-16)
"""Directions are multiples of it: a thousandth of a typical weight, and far more than threads make a difference."""


@saveable
@dataclass(frozen=True, eq=False)
class TextColumn:
    """One column of text."""

    name: Any
    grams: np.ndarray
    """Hashes of the n-grams that count, in order."""
    weights: np.ndarray
    """Of the n-grams: the logarithm of how rare they are."""
    directions: np.ndarray
    """One column for each, scaled so that the variances of all add up to 1."""

    kind: ClassVar = "free text"
    taken: ClassVar[tuple[Kind, ...]] = ("text", "categories", "numbered categories", "numbers", "truth values")
    """What later rows may hold."""

    @classmethod
    def learnt(cls, name: Any, values: list[str], counts: np.ndarray) -> Self:
        """From the different texts, and how often each was met."""
        order = sorted(range(len(values)), key=values.__getitem__)  # the same for rows in any order
        order = order[:: -(-len(order) // MOST_TEXTS) or 1]
        texts, counts = _prepared([values[k] for k in order]), counts[order].astype(np.float64)
        rows = int(counts.sum())
        found = _counted(texts, None)
        often = np.bincount(found.indices, weights=np.repeat(counts, np.diff(found.indptr)), minlength=2**GRAM_BITS)
        most = min(MOST_GRAMS, GRAMS_OF_A_ROW * rows)
        grams = np.sort(np.lexsort((np.arange(len(often)), -often))[:most])
        grams = grams[often[grams] >= 2]
        # without the hash two n-grams could be equally rare, and rounding would choose between the directions they give
        weights = (np.log((1 + rows) / (1 + often[grams])) + 1) * (1 + 0.05 * _unit(grams))
        column = cls(name, grams.astype(np.int32), weights, np.zeros((len(grams), 0), np.float32))
        weighted = column._weighted(found[:, grams])
        directions = _directions(weighted, counts)
        scores = weighted @ directions
        middle = np.average(scores, 0, counts) if len(grams) else 0.0
        spread = np.sqrt(np.average((scores - middle) ** 2, 0, counts).sum()) if len(grams) else 0.0
        return replace(column, directions=np.round(directions / (spread or 1.0) / GRID).astype(np.float32) * GRID)

    @property
    def width(self) -> int:
        return int(self.directions.shape[1])

    @property
    def words(self) -> str:
        return f"text, {self.width} directions"

    def __call__(self, column: Column, kind: Kind) -> np.ndarray:
        codes, values = factorized(column)
        scores = self._weighted(_counted(_prepared(values), self.grams)) @ self.directions.astype(np.float64)
        return np.vstack([scores, np.full((1, self.width), np.nan)])[codes]  # a gap is code -1, the last row

    def _weighted(self, found: sparse.csr_array) -> sparse.csr_array:
        """Rows of n-grams, weighted and of length one."""
        found = found.copy()
        found.data = (1 + np.log(found.data)) * self.weights[found.indices]
        lengths = np.sqrt(np.bincount(_row_numbers(found), found.data**2, minlength=found.shape[0]))
        found.data /= lengths[_row_numbers(found)]
        return found

    def check(self) -> None:
        """Raises if what was read from a file fits together badly."""
        check_shape(self.weights, len(self.grams))
        check_shape(self.directions, len(self.grams), self.width)
        if (self.grams.dtype, self.weights.dtype, self.directions.dtype) != (np.int32, np.float64, np.float32):
            raise TypeError("no column of text")


def _directions(rows: sparse.csr_array, counts: np.ndarray) -> np.ndarray:
    """The right singular vectors of the rows, each counted as often as it was met, with the largest singular values."""
    if len(counts) > SAMPLE_TEXTS:
        chosen = np.sort(np.argsort(mix(np.arange(len(counts), dtype=np.uint64)), kind="stable")[:SAMPLE_TEXTS])
        rows, counts = rows[chosen], counts[chosen]
    most = min(DIRECTIONS, *rows.shape)
    if most == 0:
        return np.zeros((rows.shape[1], 0))
    repeated = sparse.diags_array(np.sqrt(counts)).tocsr() @ rows
    V = randomized_svd(repeated, most, n_iter=4, power_iteration_normalizer="QR", random_state=0)[2].T
    return V * np.where((V**3).sum(axis=0) < 0, -1.0, 1.0)  # a singular vector has no sign of its own


def _prepared(values: list[str]) -> list[str]:
    """Texts in small letters between single blanks."""
    return [f" {' '.join(value[:LONGEST_TEXT].lower().split())} " for value in values]


def _counted(texts: list[str], grams: np.ndarray | None) -> sparse.csr_array:
    """How often each text has each n-gram: of those given, or of all."""
    width = 2**GRAM_BITS if grams is None else len(grams)
    blocks = [_counted_block(block, grams, width) for block in _blocks(texts)]
    return sparse.vstack(blocks, format="csr") if blocks else sparse.csr_array((0, width))


def _blocks(texts: list[str]) -> Iterator[list[str]]:
    ends = np.cumsum([len(text) for text in texts]) // BLOCK_LETTERS
    for number in np.unique(ends):
        start, stop = np.searchsorted(ends, [number, number + 1])
        yield texts[start:stop]


def _counted_block(texts: list[str], grams: np.ndarray | None, width: int) -> sparse.csr_array:
    letters = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    rows = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    pairs = [_found(letters, rows, size, grams) for size in (3, 4)]
    keys, counts = np.unique(np.concatenate([row * width + gram for row, gram in pairs]), return_counts=True)
    return sparse.csr_array((counts.astype(np.float64), (keys // width, keys % width)), shape=(len(texts), width))


def _found(letters: np.ndarray, rows: np.ndarray, size: int, grams: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Every n-gram of so many letters that lies in one row and one word: its row and its hash, or place in `grams`."""
    count = max(0, len(letters) - size + 1)
    hashes = np.full(count, size, dtype=np.uint64)
    whole = rows[:count] == rows[len(rows) - count :]
    for k in range(size):
        part = letters[k : k + count]
        hashes = hashes * np.uint64(0x100000001B3) + part
        if 0 < k < size - 1:
            whole &= part != ord(" ")
    row, gram = rows[:count][whole], (mix(hashes[whole]) >> np.uint64(64 - GRAM_BITS)).astype(np.int64)
    if grams is None:
        return row, gram
    place = np.minimum(np.searchsorted(grams, gram), max(0, len(grams) - 1))
    known = grams[place] == gram if len(grams) else np.zeros(len(gram), bool)
    return row[known], place[known]


def _row_numbers(rows: sparse.csr_array) -> np.ndarray:
    return np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))


def _unit(numbers: np.ndarray) -> np.ndarray:
    """A number between 0 and 1 for each, by its hash."""
    return (mix(numbers.astype(np.uint64)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
