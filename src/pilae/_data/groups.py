"""Rows that belong together: patients, speakers, days, the copies of one image.

A group is known by a key, which each of its rows carries: leave-one-out takes all rows of a group out at once, a group
is scored whole or not at all, and is in one half or the other (see `Halves`). A row alone in its group carries no key
(0) and is treated as rows without groups are. A key is made of the rows of the group, whatever its label is and in
whatever order they come.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import is_foreign, to_numpy
from .check import unmasked
from .keys import Sample, among, mix, row_keys
from .rows import Rows
from .sources import Column

ALONE = np.uint64(0)

HALF = np.uint64(2**63)
"""The bit of a key that says which half it is in."""

_FINE = np.uint64(0xFFFF)
"""Bits of a row's key that float32 does not hold."""

MANY_GROUPS = 10_000
"""Up to so many are put into halves one by one, so that these are about as large."""

FEWEST, MORE = 10, 8
"""So many groups are scored even if they are larger than the rows wanted, up to so many times as large."""

LEAST_LEFT = 0.2
"""Groups that hold a neuron are not scored where this share of the rows is left."""


def read_groups(groups: Any, n: int) -> np.ndarray | None:
    """A number for the group of each row; None where there are none."""
    if groups is None:
        return None
    labels = to_numpy(groups) if is_foreign(groups) else np.asarray(unmasked(groups, "groups"))
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or len(labels) != n:
        raise ValueError(
            f"'groups' must be one label a row: expected shape ({n},), got {labels.shape}. Rows with the same label "
            "belong together."
        )
    missing = _missing(labels)
    if missing.any():
        raise ValueError(
            f"'groups' has no label for {np.count_nonzero(missing)} rows, the first of them row "
            f"{int(np.argmax(missing))}: give a row that belongs to nobody a label of its own."
        )
    if labels.dtype.kind == "O":  # of any kind, with an order or without
        numbers: dict[Any, int] = {}
        return np.array([numbers.setdefault(label, len(numbers)) for label in labels.tolist()], np.int64)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _missing(labels: np.ndarray) -> np.ndarray:
    if labels.dtype.kind == "O":
        # a gap is None, or one of the kinds that are not equal to themselves; pandas' says neither yes nor no
        return np.array([label is None or type(label).__name__ == "NAType" or label != label for label in labels])
    return np.isnan(labels) if labels.dtype.kind == "f" else labels != labels


def check_no_groups(groups: Any) -> None:
    """Of a source or a Dask collection."""
    if groups is not None:
        raise ValueError(
            "groups=... needs the rows of a group at hand to leave them out together, and a source or a Dask "
            "collection brings them in blocks: give arrays (a numpy.memmap is one), or leave groups out."
        )


def check_groups_again(grouped: bool, groups: Any) -> None:
    """Of a fitted model."""
    if grouped and groups is None:
        raise ValueError(
            "This model was fitted with groups, so rows must leave with their group again: call "
            "recalibrate(X, y, groups=...)."
        )


def give_groups(rows: Rows, numbers: np.ndarray | None, seed: int) -> None:
    """Let the rows of each group leave together, with all of their weight."""
    if numbers is None:
        return
    counts = np.ones(rows.n, bool) if rows.weight is None else rows.weight > 0
    sizes = np.bincount(numbers, weights=counts)
    if np.count_nonzero(sizes) < 2:
        raise ValueError(
            "All rows belong to one group, and without it none is left: give 'groups' at least two labels, or leave it "
            "out."
        )
    rows.unit = rows.weight  # a row of weight 3 is three of one group
    together = counts & (sizes[numbers] > 1)
    if together.any():
        rows.group = np.zeros(rows.n, np.uint64)
        rows.group[together] = _keys(rows, numbers, together, seed)[numbers[together]]


def _keys(rows: Rows, numbers: np.ndarray, together: np.ndarray, seed: int) -> np.ndarray:
    """The key of each group, by its number: made of its distinct rows, and none twice."""
    of_rows = np.concatenate([row_keys(block.X, seed) for block in rows.blocks("groups")])[together]
    members = numbers[together]
    order = np.lexsort((of_rows, members))
    of_rows, members = of_rows[order], members[order]
    fresh = np.r_[True, (of_rows[1:] != of_rows[:-1]) | (members[1:] != members[:-1])]
    of_rows, members = of_rows[fresh], members[fresh]
    there, starts = np.unique(members, return_index=True)
    found = mix(np.bitwise_xor.reduceat(of_rows & ~_FINE, starts)) | np.uint64(1)  # 1: none is ALONE
    by_key = np.lexsort((there, found))  # groups of the same rows are still groups of their own
    for k in by_key[1:][found[by_key][1:] == found[by_key][:-1]]:
        found[k] = mix(found[k : k + 1] + np.uint64(there[k]))[0] | np.uint64(1)
    keys = np.zeros(int(numbers.max()) + 1, np.uint64)
    keys[there] = _in_halves(rows, numbers, together, there, found) if len(there) <= MANY_GROUPS else found
    return keys


def _in_halves(
    rows: Rows, numbers: np.ndarray, together: np.ndarray, there: np.ndarray, found: np.ndarray
) -> np.ndarray:
    """Keys with the bit of the half: one group after another, in the order of the keys, goes where its class
    weighs less so far, or all rows do."""
    codes = np.zeros(rows.n, np.int64) if rows.codes is None else rows.codes.astype(np.int64)
    n_classes, place = int(codes.max()) + 1, np.searchsorted(there, numbers[together])
    mass = np.zeros((len(there), n_classes))
    np.add.at(mass, (place, codes[together]), 1.0 if rows.weight is None else rows.weight[together])
    held, keys = np.zeros((2, n_classes)), found & ~HALF
    for k in np.argsort(found, kind="stable"):
        most = int(np.argmax(mass[k]))
        first, second = ((held[half, most], held[half].sum()) for half in (0, 1))
        half = int(second < first)
        held[half] += mass[k]
        keys[k] |= HALF if half else ALONE
    return keys


def in_groups(keys: np.ndarray, group: Column) -> np.ndarray:
    """Keys of rows in the half of their group."""
    return keys if group is None else np.where(group == ALONE, keys, (keys & ~HALF) | (group & HALF))


def told_apart(keys: np.ndarray, group: Column) -> np.ndarray:
    """Keys of rows that differ where their groups do."""
    return keys if group is None else np.where(group == ALONE, keys, keys ^ (mix(group) & ~_FINE))


def spread(rows: np.ndarray, group: Column) -> np.ndarray:
    """With these rows (a mask) all others of their groups."""
    return rows if group is None else rows | (among(group, group[rows]) & (group != ALONE))


def numbered(group: Column) -> Column:
    """0, 1, 2, ... for groups that come one after another, a row alone being one."""
    if group is None:
        return None
    new = np.r_[True, (group[1:] != group[:-1]) | (group[1:] == ALONE)]
    if np.count_nonzero(new & (group != ALONE)) != len(np.unique(group[group != ALONE])):
        raise ValueError("The rows of a group must come one after another.")
    return np.cumsum(new) - 1


def choosing(group: np.ndarray, chooses: np.ndarray, count: int) -> np.ndarray:
    """Rows of the first groups of which some choose (a mask): as many as `count` rows hold, see FEWEST."""
    numbers = numbered(group)
    assert numbers is not None
    some = np.flatnonzero(np.bincount(numbers, weights=chooses))
    first = some[: _how_many(np.bincount(numbers)[some], count)]
    return np.flatnonzero(np.isin(numbers, first))


def _how_many(sizes: np.ndarray, count: int) -> int:
    """Groups that `count` rows hold; FEWEST at least, if they have no more than MORE times as many rows, or two."""
    ends = np.cumsum(sizes)
    held, more = (int(np.count_nonzero(ends <= limit)) for limit in (count, MORE * count))
    return max(held, min(more, FEWEST), min(len(ends), 2))


def whole_groups(sample: Sample, group: np.ndarray, count: int) -> tuple[np.ndarray, ...]:
    """(row numbers, weights, units) of groups with the smallest keys: as many as `count` rows hold, see FEWEST.

    `sample` holds all rows, `group` the key of each one's group.
    """
    keys, index, weight, unit = sample.settle()
    group = group[index]
    order = np.argsort(np.where(group == ALONE, keys, mix(group)), kind="stable")
    numbers = numbered(group[order])
    assert numbers is not None
    sizes = np.bincount(numbers)
    order = order[: sizes[: _how_many(sizes, count)].sum()]
    return index[order], weight[order], np.where(group == ALONE, unit, weight)[order]


def spans(group: np.ndarray, step: int) -> list[tuple[int, int]]:
    """(first row, row after the last) of whole groups, by their numbers: as many together as `step` rows hold."""
    edges = [0, *(np.flatnonzero(group[1:] != group[:-1]) + 1).tolist(), len(group)]
    found, start = [], 0
    for edge, after in zip(edges[1:], [*edges[2:], None], strict=True):
        if after is None or after - start > step:
            found.append((start, edge))
            start = edge
    return found
