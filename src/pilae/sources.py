"""Data that does not fit in memory: Parquet, CSV, any restartable run of blocks, read ahead while computing.

A source can be read again and again, block by block, with its targets in it. `model.fit(source)` reads it a few times;
nothing but blocks and small samples is ever held.
"""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from . import _check
from ._arrays import NUMPY, Array, Space, sender, to_numpy
from ._progress import Progress
from .blocks import Block, Rows, counting, indicators

READ_BYTES = 16 * 2**20
"""About how much of a file is read at a time."""


class Piece(NamedTuple):
    """Some rows as they come from a source; `where` names one of them for an error sentence."""

    X: Any
    y: np.ndarray | None
    w: np.ndarray | None
    where: Callable[[int], str]


class Source:
    """Rows that can be read again and again. Made by `scan_parquet`, `scan_csv` or `scan_blocks`."""

    columns: list[str] | None = None
    d: int
    dtype: str
    slow = True
    """Whether reading takes time, so that it is worth a thread of its own."""

    def read(self, *, targets_only: bool = False) -> Iterator[Piece]:
        """All rows from the start. With `targets_only` X may be empty, of the right length."""
        raise NotImplementedError

    def count(self) -> int:
        """How many rows there are."""
        return sum(int(piece.X.shape[0]) for piece in self.read())

    def targets(self) -> tuple[np.ndarray, np.ndarray | None]:
        """All targets and weights, held whole."""
        pieces = [(_need_target(piece), piece.w) for piece in self.read(targets_only=True)]
        weights = [np.ones(len(y)) if w is None else w for y, w in pieces]
        weighted = any(w is not None for _, w in pieces)
        return np.concatenate([y for y, _ in pieces]), np.concatenate(weights) if weighted else None


def scan_parquet(
    path: str | Path | list,
    target: str | None = None,
    *,
    columns: list[str] | None = None,
    weight: str | None = None,
    filter: Any = None,
) -> Source:
    """Rows of one or more Parquet files, read block by block.

    Parameters
    ----------
    path : path of a file or a folder, or a list of files
    target : str, optional
        The column of targets.
    columns : list of str, optional
        The columns to learn from; by default all but the target and the weight.
    weight : str, optional
        The column of sample weights.
    filter : pyarrow.dataset.Expression, optional
        Read only rows for which this is true.

    Returns
    -------
    Source, for `fit`, `partial_fit`, `predict`, ...
    """
    return _ArrowSource(path, "parquet", target, columns, weight, filter)


def scan_csv(
    path: str | Path | list,
    target: str | None = None,
    *,
    columns: list[str] | None = None,
    weight: str | None = None,
    filter: Any = None,
) -> Source:
    """Rows of one or more CSV files with a header, read block by block. Parameters as in `scan_parquet`."""
    return _ArrowSource(path, "csv", target, columns, weight, filter)


def scan_blocks(blocks: Iterable | Callable[[], Iterable]) -> Source:
    """Rows from anything that gives blocks, more than once.

    Parameters
    ----------
    blocks : iterable, or function without arguments that returns an iterator
        Of X, (X, y) or (X, y, sample_weight), X a two-dimensional array or CSR matrix. A generator can be read only
        once: give the function that makes it.

    Examples
    --------
    >>> import numpy as np
    >>> from pilae import PILAERegressor, scan_blocks
    >>> def blocks():
    ...     for seed in range(4):
    ...         X = np.random.default_rng(seed).standard_normal((100, 3))
    ...         yield X, X[:, 0] - 2 * X[:, 1]
    >>> model = PILAERegressor().fit(scan_blocks(blocks))
    >>> bool(model.loo_score_ > 0.99)
    True
    """
    if iter_once(blocks):
        raise _check.read_once("blocks")
    if not callable(blocks) and not hasattr(blocks, "__iter__"):
        raise ValueError(f"scan_blocks needs an iterable of blocks or a function that returns one. Got {blocks!r}.")
    return _BlockSource(blocks)


def iter_once(x: Any) -> bool:
    """Whether x is an iterator, which is used up by one reading."""
    return isinstance(x, Iterator)


class _BlockSource(Source):
    def __init__(self, blocks: Any) -> None:
        self.blocks = blocks
        first = next(iter(self._items()), None)
        if first is None:
            raise ValueError("scan_blocks got no block: the iterable is empty.")
        X, _, _, self.columns = first
        self.d = int(X.shape[1])
        self.dtype = "float32" if X.dtype == np.float32 else "float64"

    def _items(self) -> Iterator[tuple]:
        made = self.blocks() if callable(self.blocks) else self.blocks
        for number, item in enumerate(made):
            X, y, w = (*item, None, None)[:3] if isinstance(item, tuple | list) else (item, None, None)
            names = getattr(X, "columns", None)
            if not scipy.sparse.issparse(X):
                X = to_numpy(X)
            if X.ndim != 2 or X.dtype.kind not in "biuf":
                raise ValueError(f"Block {number} is not a two-dimensional array of numbers (dtype {X.dtype}).")
            yield X, y, w, None if names is None else [str(name) for name in names]

    def read(self, *, targets_only: bool = False) -> Iterator[Piece]:
        for number, (X, y, w, names) in enumerate(self._items()):
            if X.shape[1] != self.d:
                raise ValueError(f"Block {number} has {X.shape[1]} columns, but the first block has {self.d}.")
            if names != self.columns:
                raise ValueError(f"Block {number} has other column names, or in another order, than the first block.")
            labels = None if y is None else np.asarray(_check.plain_labels(y))
            weight = None if w is None else np.asarray(to_numpy(w), dtype=np.float64)
            for name, value in (("y", labels), ("sample_weight", weight)):
                if value is not None and len(value) != X.shape[0]:
                    raise ValueError(f"Block {number} has {X.shape[0]} rows, but {len(value)} entries in {name}.")
            yield Piece(X.tocsr() if scipy.sparse.issparse(X) else X, labels, weight, _place(f"block {number}"))


class _ArrowSource(Source):
    def __init__(self, path: Any, kind: str, target: Any, columns: Any, weight: Any, filter: Any) -> None:
        dataset = _check.extra("pyarrow.dataset", "parquet", f"scan_{kind}")
        files = [str(p) for p in path] if isinstance(path, list) else str(path)
        try:
            self.dataset = dataset.dataset(files, format=kind)
        except (OSError, ValueError) as error:
            raise ValueError(f"Cannot read {path} as {kind}: {error}") from None
        self.kind, self.target, self.weight, self.filter = kind, target, weight, filter
        there = self.dataset.schema.names
        self.columns = list(columns) if columns is not None else [c for c in there if c not in (target, weight)]
        if target in self.columns or weight in self.columns:
            raise ValueError("columns=[...] names the target or the weight, which are no columns to learn from.")
        for name in [*self.columns, *(c for c in (target, weight) if c is not None)]:
            if name not in there:
                raise ValueError(f"{path} has no column {name!r}; it has {', '.join(there[:20])}.")
        if not self.columns:
            raise ValueError(f"{path} has no column to learn from.")
        self._check_types(self.dataset.schema, str(path))
        self.d = len(self.columns)
        types = {str(self.dataset.schema.field(name).type) for name in self.columns}
        self.dtype = "float32" if types == {"float"} else "float64"

    def count(self) -> int:
        return int(self.dataset.count_rows(filter=self.filter))

    def _check_types(self, schema: Any, file: str) -> None:
        import pyarrow.types as kinds

        for name in self.columns or []:
            if name not in schema.names:
                raise ValueError(f"{file} has no column {name!r}, but other files have it.")
            type_ = schema.field(name).type
            if not (kinds.is_integer(type_) or kinds.is_floating(type_) or kinds.is_boolean(type_)):
                raise ValueError(
                    f"Column {name!r} of {file} holds {type_}, but only numbers can be learnt from: name the columns "
                    "to use with columns=[...], or encode it first."
                )

    def read(self, *, targets_only: bool = False) -> Iterator[Piece]:
        names = [] if targets_only else list(self.columns or [])
        extra = [name for name in (self.target, self.weight) if name is not None]
        rows = max(1024, READ_BYTES // (8 * max(1, len(names) + len(extra))))
        for fragment in self.dataset.get_fragments():
            if self.kind == "parquet":  # a CSV file has no types of its own
                self._check_types(fragment.physical_schema, fragment.path)
            start = 0
            batches = fragment.to_batches(
                schema=self.dataset.schema,
                columns=names + extra,
                filter=self.filter,
                batch_size=rows,
                batch_readahead=1,
            )
            while True:
                try:
                    batch = next(batches, None)
                except (OSError, ValueError) as error:
                    raise ValueError(f"{fragment.path}: cannot be read after row {start}: {error}") from None
                if batch is None:
                    break
                if batch.num_rows:
                    X = np.empty((len(names), batch.num_rows), dtype=self.dtype).T
                    for j in range(len(names)):
                        X[:, j] = batch.column(j).to_numpy(zero_copy_only=False)
                    y = None if self.target is None else batch[self.target].to_numpy(zero_copy_only=False)
                    w = None if self.weight is None else batch[self.weight].to_numpy(zero_copy_only=False)
                    where = (
                        fragment.path if self.filter is None else f"{fragment.path}, of the rows that pass the filter"
                    )
                    yield Piece(X, y, None if w is None else w.astype(np.float64), _place(where, start))
                start += batch.num_rows


def _place(what: str, start: int = 0) -> Callable[[int], str]:
    return lambda row: f"{what}, row {start + row}"


def _need_target(piece: Piece) -> np.ndarray:
    if piece.y is None:
        raise ValueError("The source has no targets: name the target column (target=...), or give blocks of (X, y).")
    return piece.y


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
                _check.check_piece(piece.X, piece.where, self.source.columns, self.name)
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
                _check.check_piece(whole.X, whole.where, self.source.columns, self.name)
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
                    codes = _check.codes_of(_need_target(piece).reshape(-1), self.classes, piece.where)
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
            y = _need_target(piece)[at] if self.real or self.classes is not None else np.empty(0)
            codes.append(None if self.classes is None else _check.codes_of(y.reshape(-1), self.classes, piece.where))
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
            Z = np.asarray(_need_target(piece), dtype=np.float64).reshape(int(X.shape[0]), -1)
            Z = self.space.asarray(Z, self.dtype)
        unit = None if w is None else np.minimum(w, 1.0)
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


def ahead(items: Iterator) -> Iterator:
    """The same items, the next of them made in a thread while the last is used."""
    made: queue.Queue = queue.Queue(maxsize=1)
    stop = threading.Event()
    end = object()

    def put(what: Any) -> bool:
        while not stop.is_set():
            try:
                made.put(what, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for item in items:
                if not put((item, None)):
                    return
            put((end, None))
        except BaseException as error:  # raised where the items are used
            put((end, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while True:
            item, error = made.get()
            if error is not None:
                raise error
            if item is end:
                return
            yield item
    finally:
        stop.set()
        thread.join()


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
            _check.check_piece_weight(piece.w, piece.where)
        classes: np.ndarray = np.empty(0)
        mass: np.ndarray = np.empty(0)
        n_outputs = 0
        if labels is not None:
            y = _need_target(piece)
            if labels and y.ndim == 2 and y.shape[1] == 1:
                y = y[:, 0]
            if labels and y.ndim != 1:
                raise ValueError(
                    f"{piece.where(0)}: targets of a source are one label a row, not {y.shape[1]} columns."
                )
            _check.check_piece_targets(y, labels, piece.where, name)
            n_outputs = 1 if y.ndim == 1 else y.shape[1]
        if labels:
            classes, mass = _check.label_masses(y, piece.w)
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
