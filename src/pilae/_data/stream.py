"""The rows of a source as blocks, read ahead while computing."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse

from .._arrays import NUMPY, Array, Space, sender
from .blocks import Block, unit_of
from .check import all_finite, has_gaps
from .gaps import GapsFound
from .rows import BLOCK_BYTES, Choice, Rows, times_factor
from .sources import Piece, Source, check_piece, check_piece_weight
from .targets import Encoding, Look, NoTargets, Numbers, Reading


@dataclass(eq=False, kw_only=True)
class Stream(Rows):
    """The rows of a source, which is `X`, as blocks.

    Parameters
    ----------
    look : Look
        What a first reading found: the number of rows, their weight.
    kind : Classes, Numbers or NoTargets
        How targets are read.
    factor : array, optional
        Weight of each class.
    name : str
        The estimator's, for error sentences.
    checked : bool
        Whether a pass has already found all numbers finite.
    on_gaps : {"refuse", "report", "take"}
        What to do with gaps: "report" ends the pass at the first with `GapsFound`, so that they are learnt from.
    """

    look: Look
    kind: Reading = field(default_factory=NoTargets)
    factor: np.ndarray | None = None
    name: str = ""
    checked: bool = False
    on_gaps: str = "refuse"

    in_memory = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.read_as(self.kind)

    def _shape(self) -> tuple[int, int]:
        return self.look.n, self.source.d

    @property
    def source(self) -> Source:
        return self.X

    @property
    def total_weight(self) -> float:
        return self.look.weight

    def read_as(self, kind: Reading) -> None:
        """How targets are read from now on."""
        self.kind, self.n_classes = kind, kind.n_classes

    def weigh_classes(self, factor: np.ndarray | None, mass: np.ndarray) -> None:
        """Multiply the rows of each class, which weigh `mass` in all, by a factor."""
        if factor is not None:
            self.factor, self.look = factor, self.look._replace(weight=float(mass @ factor))

    def whole(self) -> Block:
        return joined(self.space, list(self.blocks()))

    def blocks(self, label: str = "", width: int = 0, bytes_: int = BLOCK_BYTES) -> Iterator[Block]:
        """One pass over the source, which is read ahead in a thread of its own if reading, or copying to a GPU, takes
        time."""
        self.passes += 1
        start = 0
        parts = self._parts(self.rows_per_block(width, bytes_))
        for piece, encoding, X, ready in ahead(parts, self.source.slow or self.space.is_cuda):
            ready()
            # one look at a sum on the GPU instead of a pass over the host's memory
            if self.space.is_cuda and not self.checked and not all_finite(X):
                self._check(piece)
            self.progress.update(label, start, self.n)
            w, unit = times_factor(self.factor, encoding.codes, piece.w, unit_of(piece.w))
            yield self._with_columns(X, start, encoding.codes, encoding.targets, w, unit)
            start += piece.n
        self._check_count(start)
        self.checked = True
        self.progress.update(label, self.n, self.n)

    def _parts(self, step: int) -> Iterator[tuple[Piece, Encoding, Array, Callable[[], object]]]:
        """The source in parts of at most `step` rows: (part, its targets, rows where they are wanted, what to call
        first)."""
        for piece in self.source.read():
            if not self.checked and not self.space.is_cuda:
                self._check(piece)
            for start in range(0, piece.n, step):
                part = piece.at(slice(start, start + step))
                encoding = self.kind.encoded(part)
                if self.space.is_cuda and self.gauge is self.intake is None and not scipy.sparse.issparse(part.X):
                    yield part, encoding, *sender(self.space.device)(part.X.astype(self.dtype, copy=False))
                else:
                    yield part, encoding, self._dense(part.X), lambda: None

    def samples(self, choices: list[Choice]) -> list[Rows]:
        """One pass that keeps the rows of all samples; the others are not even looked at."""
        self.passes += 1
        start, wanted, parts = 0, all_wanted(choices), []
        here = replace(self, space=NUMPY)
        for piece in ahead(self.source.read(), self.source.slow):
            self.progress.update("taking samples", start, self.n)
            rows = wanted[slice(*np.searchsorted(wanted, [start, start + piece.n]))] - start
            part = piece.at(rows)
            encoding = self.kind.encoded(part)
            parts.append((here._dense(part.X), encoding.codes, encoding.targets))
            start += piece.n
        self._check_count(start)
        return self._taken(choices, parts)

    def learn_intake(self, categorical: tuple[int, ...] = ()) -> None:
        self.on_gaps, self.checked = "take", False
        super().learn_intake(categorical)

    def _check(self, piece: Piece) -> None:
        """Numbers that can be computed with, or gaps that are known how to fill."""
        if self.on_gaps == "report" and has_gaps(piece.X):
            raise GapsFound
        check_piece(piece, self.source.number_names, self.name, gaps=self.on_gaps != "refuse")

    def _check_count(self, n: int) -> None:
        if n != self.n:
            raise ValueError(
                f"The source gave {n} rows, but {self.n} when it was first read: it must give the same every time."
            )

    def _taken(self, choices: list[Choice], parts: list[tuple]) -> list[Rows]:
        """Samples from parts (X, codes, targets) that together hold the rows of all, in their order."""
        X, codes, targets = (
            None if columns[0] is None else np.concatenate(columns) for columns in zip(*parts, strict=True)
        )
        settings = {name: getattr(self, name) for name in ("block_rows", "dtype", "progress")}
        held = Rows(X, self.space, codes, self.n_classes, targets, **settings)
        wanted = all_wanted(choices)
        return [
            replace(held.take(np.searchsorted(wanted, numbers), *weights), numbers=numbers)
            for numbers, *weights in choices
        ]


def on_scale_of(targets: Numbers, rows: Rows) -> Rows:
    """These rows, whose targets are the user's, with those that a network is fitted to."""
    if isinstance(rows, Stream):
        rows.read_as(targets)
        return rows
    assert rows.targets is not None
    return replace(rows, targets=targets.onto(rows.targets))


def all_wanted(choices: list[Choice]) -> np.ndarray:
    """The numbers of all rows that are to be taken."""
    return np.unique(np.concatenate([choice[0] for choice in choices]))


def joined(space: Space, blocks: list[Block]) -> Block:
    """The rows, targets and weights of blocks one after another."""
    X, Z, w = space.xp.concat([block.X for block in blocks], axis=0), None, None
    if blocks[0].Z is not None:
        Z = space.xp.concat([block.Z for block in blocks], axis=0)
    if any(block.w is not None for block in blocks):
        weights = [np.ones(int(block.X.shape[0])) if block.w is None else block.w for block in blocks]
        w = space.xp.concat([space.asarray(weight, "float64") for weight in weights])
    return Block(X, Z, w, 0)


READ_AHEAD = 2
"""Items made, or being made, while one is used."""


def ahead(items: Iterator, worth_it: bool = True) -> Iterator:
    """The same items, the next of them made in a thread while the last is used, where that is worth it."""
    if not worth_it:
        yield from items
        return
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


def read_targets(source: Source, kind: type[Reading], name: str) -> Look:
    """Count the rows; collect the labels with their weights, or check that targets are finite numbers."""
    looks = []
    for piece in ahead(source.read(targets_only=True), source.slow):
        if piece.w is not None:
            check_piece_weight(piece.w, piece.where)
        looks.append(kind.look(piece, name))
    return merged(looks)


def merged(looks: list[Look]) -> Look:
    """One look from those at parts of the rows."""
    if not looks:
        raise ValueError("The source has no rows.")
    weight = sum(look.weight for look in looks)
    if weight <= 0:
        raise ValueError("The weights are zero on every row: at least one row must count.")
    if len({look.n_outputs for look in looks}) > 1:
        raise ValueError("The number of target columns changes from block to block.")
    if len({look.classes.dtype.kind in "OUS" for look in looks if len(look.classes)}) > 1:
        raise ValueError("Labels must be of one kind: some blocks have numbers, others text.")
    labels = np.array([label for look in looks for label in look.classes.tolist()])
    classes, numbers = np.unique(labels, return_inverse=True)
    mass = np.bincount(numbers, weights=np.concatenate([look.mass for look in looks]))
    return Look(sum(look.n for look in looks), weight, looks[0].n_outputs, classes, mass)
