"""The rows of a source as blocks, read ahead while computing."""

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
from .pieces import Piece, check_piece, check_piece_weight
from .rows import Block, Rows, indicators, unit_of, without_weightless
from .sources import Source
from .targets import Classes, Look, NoTargets, Numbers, Reading


class Stream(Rows):
    """The rows of a source as blocks.

    Parameters
    ----------
    n : int
        Number of rows, found by a first reading.
    kind : Classes, Numbers or NoTargets
        How targets are read.
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
        kind: Reading | None = None,
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
        self.source, self.factor, self.name, self.n = source, factor, name, n
        self.read_as(NoTargets() if kind is None else kind)
        self._weight = total_weight
        self.checked = checked

    def read_as(self, kind: Reading) -> None:
        """How targets are read from now on."""
        self.kind, self.n_classes = kind, kind.n_classes

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
                codes = self.kind.codes(piece)
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
            part = Piece(piece.X[at, :], None if piece.y is None else piece.y[at], None, piece.where)
            X.append(here._dense(part.X))
            codes.append(self.kind.codes(part))
            targets.append(self.kind.columns(part))
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
        w, columns = piece.w, self.kind.columns(piece)
        if codes is not None:
            Z = indicators(codes, self.n_classes, self.space, self.dtype)
        else:
            Z = None if columns is None else self.space.asarray(columns, self.dtype)
        unit = unit_of(w)
        if self.factor is not None and codes is not None:
            c = self.factor[codes]
            w, unit = (c if w is None else w * c), (c if unit is None else unit * c)
        w = None if w is None else self.space.asarray(w, "float64")
        return Block(without_weightless(X, w), Z, w, start, codes, unit)


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
    look: Look
    kind: Reading


def read_targets(source: Source, kind: type[Reading], name: str) -> FirstReading:
    """Count the rows; collect the labels with their weights, or check that targets are finite numbers."""
    readings = []
    pieces = source.read(targets_only=True)
    for piece in ahead(pieces) if source.slow else pieces:
        n = int(piece.X.shape[0])
        if piece.w is not None:
            check_piece_weight(piece.w, piece.where)
        readings.append((n, n if piece.w is None else float(piece.w.sum()), kind.look(piece, name)))
    return gather(readings, kind)


def gather(readings: list[tuple[int, float, Look]], kind: type[Reading]) -> FirstReading:
    """One reading from those of parts of the rows: (rows, their weight, a look at their targets)."""
    if not readings:
        raise ValueError("The source has no rows.")
    counts, weights, looks = zip(*readings, strict=True)
    if sum(weights) <= 0:
        raise ValueError("The weights are zero on every row: at least one row must count.")
    if len({look.n_outputs for look in looks}) > 1:
        raise ValueError("The number of target columns changes from block to block.")
    if len({look.classes.dtype.kind in "OUS" for look in looks if len(look.classes)}) > 1:
        raise ValueError("Labels must be of one kind: some blocks have numbers, others text.")
    mass: dict[Any, float] = {}
    for look in looks:
        for label, m in zip(look.classes.tolist(), look.mass.tolist(), strict=True):
            mass[label] = mass.get(label, 0.0) + m
    classes: np.ndarray = np.unique(np.array(list(mass))) if mass else np.empty(0)
    look = Look(classes, np.array([mass[label] for label in classes.tolist()]), looks[0].n_outputs)
    made: Reading = NoTargets()
    if kind is Classes:
        made = Classes(look.classes)
    elif kind is Numbers:
        made = Numbers(look.n_outputs, look.n_outputs == 1)
    return FirstReading(sum(counts), sum(weights), look, made)
