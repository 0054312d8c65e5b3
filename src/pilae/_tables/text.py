"""Columns of text as numbers: the directions in which their pieces of three and four letters vary most.

A text is the weights of its n-grams (how often, and how rare they are), scaled to length one. The right singular
vectors V of these rows are kept, and a text becomes its products with them. Hashes stand for n-grams, so that no word
of the table is in the model file. Every number is the same for any count of threads: only V comes from a solver, in
float64, with a gap between any two singular values, and it is rounded far above the solver's own rounding.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from .._base.saveable import check_shape, saveable
from .._data.keys import mix
from .frames import Column

DIRECTIONS = 30

MOST_GRAMS, GRAMS_OF_A_ROW = 8192, 2
"""As many n-grams as this are kept, and at most two for each row of the sample: the file grows with them."""

SAMPLE_TEXTS = 10_000
"""Different texts that the directions are found on."""

GRAM_BITS = 20
"""Of the hash that stands for an n-gram."""

LONGEST_TEXT, BLOCK_LETTERS = 4096, 2**21
"""Letters of a cell that count, and letters that are cut into n-grams at once."""

GRID = 2.0**-16
"""Directions are multiples of it: a thousandth of a typical weight, and far more than threads make a difference."""


@saveable
@dataclass(repr=False, eq=False)
class TextColumn:
    """One column of text, fitted by `fitted`."""

    name: str
    grams: np.ndarray
    """Hashes of the n-grams that count, in order."""
    weights: np.ndarray
    """Of the n-grams: the logarithm of how rare they are."""
    directions: np.ndarray
    """One column for each, scaled so that the variances of all add up to 1."""

    @classmethod
    def fitted(cls, column: Column) -> Self:
        codes, texts = _factorised(column)
        counts = np.bincount(codes[codes >= 0], minlength=len(texts)).astype(np.float64)
        found = _counted(texts, None)
        often = np.bincount(found.indices, weights=np.repeat(counts, np.diff(found.indptr)), minlength=2**GRAM_BITS)
        most = min(MOST_GRAMS, GRAMS_OF_A_ROW * len(column))
        grams = np.sort(np.lexsort((np.arange(len(often)), -often))[:most])
        grams = grams[often[grams] >= 2]
        # without the hash two n-grams could be equally rare, and rounding would choose between the directions they give
        weights = (np.log((1 + len(column)) / (1 + often[grams])) + 1) * (1 + 0.05 * _unit(grams))
        fitted = cls(str(column.name), grams.astype(np.int32), weights, np.zeros((len(grams), 0)))
        rows = fitted._weighted(found[:, grams])
        fitted.directions = _directions(rows, counts)
        scores = rows @ fitted.directions
        spread = (
            np.sqrt(np.average((scores - np.average(scores, 0, counts)) ** 2, 0, counts).sum()) if len(grams) else 0
        )
        fitted.directions = np.round(fitted.directions / (spread or 1.0) / GRID).astype(np.float32) * np.float32(GRID)
        return fitted

    @property
    def outputs(self) -> list[str]:
        return [f"{self.name}: text {k + 1}" for k in range(self.directions.shape[1])]

    @property
    def words(self) -> str:
        return f"text, {self.directions.shape[1]} directions"

    def transform(self, column: Column) -> np.ndarray:
        codes, texts = _factorised(column)
        scores = self._weighted(_counted(texts, self.grams)) @ self.directions.astype(np.float64)
        return np.vstack([scores, np.zeros((1, scores.shape[1]))])[codes]  # a gap is code -1, the last row

    def _weighted(self, found: sparse.csr_array) -> sparse.csr_array:
        """Rows of n-grams, weighted and of length one."""
        found = found.copy()
        found.data = (1 + np.log(found.data)) * self.weights[found.indices]
        lengths = np.sqrt(np.bincount(_row_numbers(found), found.data**2, minlength=found.shape[0]))
        found.data /= lengths[_row_numbers(found)]
        return found

    def _check_loaded(self) -> None:
        """Raises if what was read from a file fits together badly."""
        check_shape(self.weights, len(self.grams))
        check_shape(self.directions, len(self.grams), self.directions.shape[1])
        if not isinstance(self.name, str) or self.grams.dtype != np.int32 or self.directions.dtype != np.float32:
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


def _factorised(column: Column) -> tuple[np.ndarray, list[str]]:
    """Which of the different texts each row has, -1 for none; and the texts, small letters between single blanks."""
    codes, texts = column.factorize()
    return codes, [f" {' '.join(str(text)[:LONGEST_TEXT].lower().split())} " for text in texts]


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
