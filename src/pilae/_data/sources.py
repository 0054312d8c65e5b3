"""Data that does not fit in memory: Parquet, CSV, any restartable run of blocks.

A source can be read again and again, block by block, with its targets in it. `model.fit(source)` reads it a few times;
nothing but blocks and small samples is ever held.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from .._arrays import to_numpy
from .._base.extras import extra
from .check import read_once
from .labels import plain_labels
from .pieces import Piece, need_target

READ_BYTES = 16 * 2**20
"""About how much of a file is read at a time."""


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
        pieces = [(need_target(piece), piece.w) for piece in self.read(targets_only=True)]
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
        raise read_once("blocks")
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
            labels = None if y is None else np.asarray(plain_labels(y))
            weight = None if w is None else np.asarray(to_numpy(w), dtype=np.float64)
            for name, value in (("y", labels), ("sample_weight", weight)):
                if value is not None and len(value) != X.shape[0]:
                    raise ValueError(f"Block {number} has {X.shape[0]} rows, but {len(value)} entries in {name}.")
            yield Piece(X.tocsr() if scipy.sparse.issparse(X) else X, labels, weight, _place(f"block {number}"))


class _ArrowSource(Source):
    def __init__(self, path: Any, kind: str, target: Any, columns: Any, weight: Any, filter: Any) -> None:
        dataset = extra("pyarrow.dataset", "parquet", f"scan_{kind}")
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
