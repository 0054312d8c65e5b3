"""The feature map, the first pass over the rows, and growth layer by layer."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from .._arrays import (
    Array,
    Space,
    dtype_name,
    float_name,
    is_tensor,
    namespace,
    space_of,
    take_rows,
    times_powers,
    to_numpy,
)
from .._base.saveable import check_shape, saveable
from .._base.scalars import is_integer
from .._data.keys import First, Sample, Spread, row_keys, with_targets
from .._data.rows import Block, Rows
from .._engine.linalg import DualGram, Gram, PrimalGram
from .._engine.moments import Moments
from .._engine.scaling import RANGE, Scaling, Squash, gauge_for
from . import structure
from .layer import Layer, LayerSpec, fit_layer, output_moments

SCORED_ROWS = 10_000
"""Most distinct rows scored by leave-one-out (all of them when there are fewer)."""

SCORED_NUMBERS = 10**7
"""Of heads whose width is given fewer are scored where it is large: their features are so many numbers, but never fewer
rows than FEWEST_SCORED. A search is judged on more."""

FEWEST_SCORED = 2500

MAX_COLUMNS = 10_000


def scored_rows(width: int) -> int:
    """How many rows to score for a head of that width."""
    return max(FEWEST_SCORED, min(SCORED_ROWS, SCORED_NUMBERS // max(1, width)))


KEPT_BYTES = 3 * 2**26
"""Most that is kept of features between passes over rows in memory."""

LAYER_RIDGE = 1e-3
"""encoder_ridge="auto" in autoencoder layers."""


@saveable
@dataclass
class Network:
    """The feature map: input scaling, then layers. Lives in one array library, on one device, in one dtype.

    With `skip` a head sees the scaled input and the features of all layers, side by side; with `others` also what these
    networks make of the rows. With a `gauge` rows come under it (see `Rows`).
    """

    space: Space
    dtype: str
    scaling: Scaling | None = None
    layers: list[Layer] = field(default_factory=list)
    skip: bool = False
    others: tuple[Network, ...] = ()
    gauge: np.ndarray | None = None

    def __call__(self, X: Array, depth: int | None = None) -> Array:
        """What a head sees, or the features of layer `depth` alone."""
        whole = depth is None
        beside = [other(X) for other in self.others] if whole else []
        below: list[Array] = []  # kept only where it is wanted: blocks of every layer are memory
        if self.scaling is not None:
            X = self.scaling(X)
        for layer in self.layers[:depth]:
            if self.skip and whole:
                below.append(X)
            X = layer(X)
        parts = [*below, X, *beside]
        return X if len(parts) == 1 else namespace(X).concat(parts, axis=1)

    def decode(self, H: Array, depth: int | None = None) -> Array:
        """Back from layer `depth` to the network's (scaled) input."""
        for layer in reversed(self.layers[:depth]):
            H = layer.decode(H)
        return H

    def undo(self, X: Array) -> Array:
        """From the (scaled) input back to the units of the rows."""
        if self.scaling is not None:
            X = self.scaling.undo(X)
        return X if self.gauge is None else times_powers(X, -self.gauge)

    def check_shapes(self, columns: int) -> int:
        """What a head sees of rows of so many columns; an error where the parts do not fit together."""
        width = seen = columns
        if self.scaling is not None:
            self.scaling.check_shapes(columns)
        if self.gauge is not None:
            check_shape(self.gauge, columns)
        for layer in self.layers:
            p = int(layer.weights.shape[1])
            check_shape(layer.weights, width, p)
            if layer.decoder is not None:
                check_shape(layer.decoder, p, width)
                check_shape(layer.decoder_bias, width)
            width, seen = p, p + (seen if self.skip else 0)
        return seen + sum(other.check_shapes(columns) for other in self.others)

    def grown(self, layer: Layer) -> Network:
        """This network with one more layer."""
        return replace(self, layers=[*self.layers, layer])


class Seen:
    """What a network makes of a block of rows, to be called in one pass after another.

    Of rows in memory the features of the first are kept between passes, so that the layers below are not computed
    again each time: up to KEPT_BYTES (more on a GPU), whatever the number of rows.
    """

    def __init__(self, network: Callable[[Array], Array], rows: Rows | None = None) -> None:
        self.network = network
        self.most = 0 if rows is None or not rows.in_memory or rows.block_rows != "auto" else rows.n
        self.room = 0 if rows is None else rows.space.budget(KEPT_BYTES)
        self.held: Array = None
        self.filled = 0

    def __call__(self, block: Block) -> Array:
        stop = block.start + int(block.X.shape[0])
        if stop <= self.filled:
            return self.held[block.start : stop, :]
        if block.start >= self.filled:
            H = self.network(block.X)
            self.keep(block, H)
            return H
        rest = self.network(block.X[self.filled - block.start :, :])
        return namespace(rest).concat([self.held[block.start : self.filled, :], rest], axis=0)

    def release(self) -> None:
        """Keep nothing any more: the last pass is over."""
        self.held, self.filled, self.room = None, 0, 0

    def keep(self, block: Block, H: Array) -> None:
        """Keep these features of a block if its rows come next and there is room."""
        n, p = (int(size) for size in H.shape)
        most = min(self.room // (p * (4 if "float32" in str(H.dtype) else 8)), self.most)
        if block.start != self.filled or self.filled >= most:
            return
        if self.held is None:
            xp, device = space_of(H)
            self.held = xp.empty((most, p), dtype=H.dtype, device=device)
        stop = min(self.filled + n, most)
        self.held[self.filled : stop, :] = H[: stop - self.filled, :]
        self.filled = stop


@dataclass
class Survey:
    """What the first pass over the rows finds."""

    moments: Moments
    targets: Moments
    """Means and variances of the targets (0/1 for classes)."""
    anchors: Array
    """The anchor rows, in order: the first p are the anchors of a layer of p neurons."""
    scored: Rows | None
    """Distinct (row, target) pairs to score by leave-one-out, each with the weight of its repeats; the first m of
    them are the sample of m rows."""
    fitted: Rows | None
    """Distinct rows to fit the layers on, each with the weight of its repeats; None: all."""
    searched: Rows | None
    """Distinct (row, target) pairs to compare candidates on; None: all rows."""
    distinct: int
    """Distinct rows of positive weight: counted as far as `COUNTED_ROWS` and the anchors go, estimated beyond."""
    all_counted: bool
    """Whether that count is complete."""


def _offered(block: Block, seed: int) -> tuple[np.ndarray, ...]:
    """(keys, keys with targets, class numbers, row numbers, weights, units) of the rows of a block that count."""
    keys = row_keys(block.X, seed)
    n = len(keys)
    columns = (
        keys,
        _with_targets(keys, block, seed),
        np.zeros(n, np.int64) if block.codes is None else block.codes,
        np.arange(block.start, block.start + n),
        np.ones(n) if block.w is None else to_numpy(block.w),
        np.ones(n) if block.unit is None else block.unit,
    )
    return columns if block.w is None else tuple(column[columns[4] > 0] for column in columns)


def _with_targets(keys: Array, block: Block, seed: int, codes: Array | None = None) -> Array:
    """Keys of rows with their targets; `codes` are the class numbers where the keys are, if that is not in NumPy."""
    if block.Z is None:
        return keys
    if block.codes is None:
        return with_targets(keys, row_keys(block.Z, seed))
    classes = row_keys(np.eye(int(block.Z.shape[1]), dtype=np.float32), seed)  # the rows of Z are among these
    return with_targets(keys, classes, block.codes if codes is None else codes)


def rows_to_score(rows: Rows, seed: int) -> Rows:
    """The rows that leave-one-out is scored on, as `survey` finds them."""

    def add(sample: Sample, block: Block) -> None:
        _, pairs, _, *rest = _offered(block, seed)
        sample.add_salted(pairs, *rest)

    chosen = rows.total(partial(Sample, SCORED_ROWS), add, "rows to score")
    return rows.samples([chosen.rows(by_key=True)])[0]


class _FirstPass:
    """Everything the first pass adds up."""

    def __init__(
        self, space: Space, full: bool, seed: int, counted: int, n_classes: int, sizes: dict[str, int]
    ) -> None:
        self.seed = seed
        self.moments = Moments(space, full=full)
        self.nonzero: np.ndarray | bool = False
        """Columns with numbers that are not zero, although their squares are."""
        self.targets = Moments(space, full=False)
        self.spread, self.first = Spread(counted, n_classes), First(sizes["first"])
        self.scored, self.fitted, self.searched = (Sample(sizes[name]) for name in ("scored", "fitted", "searched"))

    def add(self, block: Block) -> None:
        self.moments.add(block.X, None, block.w)
        still = np.flatnonzero(to_numpy(self.moments.squares() == 0))
        if len(still):
            xp, space = self.moments.space.xp, self.moments.space
            found = np.zeros(int(block.X.shape[1]), bool)
            found[still] = to_numpy(xp.any(xp.take(block.X, space.asarray(still), axis=1) != 0, axis=0))
            self.nonzero = self.nonzero | found
        if block.Z is not None:
            self.targets.add(block.Z, None, block.w)
        keys, pairs, codes, *rest = self._hopeful(block) or _offered(block, self.seed)
        index = rest[0]
        self.spread.add(keys, codes, index)
        if self.first.capacity:
            self.first.add(keys, codes, index)
        for sample, which in ((self.scored, pairs), (self.fitted, keys), (self.searched, pairs)):
            if sample.capacity:
                sample.add_salted(which, *rest)

    def _hopeful(self, block: Block) -> tuple[np.ndarray, ...] | None:
        """What `_offered` gives, of those rows alone that may still be chosen, found where the rows are: on a GPU that
        spares the host almost all the work. None where all may be, or where the host does it."""
        if block.codes is None or block.w is not None or self.first.capacity or not is_tensor(block.X):
            return None
        samples = [sample for sample in (self.scored, self.fitted, self.searched) if sample.capacity]
        top = int(block.codes.max(initial=0))
        if not self.spread.has_limit(top) or any(sample.limit is None for sample in samples):
            return None  # before any key is made: `_offered` will make them
        keys, codes = row_keys(block.X, self.seed, stay=True), self.moments.space.asarray(block.codes.astype(np.int64))
        pairs = _with_targets(keys, block, self.seed, codes)
        masks = [sample.hopeful(keys if sample is self.fitted else pairs) for sample in samples]
        masks.append(self.spread.hopeful(keys, codes))
        mask = functools.reduce(operator.or_, masks)
        at = to_numpy(self.moments.space.xp.nonzero(mask)[0])
        if len(at) < len(codes):
            for keeper in (self.spread, self.scored, self.fitted, self.searched):
                keeper.overflowed = True
        chosen = tuple(to_numpy(take_rows(column, at)).view(np.uint64) for column in (keys, pairs))
        ones = np.ones(len(at))
        return *chosen, block.codes[at], block.start + at, ones, ones if block.unit is None else block.unit[at]

    def merge(self, other: _FirstPass) -> None:
        for name in ("moments", "targets", "spread", "first", "scored", "fitted", "searched"):
            getattr(self, name).merge(getattr(other, name))
        self.nonzero = self.nonzero | other.nonzero


def survey(
    rows: Rows,
    seed: int,
    kind: str,
    capacity: int,
    n_scored: int = 0,
    fit_rows: int | None = None,
    search_rows: Callable[[int], int] | None = None,
    count_all: bool = True,
    gram: bool = True,
    input_scaling: str | None = None,
) -> Survey:
    """The first pass: column moments and Gram, anchors, rows to score, to fit on, to search on.

    How many rows to search on may depend on the number of distinct ones; it must not fall as that grows. Without
    `count_all` these are counted only as far as the anchors go; without `gram` only means and variances are found.
    With `input_scaling` columns of absurd size get a gauge, which stays with the rows; it takes two passes more.
    """
    check_columns_fit(rows.d, rows.space, rows.dual)
    counted = max(capacity, structure.COUNTED_ROWS) if count_all else capacity
    sizes = {
        "first": capacity if kind == "first" else 0,
        "scored": n_scored,
        "fitted": fit_rows or 0,
        "searched": 0 if search_rows is None else search_rows(2**62),
    }
    make = partial(_FirstPass, rows.space, gram and not rows.dual, seed, counted, rows.n_classes, sizes)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
        found = rows.total(make, _FirstPass.add, "reading the rows")
        if input_scaling is not None and not _in_range(rows, found):
            raw = rows.with_gauge(None, "float64")
            extent = raw.extent("looking at the columns")
            rows.gauge, rows._there = gauge_for(extent, rows.dtype, input_scaling), None
            rows.passes += 1
            found = rows.total(make, _FirstPass.add, "reading the rows")
    distinct = found.spread.rows()
    if len(distinct) == 1:
        raise ValueError(
            "All rows of X are the same (rows of weight zero aside), so there is nothing to learn from: check how X "
            "was read."
        )
    anchors = found.first.rows() if kind == "first" else distinct[:capacity]
    check_spread(found.moments.variance_a())
    n_distinct = len(distinct) if len(distinct) < counted else max(len(distinct), int(found.scored.estimate()))
    wanted: dict[str, tuple[np.ndarray, ...]] = {"anchors": (anchors,)}
    if n_scored:
        wanted["scored"] = found.scored.rows(by_key=True)
    if fit_rows and found.fitted.met_more_than(fit_rows):
        wanted["fitted"] = found.fitted.rows()
    if search_rows is not None:
        count = search_rows(n_distinct)
        if not rows.in_memory or found.searched.met_more_than(count):
            wanted["searched"] = tuple(column[:count] for column in found.searched.rows(by_key=True))
    samples = dict(zip(wanted, rows.samples(list(wanted.values())), strict=True))
    return Survey(
        found.moments,
        found.targets,
        samples["anchors"].dense(),
        samples.get("scored"),
        samples.get("fitted"),
        samples.get("searched"),
        n_distinct,
        len(distinct) < counted,
    )


def _in_range(rows: Rows, found: _FirstPass) -> bool:
    """Whether the squares of all columns can be relied on, by the sums alone."""
    limit, size = 2.0 ** RANGE[rows.dtype], to_numpy(found.moments.sizes())
    # a column of zeros may be one of numbers that float32 makes zero
    narrowed = rows.dtype == "float32" and "float" in dtype_name(rows.X) and float_name(rows.X) != "float32"
    small = (size < 1 / limit) & (to_numpy(found.moments.squares() > 0) | found.nonzero | narrowed)
    return bool(np.all(size <= limit)) and not small.any()


def input_gram(found: Survey, rows: Rows, scaling: Scaling | None) -> Gram:
    """The spectrum of the raw (scaling None) or scaled input, without another pass in the primal form."""
    if rows.dual:
        block = rows.whole()
        return DualGram(block.X if scaling is None else scaling(block.X), block.w)
    G = found.moments.gram() if scaling is None else found.moments.gram(centred=True, scale=scaling.inverse)
    return PrimalGram(G, found.moments.weight, found.moments.product)


class Grower:
    """Grows a network layer by layer. `gram` and `moments` are always those of the newest features."""

    def __init__(
        self, rows: Rows, found: Survey, spec: LayerSpec, width: Any, input_scaling: str, product: str = "float64"
    ) -> None:
        self.all_rows = rows
        self.rows = rows if found.fitted is None else found.fitted
        self.found, self.spec, self.width = found, spec, width
        self.anchors = found.anchors
        variance = found.moments.variance_a()
        self.scaling_kind = structure.scaling_rule(input_scaling, variance)
        kinds = {"standard": Scaling.standard, "asinh": Squash.standard}
        make = kinds.get(self.scaling_kind)
        scaling = None if make is None else make(found.moments.mean_a, variance)
        self.network = Network(rows.space, rows.dtype, scaling, gauge=rows.gauge)
        self.seen = Seen(self.network)
        self.gram: Gram | None = None
        self.moments: Moments | None = None
        if self.scaling_kind == "asinh":  # not linear: the sums of the raw columns say nothing about these
            network = self.network
            self.moments = self.rows.total(
                partial(Moments, rows.space, product=product),
                lambda moments, block: moments.add(network(block.X), None, block.w, scratch=True),
                "asinh of the columns",
            )
            self.gram = PrimalGram(self.moments.gram(), self.moments.weight, self.moments.product)

    @property
    def depth(self) -> int:
        return len(self.network.layers)

    @property
    def features_width(self) -> int:
        return self.network.layers[-1].width if self.network.layers else self.rows.d

    @property
    def passes(self) -> int:
        """Passes over all rows and over the sample of them, if there is one."""
        return self.all_rows.passes + (0 if self.rows is self.all_rows else self.rows.passes)

    def step(self, *, last: bool = False, product: str = "float64") -> None:
        """Add one layer. `last` spares the pass over its output when nobody reads it; `product` is the dtype of the
        products of its Gram (see `Moments`)."""
        name = f"layer {self.depth + 1}"
        if self.gram is None:
            self.gram = input_gram(self.found, self.all_rows, self.network.scaling)
        width = self._next_width(self.gram, name)
        anchors = self.rows.space.asarray(self.network(self.anchors[:width, :]), "float64")
        target = structure.error_target(self.width)
        layer = fit_layer(self.rows, self.seen, self.gram, anchors, width, self.spec, name, target)
        self.network = self.network.grown(layer)
        self.moments, self.gram, below, self.seen = None, None, self.seen, Seen(self.network, self.rows)
        if not last or self.spec.keep_decoder:
            self.moments = output_moments(self.rows, below, layer, self.spec, name, product, self.seen.keep)
            self.gram = PrimalGram(self.moments.gram(), self.moments.weight, self.moments.product)

    def _next_width(self, gram: Gram, name: str) -> int:
        rank = gram.rank if structure.needs_rank(self.width) else 0
        width = structure.layer_width(self.width, self.depth, gram.size, rank)
        given = structure.listed_widths(self.width) or is_integer(self.width)
        if self.spec.encoder == "truncated" and not given:
            width = max(1, min(width, gram.rank))
        available = int(self.found.anchors.shape[0])
        if self.spec.encoder == "rows" and width > available:
            if given:
                raise too_few_rows(width, available, name)
            return available
        return width

    def reached_full_rank(self, growth: Any) -> bool:
        """The paper's criterion on the newest features; never before the first layer."""
        if self.gram is None or not self.network.layers:
            return False
        if self.rows is not self.all_rows:
            n_rows = self.rows.n
        else:
            n_rows = self.found.distinct if self.found.all_counted else self.rows.n
        return structure.full_rank(self.gram.rank, n_rows, growth)


def check_spread(variance: Array) -> None:
    """Columns to learn from."""
    xp = space_of(variance).xp
    if not bool(xp.any(variance > 0)):
        raise ValueError(
            "No column of X varies by more than rounding, so there is nothing to learn from: subtract what the numbers "
            "of a column have in common."
        )


def check_columns_fit(d: int, space: Space, dual: bool) -> None:
    """Square matrices of so many columns must fit into memory; a GPU has more of it, and is fast at them."""
    most = 4 * MAX_COLUMNS if space.is_cuda else MAX_COLUMNS
    if d <= most or dual:
        return
    raise ValueError(
        f"X has {d} columns, and fitting needs a square matrix of that size; at most {most} are taken (more "
        "only with fewer rows than columns, below 256 MiB in all). Reduce the columns first, for example with "
        "sklearn.decomposition.TruncatedSVD or a smaller hashing space."
    )


def too_few_rows(width: int, available: int, what: str) -> ValueError:
    return ValueError(
        f"{what} asks for {width} neurons, but only {available} distinct rows of positive weight are available and "
        f"each neuron is one of them: give more rows or a width of at most {available}."
    )
