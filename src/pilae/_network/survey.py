"""The first pass over the rows: sums of columns and targets, and which rows become neurons, are scored or fitted on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from .._arrays import Array, Space, dtype_name, float_name, is_tensor, space_of, take_rows, to_numpy
from .._data.groups import in_groups, told_apart, whole_groups
from .._data.keys import First, Sample, Spread, row_keys, with_targets
from .._data.rows import Block, Rows, counting
from .._data.sources import Column
from .._engine.moments import Moments
from .._engine.scaling import RANGE, Extent, both, gauge_for
from .structure import COUNTED_ROWS

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


@dataclass
class Survey:
    """What the first pass over the rows finds."""

    moments: Moments
    targets: Moments
    """Means and variances of the targets (0/1 for classes)."""
    anchors: Array
    """The anchor rows, in order: the first p are the anchors of a layer of p neurons."""
    anchor_groups: Column
    """Keys of their groups, where rows belong together."""
    distinct: int
    """Distinct rows of positive weight: counted as far as `COUNTED_ROWS` and the anchors go, estimated beyond."""
    all_counted: bool
    """Whether that count is complete."""
    scored: Rows
    """Distinct (row, target) pairs to score by leave-one-out, each with the weight of its repeats; the first m of
    them are the sample of m rows."""
    fitted: Rows
    """Distinct rows to fit the layers on, each with the weight of its repeats; or all rows."""
    searched: Rows
    """Distinct (row, target) pairs to compare candidates on; or all rows."""
    extent: Extent
    """The range of each column, over rows of positive weight."""
    reach: Extent | None
    """And of each target, where these are numbers."""


def _offered(block: Block, seed: int) -> tuple[np.ndarray, ...]:
    """(keys, keys with targets, class numbers, row numbers, weights, units) of the rows of a block that count."""
    keys = row_keys(block.X, seed)
    n = len(keys)
    columns = (
        in_groups(keys, block.group),
        told_apart(_with_targets(keys, block, seed), block.group),
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
    """The rows that leave-one-out is scored on, as `survey_rows` finds them."""

    def add(sample: Sample, block: Block) -> None:
        _, pairs, _, *rest = _offered(block, seed)
        sample.add_salted(pairs, *rest)

    chosen = rows.total(partial(Sample, _offers(rows, SCORED_ROWS)), add, "rows to score")
    return rows.samples([_scored(rows, chosen, SCORED_ROWS)])[0]


def _offers(rows: Rows, count: int) -> int:
    """How many rows are kept to choose so many to score from: of groups all, as they are scored whole."""
    return count if rows.group is None or not count else rows.n


def _scored(rows: Rows, sample: Sample, count: int) -> tuple[np.ndarray, ...]:
    """Which rows are scored, their weights and units: by key, or whole groups."""
    return sample.rows(by_key=True) if rows.group is None else whole_groups(sample, rows.group, count)


class _FirstPass:
    """Everything the first pass adds up."""

    def __init__(self, spec: SurveySpec, space: Space, n_classes: int, full: bool) -> None:
        self.seed = spec.seed
        self.moments = Moments(space, full=full)
        self.nonzero: np.ndarray | bool = False
        """Columns with numbers that are not zero, although their squares are."""
        self.targets = Moments(space, full=False)
        self.extent: Extent | None = None
        self.reach: Extent | None = None
        self.spread = Spread(spec.counted, n_classes)
        self.first = First(spec.capacity if spec.anchors == "first" else 0)
        searched = 0 if spec.search_rows is None else spec.search_rows(2**62)
        sizes = {"scored": spec.scored, "fitted": spec.fit_rows, "searched": searched}
        self.samples = {name: Sample(size) for name, size in sizes.items() if size}

    def add(self, block: Block) -> None:
        self.moments.add(block.X, None, block.w)
        self.extent = self.extent or Extent(int(block.X.shape[1]))
        self.extent.add(counting(block))
        space, still = self.moments.space, np.flatnonzero(to_numpy(self.moments.squares() == 0))
        if len(still):
            xp = space.xp
            nonzero = np.zeros(int(block.X.shape[1]), bool)
            nonzero[still] = to_numpy(xp.any(xp.take(block.X, space.asarray(still), axis=1) != 0, axis=0))
            self.nonzero = self.nonzero | nonzero
        if block.Z is not None:
            self.targets.add(block.Z, None, block.w)
            if block.codes is None:
                self.reach = self.reach or Extent(int(block.Z.shape[1]))
                self.reach.add(counting(block._replace(X=block.Z)))
        keys, pairs, codes, *rest = self._hopeful(block) or _offered(block, self.seed)
        self.spread.add(keys, codes, rest[0])
        if self.first.capacity:
            self.first.add(keys, codes, rest[0])
        for name, sample in self.samples.items():
            sample.add_salted(keys if name == "fitted" else pairs, *rest)

    def _hopeful(self, block: Block) -> tuple[np.ndarray, ...] | None:
        """What `_offered` gives, of those rows alone that may still be chosen, found where the rows are: on a GPU that
        spares the host almost all the work. None where all may be, or where the host does it."""
        if block.codes is None or block.w is not None or self.first.capacity or not is_tensor(block.X):
            return None
        if block.group is not None:
            return None
        top = int(block.codes.max(initial=0))
        if not self.spread.has_limit(top) or any(sample.limit is None for sample in self.samples.values()):
            return None  # before any key is made: `_offered` will make them
        keys, codes = row_keys(block.X, self.seed, stay=True), self.moments.space.asarray(block.codes.astype(np.int64))
        pairs = _with_targets(keys, block, self.seed, codes)
        mask = self.spread.hopeful(keys, codes)
        for name, sample in self.samples.items():
            mask = mask | sample.hopeful(keys if name == "fitted" else pairs)
        at = to_numpy(self.moments.space.xp.nonzero(mask)[0])
        if len(at) < len(codes):
            for keeper in (self.spread, *self.samples.values()):
                keeper.overflowed = True
        chosen = tuple(to_numpy(take_rows(column, at)).view(np.uint64) for column in (keys, pairs))
        ones = np.ones(len(at))
        return *chosen, block.codes[at], block.start + at, ones, ones if block.unit is None else block.unit[at]

    def merge(self, other: _FirstPass) -> None:
        for name in ("moments", "targets", "spread", "first"):
            getattr(self, name).merge(getattr(other, name))
        for name, sample in self.samples.items():
            sample.merge(other.samples[name])
        self.nonzero = self.nonzero | other.nonzero
        self.extent, self.reach = both(self.extent, other.extent), both(self.reach, other.reach)


class SurveySpec(NamedTuple):
    """What the first pass is to find."""

    seed: int
    anchors: str
    """Which rows become neurons: "spread" or "first"."""
    capacity: int
    """Most anchors that are needed."""
    scored: int = 0
    fit_rows: int | None = None
    search_rows: Callable[[int], int] | None = None
    """How many rows to search on, given the number of distinct ones; it must not fall as that grows."""
    count_all: bool = True
    """Whether distinct rows are counted further than the anchors go."""
    gram: bool = True
    """Whether more than means and variances is found."""
    linear: bool = False
    """Whether nothing but a linear model is wanted, of rows that are fewer than the columns: no square of columns."""
    input_scaling: str | None = None
    """With it columns of absurd size get a gauge, which stays with the rows; it takes two passes more."""

    @property
    def counted(self) -> int:
        return max(self.capacity, COUNTED_ROWS) if self.count_all else self.capacity


def survey_rows(rows: Rows, spec: SurveySpec) -> Survey:
    """The first pass: column moments and Gram, anchors, rows to score, to fit on, to search on."""
    check_columns_fit(rows.d, rows.space, rows.dual or spec.linear)
    sums = _first_sums(rows, spec)
    distinct = sums.spread.rows()
    if len(distinct) == 1:
        raise ValueError(
            "All rows of X are the same (rows of weight zero aside), so there is nothing to learn from: check how X "
            "was read."
        )
    check_spread(sums.moments.variance_a())
    complete = len(distinct) < spec.counted
    n_distinct = len(distinct)
    if not complete and spec.scored:
        n_distinct = max(n_distinct, int(sums.samples["scored"].estimate()))
    anchors = sums.first.rows() if spec.anchors == "first" else distinct[: spec.capacity]
    chosen = _chosen_samples(rows, spec, sums.samples, n_distinct)
    first, *samples = rows.samples([(anchors,), *chosen.values()])
    all_rows = dict.fromkeys(("scored", "fitted", "searched"), rows)
    named = all_rows | dict(zip(chosen, samples, strict=True))
    assert sums.extent is not None  # there are rows
    anchors, groups = first.dense(), first.group
    counted = (sums.moments, sums.targets, anchors, groups, n_distinct, complete)
    return Survey(*counted, named["scored"], named["fitted"], named["searched"], sums.extent, sums.reach)


def _first_sums(rows: Rows, spec: SurveySpec) -> _FirstPass:
    """The sums of the first pass; where squares of columns cannot be relied on, once more under a gauge."""
    offered = spec._replace(scored=_offers(rows, spec.scored))
    make = partial(_FirstPass, offered, rows.space, rows.n_classes, spec.gram and not rows.dual and not spec.linear)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by whoever reads the sums
        sums = rows.total(make, _FirstPass.add, "reading the rows")
        if spec.input_scaling is None or _in_range(rows, sums):
            return sums
        extent = rows.with_gauge(None, "float64").extent("looking at the columns")
        rows.gauge, rows._moved = gauge_for(extent, rows.dtype, spec.input_scaling), None
        rows.passes += 1
        return rows.total(make, _FirstPass.add, "reading the rows")


def _chosen_samples(
    rows: Rows, spec: SurveySpec, samples: dict[str, Sample], n_distinct: int
) -> dict[str, tuple[np.ndarray, ...]]:
    """Which rows each sample holds; a sample that would be all rows is left out."""
    chosen: dict[str, tuple[np.ndarray, ...]] = {}
    if spec.scored:
        chosen["scored"] = _scored(rows, samples["scored"], spec.scored)
    if spec.fit_rows and samples["fitted"].met_more_than(spec.fit_rows):
        chosen["fitted"] = samples["fitted"].rows()
    if spec.search_rows is not None:
        count = spec.search_rows(n_distinct)
        if not rows.in_memory or rows.group is not None or samples["searched"].met_more_than(count):
            chosen["searched"] = tuple(column[:count] for column in samples["searched"].rows(by_key=True))
    return chosen


def _in_range(rows: Rows, sums: _FirstPass) -> bool:
    """Whether the squares of all columns can be relied on, by the sums alone."""
    limit, size = 2.0 ** RANGE[rows.dtype], to_numpy(sums.moments.sizes())
    # a column of zeros may be one of numbers that float32 makes zero
    narrowed = rows.dtype == "float32" and "float" in dtype_name(rows.X) and float_name(rows.X) != "float32"
    small = (size < 1 / limit) & (to_numpy(sums.moments.squares() > 0) | sums.nonzero | narrowed)
    return bool(np.all(size <= limit)) and not small.any()


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
    if d > most and not dual:
        raise ValueError(
            f"X has {d} columns, and fitting needs a square matrix of that size; at most {most} are taken (more "
            "only with fewer rows than columns: with head='ridge', of a source up to 4 GiB, or below 256 MiB in all). "
            "Reduce the columns first, for example with sklearn.decomposition.TruncatedSVD or a smaller hashing space."
        )
