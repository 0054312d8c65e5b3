"""Class numbers: the places of labels among the classes, and what the rows of each class weigh."""

from collections.abc import Callable

import numpy as np


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
        present = np.flatnonzero(mass)
        return present + low, mass[present].astype(np.float64)
    classes, inverse = np.unique(labels, return_inverse=True)
    return classes, np.bincount(inverse, weights=weight, minlength=len(classes)).astype(np.float64)


def class_numbers(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The place of each label among the classes, in as few bytes as hold it. Labels of rows without weight may be no
    class at all, and get any number."""
    codes = np.empty(len(labels), dtype=np.min_scalar_type(len(classes)))
    known = _small_integers(classes)
    for start in range(0, len(labels), 2**20):
        part = labels[start : start + 2**20]
        small = None if known is None else _small_integers(part)
        if known is None or small is None:
            codes[start : start + 2**20] = np.clip(np.searchsorted(classes, part), 0, len(classes) - 1)
        else:  # looked up: searching would take longer than a pass
            low, high = known[0], known[-1]
            table = np.zeros(high - low + 1, codes.dtype)
            table[known - low] = np.arange(len(known))
            codes[start : start + 2**20] = table[np.clip(small, low, high) - low]
    return codes


def known_codes(labels: np.ndarray, classes: np.ndarray) -> np.ndarray | None:
    """The place of each of a few labels among the classes; None where one is of another kind, or no class."""
    if labels.dtype.kind != classes.dtype.kind or labels.dtype.kind not in "biuU" or not len(classes):
        return None
    codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return codes if bool((classes[codes] == labels).all()) else None


def codes_of(labels: np.ndarray, classes: np.ndarray, where: Callable[[int], str]) -> np.ndarray:
    """Places of labels of a source among the classes that were there before."""
    if labels.dtype.kind == "O":  # text of any length: a dtype with a length would cut it
        labels = labels.astype(str if classes.dtype.kind == "U" else classes.dtype)
    codes = class_numbers(labels, classes)
    unknown = classes[codes] != labels
    if unknown.any():
        row = int(np.argmax(unknown))
        label = labels[row].item()
        raise ValueError(f"{where(row)}: the label {label!r} was not there when the source was first read.")
    return codes
