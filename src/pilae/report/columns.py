"""What the columns that somebody gave do to the answers: what shuffling one costs, and how answers follow it.

A table's columns become columns of numbers before the network sees them, and the table knows which come from which.
Everything is done on the numbers, so that a table is read once more and not for every shuffle.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, r2_score

from .._arrays import Array, to_numpy
from .._data.rows import Rows
from .._data.tables import Table

SHUFFLED_ROWS, SHUFFLES = 500, 5
SHUFFLED_COLUMNS = 15
"""Those that move the outputs most are shuffled, so often, in so many rows."""

CURVES = 6
"""Columns whose curve is drawn."""

CURVE_ROWS, CURVE_POINTS, CURVE_CATEGORIES, CURVE_CLASSES = 200, 15, 8, 4

FEW_VALUES = 6
"""Numbers of so few different values are drawn as categories."""

Frame = Any
"""A pandas DataFrame."""


@dataclass
class OwnColumn:
    """A column as it was given, and what it becomes."""

    name: str
    at: np.ndarray
    """Columns of the network that it becomes."""
    numeric: bool
    """Whether its curve runs along an axis of numbers."""
    places: np.ndarray
    """Values to draw its curve at, and what they become in those columns."""
    encoded: np.ndarray


def own_columns(model: BaseEstimator, X: np.ndarray) -> list[OwnColumn]:
    """Columns of numbers, as the network takes them."""
    names = getattr(model, "feature_names_in_", [f"column {k}" for k in range(X.shape[1])])
    columns = []
    for k, name in enumerate(names):
        numeric, rows = _places(X[:, k])
        columns.append(OwnColumn(str(name), np.array([k]), numeric, X[rows, k], X[rows][:, [k]]))
    return columns


def table_columns(frame: Frame, table: Table) -> list[OwnColumn]:
    """Columns of a table of mixed columns."""
    import pandas as pd

    drawn = [_places(_values(frame[name])) for name in frame]
    ends = np.cumsum([0, *(len(places) for _, places in drawn)])
    taken = np.zeros((frame.shape[1], ends[-1]), int)  # the first row, but for one column at a time
    for k, (_, places) in enumerate(drawn):
        taken[k, ends[k] : ends[k + 1]] = places
    numbers = table(pd.DataFrame({name: frame[name].array.take(taken[k]) for k, name in enumerate(frame)}))
    columns = []
    for k, (name, (numeric, places)) in enumerate(zip(frame, drawn, strict=True)):
        at = np.flatnonzero(table.sources == k)
        columns.append(
            OwnColumn(str(name), at, numeric, _values(frame[name])[places], numbers[ends[k] : ends[k + 1]][:, at])
        )
    return columns


def _values(column: Any) -> np.ndarray:
    """The values of a column of a table: numbers, or anything."""
    if column.dtype.kind in "iuf":
        return column.to_numpy(dtype=float, na_value=np.nan) if column.hasnans else column.to_numpy()
    return column.astype(object).where(column.notna(), None).to_numpy(dtype=object)


def _places(values: np.ndarray) -> tuple[bool, np.ndarray]:
    """(whether they are numbers along an axis, rows that hold the values to draw a curve at); no rows for words that
    hardly ever come twice, which nothing can follow."""
    if values.dtype.kind in "iuf":
        known = np.flatnonzero(values == values)
        order = known[np.argsort(values[known], kind="stable")]
        _, first = np.unique(values[order], return_index=True)
        if len(first) <= FEW_VALUES:
            return False, order[first]
        at = np.linspace(0.02, 0.98, CURVE_POINTS) * (len(order) - 1)
        rows = order[np.round(at).astype(int)]
        return True, rows[np.unique(values[rows], return_index=True)[1]]
    rows_of = {str(value): k for k, value in enumerate(values) if value is not None and value == value}
    if len(rows_of) > max(CURVE_CATEGORIES, len(values) / 2):
        return False, np.zeros(0, int)
    counts = Counter(word for word in map(str, values) if word in rows_of)
    return False, np.array([rows_of[word] for word in sorted(w for w, _ in counts.most_common(CURVE_CATEGORIES))], int)


class Asked:
    """A model that is asked about rows of numbers, wherever it lives."""

    def __init__(self, model: BaseEstimator) -> None:
        self.model, self.fitted = model, model.fitted_
        self.classes = getattr(model, "classes_", None)

    def _map(self, method: str, X: np.ndarray) -> np.ndarray:
        fitted, network = self.fitted, self.fitted.network
        rows = Rows(X, network.space, dtype=network.dtype, gauge=network.gauge, intake=fitted.columns.intake)

        def answer(block: Array) -> Array:
            return getattr(fitted.head, method)(fitted.targets, fitted.features(block))

        return to_numpy(rows.map(answer, self.fitted.widest))

    def score(self, X: np.ndarray, y: np.ndarray) -> float:
        predicted = self._map("predict", X)
        if self.classes is not None:
            return float(accuracy_score(y, predicted))
        return float(r2_score(y.reshape(predicted.shape), predicted))

    def lines(self, X: np.ndarray) -> tuple[list[str], np.ndarray]:
        """(names, answers): the prediction, or the probabilities of the classes; of two classes that of the second."""
        if self.classes is None:
            return ["prediction"], self._map("predict", X).reshape(len(X), -1)
        names, P = [str(label) for label in self.classes.tolist()], self._map("predict_proba", X)
        return ([names[1]], P[:, 1:]) if len(names) == 2 else (names, P)


def shuffled(
    model: BaseEstimator, X: np.ndarray, y: np.ndarray, columns: list[OwnColumn], shares: np.ndarray | None
) -> list[dict[str, Any]]:
    """What the score loses when one column is shuffled, with its spread over shuffles; the largest loss first.

    `shares` say how much each column of the network moves the outputs: only the foremost are shuffled.
    """
    asked, rng = Asked(model), np.random.default_rng(0)
    weight = [0.0 if shares is None else float(shares[column.at].sum()) for column in columns]
    foremost = [columns[k] for k in np.argsort(-np.array(weight), kind="stable")[:SHUFFLED_COLUMNS]]
    rows = spread_rows(len(X), SHUFFLED_ROWS)
    X, y = X[rows], y[rows]
    best, orders = asked.score(X, y), [rng.permutation(len(X)) for _ in range(SHUFFLES)]
    found = []
    for column in foremost:
        losses = []
        for order in orders:
            other = X.copy()
            other[:, column.at] = X[np.ix_(order, column.at)]
            losses.append(best - asked.score(other, y))
        found.append({"column": column.name, "loss": float(np.mean(losses)), "spread": float(np.std(losses))})
    return sorted(found, key=lambda each: -each["loss"])


def curves(model: BaseEstimator, X: np.ndarray, columns: list[OwnColumn], names: list[str]) -> list[dict[str, Any]]:
    """How the mean answer follows the first of the named columns, all others left as they are (partial dependence)."""
    asked, by_name = Asked(model), {column.name: column for column in columns}
    base = X[spread_rows(len(X), CURVE_ROWS)]
    drawn = [by_name[name] for name in names if len(by_name[name].at) and len(by_name[name].places) > 1]
    followed = [(column, *_means(asked, base, column)) for column in drawn[:CURVES]]
    if not followed:
        return []
    # of many classes those that move most, the same in every figure: a colour is one class
    moved = np.max([np.ptp(means, axis=0) for _, _, means in followed], axis=0)
    foremost = np.sort(np.argsort(-moved, kind="stable")[:CURVE_CLASSES])
    return [
        {
            "column": column.name,
            "numeric": column.numeric,
            "values": column.places if column.numeric else _words(column.places),
            "lines": {names[k]: means[:, k] for k in foremost},
        }
        for column, names, means in followed
    ]


def _means(asked: Asked, base: np.ndarray, column: OwnColumn) -> tuple[list[str], np.ndarray]:
    """(names, answers): the mean answer at each of the column's places."""
    count = len(column.places)
    rows = np.tile(base, (count, 1))
    rows[:, column.at] = np.repeat(column.encoded, len(base), axis=0)
    names, answers = asked.lines(rows)
    return names, answers.reshape(count, len(base), -1).mean(axis=1)


def _words(values: np.ndarray) -> list[str]:
    return [f"{value:g}" if isinstance(value, float) else str(value) for value in values.tolist()]


def spread_rows(count: int, most: int) -> np.ndarray:
    """At most so many rows, spread over all."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))
