"""Data that does not fit in memory: Parquet, CSV, any restartable run of blocks.

A source can be read again and again, block by block, with its targets in it. `model.fit(source)` reads it a few times;
nothing but blocks and small samples is ever held. Blocks may be tables of mixed columns: what they are is learnt in a
first reading, and from then on they are read as numbers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse

from .._arrays import Array, float_name, to_numpy
from .._base.extras import extra
from .check import all_finite, read_once
from .frames import Frame, check_numbers, is_frame
from .labels import plain_labels
from .tables import Table, is_mixed

READ_BYTES = 16 * 2**20
"""About how much of a file is read at a time."""


Files = str | Path | list

Column = np.ndarray | None
"""One value for each row, or none at all."""

Where = Callable[[int], str]
"""Names a row for an error sentence."""


def at(values: Column, rows: slice | np.ndarray) -> Column:
    """The values of these rows, where there are any."""
    return None if values is None else values[rows]


class Piece(NamedTuple):
    """Some rows as they come from a source."""

    X: Array
    y: Column
    w: Column
    where: Where

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def total_weight(self) -> float:
        return float(self.n if self.w is None else self.w.sum())

    @property
    def target(self) -> np.ndarray:
        """The targets, which are needed."""
        if self.y is None:
            raise ValueError(
                "The source has no targets: name the target column (target=...), or give blocks of (X, y)."
            )
        return self.y

    def at(self, rows: slice | np.ndarray) -> Piece:
        """These of the rows."""

        def where(row: int) -> str:
            return self.where(int(np.arange(self.n)[rows][row]))

        return Piece(self.X[rows, :], at(self.y, rows), at(self.w, rows), where)


def check_piece(piece: Piece, columns: list[str] | None, name: str, *, gaps: bool = False) -> None:
    """Finite numbers in some rows of a source, or gaps where these are taken."""
    sparse = scipy.sparse.issparse(piece.X)
    if all_finite(piece.X.data if sparse else piece.X):
        return
    X = piece.X.toarray() if sparse else piece.X
    odd = np.argwhere(np.isinf(X) if gaps else ~np.isfinite(X))
    if len(odd):
        row, column = odd[0].tolist()
        raise ValueError(
            f"{piece.where(row)}, column {column if columns is None else repr(columns[column])} is "
            f"{'infinite' if gaps else 'missing or infinite'}, which {name} does not take: fill such values first, or "
            "leave those rows out."
        )


def check_piece_weight(w: np.ndarray, where: Where) -> None:
    bad = ~(np.isfinite(w) & (w >= 0))
    if bad.any():
        raise ValueError(f"{where(int(np.argmax(bad)))}: a weight must be a finite number of at least 0.")


def check_piece_targets(y: np.ndarray, labels: bool, where: Where, name: str) -> None:
    """Targets of some rows of a source: labels, or finite numbers."""
    if y.dtype.kind == "f":
        missing = ~np.isfinite(y if y.ndim == 1 else y.sum(axis=1))
    elif y.dtype.kind == "O":
        missing = np.array([value is None for value in y])
    elif labels or y.dtype.kind in "biu":
        return
    else:
        raise ValueError(f"{where(0)}: {name} needs numbers as targets, but got {y.dtype}.")
    if missing.any():
        raise ValueError(f"{where(int(np.argmax(missing)))}: the target is missing or infinite.")
    if labels and y.dtype.kind == "f" and np.any(y != np.floor(y)):
        row = int(np.argmax(y != np.floor(y)))
        raise ValueError(f"{where(row)}: the target {y[row]!r} is no class; for real targets use PILAERegressor.")


class Source:
    """Rows that can be read again and again. Made by `scan_parquet`, `scan_csv` or `scan_blocks`."""

    slow = True
    """Whether reading takes time, so that it is worth a thread of its own."""

    table: Table | None = None
    """How tables of mixed columns become numbers."""

    is_mixed = False
    """Whether blocks are such tables."""

    def __init__(self, d: int, dtype: str, columns: list[str] | None = None) -> None:
        self.d, self.dtype, self.columns = d, dtype, columns

    def taken_by(self, table: Table) -> Self:
        """The same rows, as this table makes numbers of them."""
        new = copy.copy(self)
        new.table, new.d, new.dtype = table, len(table.sources), "float64"
        return new

    def learnt(self) -> Self:
        """The same rows as numbers, after a reading where they are tables of mixed columns."""
        return self.taken_by(Table.learnt_from(self.frames())) if self.is_mixed else self

    def frames(self) -> Iterator[Frame]:
        """The columns to learn from, as they come, where these are tables."""
        raise NotImplementedError

    @property
    def number_names(self) -> list[str] | None:
        """For each column of numbers the name of the one that it is made of."""
        if self.columns is None or self.table is None:
            return self.columns
        return [self.columns[source] for source in self.table.sources]

    def read(self, *, targets_only: bool = False) -> Iterator[Piece]:
        """All rows from the start. With `targets_only` X may be empty, of the right length."""
        raise NotImplementedError

    def count(self) -> int:
        """How many rows there are."""
        return sum(piece.n for piece in self.read())

    def targets(self) -> tuple[np.ndarray, Column]:
        """All targets and weights, held whole."""
        pieces = [(piece.target, piece.w) for piece in self.read(targets_only=True)]
        y = np.concatenate([y for y, _ in pieces])
        if all(w is None for _, w in pieces):
            return y, None
        return y, np.concatenate([np.ones(len(y)) if w is None else w for y, w in pieces])


def scan_parquet(
    path: str | Path | list,
    target: str | None = None,
    *,
    columns: list[str] | None = None,
    weight: str | None = None,
    filter: Any = None,
) -> Source:
    """Rows of one or more Parquet files, read block by block.

    Columns that are no numbers are taken as in DataFrames by `PILAEClassifier` and `PILAERegressor`, after one more
    reading: what they are is learnt from the first 100,000 rows, their categories from all.

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
        Of X, (X, y) or (X, y, sample_weight), X a two-dimensional array, CSR matrix or DataFrame (columns that are no
        numbers as in `scan_parquet`). A generator can be read only once: give the function that makes it.

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
    if isinstance(blocks, Iterator):
        raise read_once("blocks")
    if not callable(blocks) and not hasattr(blocks, "__iter__"):
        raise ValueError(f"scan_blocks needs an iterable of blocks or a function that returns one. Got {blocks!r}.")
    return _BlockSource(blocks)


class _BlockSource(Source):
    def __init__(self, blocks: Iterable | Callable[[], Iterable]) -> None:
        self.blocks = blocks
        first = next(self._items(), None)
        if first is None:
            raise ValueError("scan_blocks got no block: the iterable is empty.")
        X, names = first[0], _names(first[0])
        self.is_mixed = is_mixed(X)
        super().__init__(int(X.shape[1]), "float64" if self.is_mixed else float_name(_numbers(X, 0)), names)

    def _items(self) -> Iterator[tuple]:
        for number, item in enumerate(self.blocks() if callable(self.blocks) else self.blocks):
            X, y, w = (*item, None, None)[:3] if isinstance(item, tuple | list) else (item, None, None)
            yield X if is_frame(X) else _numbers(X, number), y, w

    def frames(self) -> Iterator[Frame]:
        for number, (X, _, _) in enumerate(self._items()):
            self._check_columns(X, number)
            yield X

    def _check_columns(self, X: Any, number: int) -> None:
        count = self.d if self.columns is None else len(self.columns)
        if X.shape[1] != count:
            raise ValueError(f"Block {number} has {X.shape[1]} columns, but the first block has {count}.")
        if _names(X) != self.columns:
            raise ValueError(f"Block {number} has other column names, or in another order, than the first block.")

    def read(self, *, targets_only: bool = False) -> Iterator[Piece]:
        for number, (block, y, w) in enumerate(self._items()):
            self._check_columns(block, number)
            if targets_only and is_frame(block):
                X: Array = np.empty((len(block), 0))
            elif self.table is not None:
                X = self.table(block)
            else:
                X = _numbers(block, number)
            labels = None if y is None else np.asarray(plain_labels(y))
            weight = None if w is None else np.asarray(to_numpy(w), dtype=np.float64)
            for name, value in (("y", labels), ("sample_weight", weight)):
                if value is not None and len(value) != X.shape[0]:
                    raise ValueError(f"Block {number} has {X.shape[0]} rows, but {len(value)} entries in {name}.")
            yield Piece(X.tocsr() if scipy.sparse.issparse(X) else X, labels, weight, _place(f"block {number}"))


def _names(X: Any) -> list[str] | None:
    names = getattr(X, "columns", None)
    return None if names is None else [str(name) for name in names]


def _numbers(X: Any, number: int) -> Array:
    """A block of numbers."""
    if is_frame(X):
        check_numbers(X, "scan_blocks")
    X = X if scipy.sparse.issparse(X) else to_numpy(X)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"Block {number} is not a two-dimensional array of numbers (dtype {X.dtype}).")
    return X


class _ArrowSource(Source):
    columns: list[str]

    def __init__(
        self, path: Files, kind: str, target: str | None, columns: list[str] | None, weight: str | None, filter: Any
    ) -> None:
        dataset = extra("pyarrow.dataset", "parquet", f"scan_{kind}")
        files = [str(p) for p in path] if isinstance(path, list) else str(path)
        try:
            self.dataset = dataset.dataset(files, format=kind)
        except (OSError, ValueError) as error:
            raise ValueError(f"Cannot read {path} as {kind}: {error}") from None
        self.kind, self.target, self.weight, self.filter = kind, target, weight, filter
        self.sides = [name for name in (target, weight) if name is not None]
        names = self.dataset.schema.names
        self.columns = [name for name in names if name not in self.sides] if columns is None else list(columns)
        if not set(self.sides).isdisjoint(self.columns):
            raise ValueError("columns=[...] names the target or the weight, which are no columns to learn from.")
        for name in self.columns + self.sides:
            if name not in names:
                raise ValueError(f"{path} has no column {name!r}; it has {', '.join(names[:20])}.")
        if not self.columns:
            raise ValueError(f"{path} has no column to learn from.")
        self._check_types(self.dataset.schema, str(path))
        self.d = len(self.columns)
        self.is_mixed = not all(_is_number(self.dataset.schema.field(name).type) for name in self.columns)
        types = {str(self.dataset.schema.field(name).type) for name in self.columns}
        self.dtype = "float32" if types <= {"float", "halffloat"} else "float64"

    def count(self) -> int:
        return int(self.dataset.count_rows(filter=self.filter))

    def _check_types(self, schema: Any, file: str) -> None:
        import pyarrow.types as kinds

        for name in self.columns:
            if name not in schema.names:
                raise ValueError(f"{file} has no column {name!r}, but other files have it.")
            type_ = schema.field(name).type
            if kinds.is_nested(type_) or kinds.is_binary(type_) or kinds.is_large_binary(type_):
                raise ValueError(
                    f"Column {name!r} of {file} holds {type_}, which nothing can be learnt from: name the columns to "
                    "use with columns=[...], or encode it first."
                )

    def frames(self) -> Iterator[Frame]:
        for batch, _ in self._batches(self.columns):
            yield batch.to_pandas()

    def read(self, *, targets_only: bool = False) -> Iterator[Piece]:
        for batch, where in self._batches(self.sides if targets_only else self.columns + self.sides):
            yield self._piece(batch, 0 if targets_only else len(self.columns), where)

    def _batches(self, wanted: list[str]) -> Iterator[tuple[Any, Where]]:
        """Rows of these columns, and where they are."""
        size = max(1024, READ_BYTES // (8 * max(1, len(wanted))))
        how = {"schema": self.dataset.schema, "columns": wanted, "filter": self.filter, "batch_readahead": 1}
        for fragment in self.dataset.get_fragments():
            file, start = fragment.path, 0
            if self.kind == "parquet":  # a CSV file has no types of its own
                self._check_types(fragment.physical_schema, file)
            place = file if self.filter is None else f"{file}, of the rows that pass the filter"
            try:
                for batch in fragment.to_batches(batch_size=size, **how):
                    if batch.num_rows:
                        yield batch, _place(place, start)
                    start += batch.num_rows
            except (OSError, ValueError) as error:
                raise ValueError(f"{file}: cannot be read after row {start}: {error}") from None

    def _piece(self, batch: Any, d: int, where: Where) -> Piece:
        if d and self.table is not None:
            X = self.table(batch.select(self.columns).to_pandas())
        elif d and self.is_mixed:
            raise ValueError(
                "Not all columns are numbers, and nobody has learnt yet what to make of them: call fit first."
            )
        else:
            X = np.empty((d, batch.num_rows), dtype=self.dtype).T
            for j in range(d):
                X[:, j] = batch.column(j).to_numpy(zero_copy_only=False)
        y, w = (
            None if name is None else batch[name].to_numpy(zero_copy_only=False) for name in (self.target, self.weight)
        )
        return Piece(X, y, None if w is None else w.astype(np.float64), where)


def _is_number(type_: Any) -> bool:
    import pyarrow.types as kinds

    return kinds.is_integer(type_) or kinds.is_floating(type_) or kinds.is_boolean(type_)


def _place(what: str, start: int = 0) -> Where:
    return lambda row: f"{what}, row {start + row}"
