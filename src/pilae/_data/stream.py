"""The rows of a source as blocks, read ahead while computing."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from .._arrays import NUMPY, Array, Space, sender
from .._base.progress import Progress
from .pieces import Piece, check_piece, check_piece_targets, check_piece_weight, codes_of, label_masses, need_target
from .rows import Block, Rows, counting, indicators, unit_of
from .sources import Source


class Stream(Rows):
    """The rows of a source as blocks.

    Parameters
    ----------
    n : int
        Number of rows, found by a first reading.
    classes : array, optional
        Labels become class numbers, their places in this.
    factor : array, optional
        Weight of each class.
    total_weight : float
    checked : bool
        Whether a pass has already found all numbers finite.
    """

    in_memory = False

    def __init__(
        self,
        source: Source,
        space: Space,
        *,
        n: int,
        classes: np.ndarray | None = None,
        real: bool = False,
        factor: np.ndarray | None = None,
        total_weight: float = 0.0,
        block_rows: int | str = "auto",
        dtype: str | None = None,
        progress: Progress | None = None,
        name: str = "",
        checked: bool = False,
        gauge: np.ndarray | None = None,
    ) -> None:
        empty = np.empty((0, source.d), dtype=source.dtype)
        super().__init__(empty, space, block_rows=block_rows, dtype=dtype, progress=progress, gauge=gauge)
        self.source, self.classes, self.real, self.factor, self.name = source, classes, real, factor, name
        self.n, self.n_classes = n, 0 if classes is None else len(classes)
        self._weight = total_weight
        self.checked = checked

    @property
    def total_weight(self) -> float:
        return self._weight

    def weigh_classes(self, factor: np.ndarray | None, mass: np.ndarray) -> None:
        """Multiply the rows of each class, which weigh `mass` in all, by a factor."""
        if factor is not None:
            self.factor, self._weight = factor, float(mass @ factor)

    def whole(self) -> Block:
        blocks = list(self.blocks())
        xp = self.space.xp
        return Block(xp.concat([block.X for block in blocks], axis=0), None, joined_weights(self.space, blocks), 0)

    def blocks(self, label: str = "", width: int = 0) -> Iterator[Block]:
        """One pass over the source, which is read ahead in a thread of its own if reading, or copying to a GPU, takes
        time."""
        self.passes += 1
        start = 0
        parts = self._parts(self.rows_per_block(width))
        for piece, codes, X, ready in ahead(parts) if self.source.slow or self.space.is_cuda else parts:
            ready()
            # one look at a sum on the GPU instead of a pass over the host's memory
            if self.space.is_cuda and not self.checked and not math.isfinite(float(self.space.xp.sum(X))):
                check_piece(piece.X, piece.where, self.source.columns, self.name)
            self.progress.update(label, start, self.n)
            yield self._piece(piece, codes, X, start)
            start += int(X.shape[0])
        self._check_count(start)
        self.checked = True
        self.progress.update(label, self.n, self.n)

    def _parts(self, step: int) -> Iterator[tuple[Piece, np.ndarray | None, Array, Callable[[], None]]]:
        """The source in parts of at most `step` rows: (part, class numbers, rows where they are wanted, what to call
        first)."""
        for whole in self.source.read():
            if not self.checked and not self.space.is_cuda:
                check_piece(whole.X, whole.where, self.source.columns, self.name)
            for a in range(0, whole.X.shape[0], step):
                part = slice(a, min(a + step, whole.X.shape[0]))
                piece = Piece(
                    whole.X[part, :],
                    None if whole.y is None else whole.y[part],
                    None if whole.w is None else whole.w[part],
                    partial(_from, whole.where, a),
                )
                codes = None
                if self.classes is not None:
                    codes = codes_of(need_target(piece).reshape(-1), self.classes, piece.where)
                if self.space.is_cuda and self.gauge is None and not scipy.sparse.issparse(piece.X):
                    yield piece, codes, *sender(self.space.device)(piece.X.astype(self.dtype, copy=False))
                else:
                    yield piece, codes, self._dense(piece.X), _nothing

    def samples(self, chosen: list[tuple[np.ndarray, ...]]) -> list[Rows]:
        """One pass that keeps the rows of all samples; the others are not even looked at."""
        self.passes += 1
        wanted = np.unique(np.concatenate([which[0] for which in chosen]))
        X, codes, targets = [], [], []
        start = 0
        here = Rows(self.X, NUMPY, dtype=self.dtype, gauge=self.gauge)
        pieces = self.source.read()
        for piece in ahead(pieces) if self.source.slow else pieces:
            self.progress.update("taking samples", start, self.n)
            n = int(piece.X.shape[0])
            at = wanted[slice(*np.searchsorted(wanted, [start, start + n]))] - start
            X.append(here._dense(piece.X[at, :]))
            y = need_target(piece)[at] if self.real or self.classes is not None else np.empty(0)
            codes.append(None if self.classes is None else codes_of(y.reshape(-1), self.classes, piece.where))
            targets.append(np.asarray(y, dtype=np.float64).reshape(len(at), -1) if self.real else None)
            start += n
        self._check_count(start)
        return self._chosen(wanted, chosen, X, codes, targets)

    def _check_count(self, n: int) -> None:
        if n != self.n:
            raise ValueError(
                f"The source gave {n} rows, but {self.n} when it was first read: it must give the same every time."
            )

    def _chosen(
        self, wanted: np.ndarray, chosen: list[tuple[np.ndarray, ...]], X: list, codes: list, targets: list
    ) -> list[Rows]:
        """Samples from parts that together hold the rows `wanted`, in their order."""
        held = Rows(
            np.concatenate(X),
            self.space,
            codes=None if codes[0] is None else np.concatenate(codes),
            n_classes=self.n_classes,
            targets=None if targets[0] is None else np.concatenate(targets),
            block_rows=self.block_rows,
            dtype=self.dtype,
            progress=self.progress,
        )
        samples = []
        for numbers, *rest in chosen:
            sample = held.take(np.searchsorted(wanted, numbers), *rest)
            sample.numbers = numbers
            samples.append(sample)
        return samples

    def _piece(self, piece: Piece, codes: np.ndarray | None, X: Array, start: int) -> Block:
        w, Z = piece.w, None
        if codes is not None:
            Z = indicators(codes, self.n_classes, self.space, self.dtype)
        elif self.real:
            Z = np.asarray(need_target(piece), dtype=np.float64).reshape(int(X.shape[0]), -1)
            Z = self.space.asarray(Z, self.dtype)
        unit = unit_of(w)
        if self.factor is not None and codes is not None:
            c = self.factor[codes]
            w, unit = (c if w is None else w * c), (c if unit is None else unit * c)
        w = None if w is None else self.space.asarray(w, "float64")
        return Block(counting(X, w), Z, w, start, codes, unit)


def _from(where: Callable[[int], str], first: int, row: int) -> str:
    """The place of a row of a part that begins at `first`."""
    return where(first + row)


def _nothing() -> None:
    return None


def joined_weights(space: Space, blocks: list[Block]) -> Array:
    """The weights of blocks one after another; None where none has any."""
    if all(block.w is None for block in blocks):
        return None
    ones = [np.ones(int(block.X.shape[0])) if block.w is None else block.w for block in blocks]
    return space.xp.concat([space.asarray(w, "float64") for w in ones])


READ_AHEAD = 2
"""Items made, or being made, while one is used."""


def ahead(items: Iterator) -> Iterator:
    """The same items, the next of them made in a thread while the last is used."""
    end, made = object(), deque[Future]()

    def begun() -> Future:
        try:
            return thread.submit(next, items, end)
        except RuntimeError:  # no thread starts any more: the interpreter waits for the one that reads, to end
            wait(made)
            here: Future = Future()
            here.set_result(next(items, end))
            return here

    with ThreadPoolExecutor(1) as thread:
        try:
            made.extend(begun() for _ in range(READ_AHEAD))
            while (item := made.popleft().result()) is not end:
                made.append(begun())
                yield item
        finally:
            thread.shutdown(cancel_futures=True)  # whoever stops early waits for one item, not for all


class FirstReading(NamedTuple):
    """What one reading of the targets finds."""

    n: int
    weight: float
    classes: np.ndarray
    mass: np.ndarray
    """Weight of each class (empty, like the classes, for real targets)."""
    n_outputs: int


def read_targets(source: Source, *, labels: bool | None, name: str) -> FirstReading:
    """Count the rows; collect the labels with their weights, or check that targets are finite numbers.

    With labels=None targets are not looked at.
    """
    readings = []
    pieces = source.read(targets_only=True)
    for piece in ahead(pieces) if source.slow else pieces:
        n = int(piece.X.shape[0])
        if piece.w is not None:
            check_piece_weight(piece.w, piece.where)
        classes: np.ndarray = np.empty(0)
        mass: np.ndarray = np.empty(0)
        n_outputs = 0
        if labels is not None:
            y = need_target(piece)
            if labels and y.ndim == 2 and y.shape[1] == 1:
                y = y[:, 0]
            if labels and y.ndim != 1:
                raise ValueError(
                    f"{piece.where(0)}: targets of a source are one label a row, not {y.shape[1]} columns."
                )
            check_piece_targets(y, labels, piece.where, name)
            n_outputs = 1 if y.ndim == 1 else y.shape[1]
        if labels:
            classes, mass = label_masses(y, piece.w)
        readings.append(FirstReading(n, n if piece.w is None else float(piece.w.sum()), classes, mass, n_outputs))
    return gather(readings, labels=bool(labels))


def gather(readings: list[FirstReading], *, labels: bool) -> FirstReading:
    """One reading from those of parts of the rows."""
    if not readings:
        raise ValueError("The source has no rows.")
    n, weight = sum(reading.n for reading in readings), sum(reading.weight for reading in readings)
    if weight <= 0:
        raise ValueError("The weights are zero on every row: at least one row must count.")
    if len({reading.n_outputs for reading in readings}) > 1:
        raise ValueError("The number of target columns changes from block to block.")
    if len({reading.classes.dtype.kind in "OUS" for reading in readings if len(reading.classes)}) > 1:
        raise ValueError("Labels must be of one kind: some blocks have numbers, others text.")
    mass: dict[Any, float] = {}
    for reading in readings:
        for label, m in zip(reading.classes.tolist(), reading.mass.tolist(), strict=True):
            mass[label] = mass.get(label, 0.0) + m
    classes: np.ndarray = np.unique(np.array(list(mass))) if labels else np.empty(0)
    sums = np.array([mass[label] for label in classes.tolist()])
    return FirstReading(n, weight, classes, sums, readings[0].n_outputs)
