"""Some rows as they come from a source, and what is wrong with them."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse


class Piece(NamedTuple):
    """Some rows as they come from a source; `where` names one of them for an error sentence."""

    X: Any
    y: np.ndarray | None
    w: np.ndarray | None
    where: Callable[[int], str]


def need_target(piece: Piece) -> np.ndarray:
    if piece.y is None:
        raise ValueError("The source has no targets: name the target column (target=...), or give blocks of (X, y).")
    return piece.y


def check_piece(X: Any, where: Callable[[int], str], columns: list[str] | None, name: str) -> None:
    """Finite numbers in some rows of a source."""
    values = X.data if scipy.sparse.issparse(X) else X
    if values.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if math.isfinite(float(np.sum(values))):
            return
    bad = ~np.isfinite(X.toarray() if scipy.sparse.issparse(X) else X)
    if bad.any():
        row, column = (int(k) for k in np.argwhere(bad)[0])
        named = f"column {column}" if columns is None else f"column {columns[column]!r}"
        raise ValueError(
            f"{where(row)}, {named} is missing or infinite, which {name} does not take: fill such values first, or "
            "leave those rows out."
        )


def check_piece_weight(w: np.ndarray, where: Callable[[int], str]) -> None:
    bad = ~(np.isfinite(w) & (w >= 0))
    if bad.any():
        raise ValueError(f"{where(int(np.argmax(bad)))}: a weight must be a finite number of at least 0.")


def check_piece_targets(y: np.ndarray, labels: bool, where: Callable[[int], str], name: str) -> None:
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


def _small_integers(labels: np.ndarray) -> np.ndarray | None:
    """Integer labels that lie close together, as int64; None where they are something else."""
    if labels.dtype.kind not in "iu" or len(labels) == 0:
        return None
    low, high = int(labels.min()), int(labels.max())
    return labels.astype(np.int64, copy=False) if high - low < 2**16 and high < 2**63 else None


def label_masses(labels: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Distinct labels of positive weight, and the weight of each."""
    if weight is not None:
        labels, weight = labels[weight > 0], weight[weight > 0]
    small = _small_integers(labels)
    if small is not None:  # counted: sorting would take longer than a pass
        low = small.min()
        mass = np.bincount(small - low, weights=weight)
        there = np.flatnonzero(mass)
        return there + low, mass[there].astype(np.float64)
    classes, inverse = np.unique(labels, return_inverse=True)
    return classes, np.bincount(inverse, weights=weight, minlength=len(classes)).astype(np.float64)


def codes_of(labels: np.ndarray, classes: np.ndarray, where: Callable[[int], str]) -> np.ndarray:
    """Places of labels among the classes."""
    if labels.dtype.kind == "O":  # text of any length: a dtype with a length would cut it
        labels = labels.astype(str if classes.dtype.kind == "U" else classes.dtype)
    small, known = _small_integers(labels), _small_integers(classes)
    if small is not None and known is not None and known[0] <= small.min() and small.max() <= known[-1]:
        if len(known) == known[-1] - known[0] + 1:  # no gaps: nothing to look up, nothing unknown
            return small - known[0]
        table = np.zeros(int(known[-1] - known[0]) + 1, np.int64)
        table[known - known[0]] = np.arange(len(known))
        codes = table[small - known[0]]
    else:
        codes = np.clip(np.searchsorted(classes, labels), 0, len(classes) - 1)
    unknown = classes[codes] != labels
    if unknown.any():
        row = int(np.argmax(unknown))
        label = labels[row].item()
        raise ValueError(f"{where(row)}: the label {label!r} was not there when the source was first read.")
    return codes
