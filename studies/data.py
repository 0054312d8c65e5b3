"""Data as the studies see them: images as rows of pixels with their official split, tables as folds.

scikit-learn and pilae are imported where they are needed: other libraries' peak memory is measured without them.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

TITLES = {
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "svhn_gray": "SVHN, gray, our crop",
    "cifar10": "CIFAR-10",
}
"""What tables call image sets."""


class Split(NamedTuple):
    """Rows to learn from, rows to test on: arrays, or frames where columns are of several kinds."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def folds(X: np.ndarray, y: np.ndarray, splits: int = 5) -> Iterator[Split]:
    """Stratified folds of a table, missing values filled by the training rows' median."""
    from sklearn.impute import SimpleImputer
    from sklearn.model_selection import StratifiedKFold

    for train, test in StratifiedKFold(splits, shuffle=True, random_state=0).split(X, y):
        fill = SimpleImputer(strategy="median", keep_empty_features=True).fit(X[train])
        yield Split(fill.transform(X[train]), y[train], fill.transform(X[test]), y[test])


def images(name: str, dtype: str = "float32", rows: int | None = None) -> Split:
    """An image set as rows of pixels from 0 to 1, its official split; with `rows` that many training rows at random."""
    from pilae import datasets

    data = datasets.load(name)
    if data.X_test is None or data.y_test is None:
        raise ValueError(f"{name} from {data.source} has no official split.")
    chosen = slice(None) if rows is None else np.random.default_rng(0).permutation(len(data.X))[:rows]
    return Split(pixels(data.X[chosen], dtype), data.y[chosen], pixels(data.X_test, dtype), data.y_test)


def pixels(X: np.ndarray, dtype: str = "float32") -> np.ndarray:
    """Rows of pixels from 0 to 1. Colours become gray (SVHN), stereo pairs are averaged over 3 x 3 pixels (NORB)."""
    n = len(X)
    if X.shape[1:] == (2, 96, 96):
        X = X.reshape(n, 2, 32, 3, 32, 3).mean(axis=(3, 5), dtype=dtype)
    elif X.ndim == 4 and X.shape[3] == 3:
        X = X @ np.array([0.299, 0.587, 0.114], dtype=dtype)
    X = X.reshape(n, -1).astype(dtype)
    X /= 255
    return X


def from_folder(name: str) -> Split:
    """An image set as it lies in PILAE_DATA."""
    path = Path(os.environ.get("PILAE_DATA", "")) / f"{name}.npz"
    if not path.is_file():
        sys.exit(f"Set PILAE_DATA to a folder with {path.name} (arrays X_train, y_train, X_test, y_test).")
    with np.load(path, allow_pickle=False) as data:
        return Split(*(data[key] for key in ("X_train", "y_train", "X_test", "y_test")))


def first_rows(name: str, n: int, d: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """The first n rows of a set in PILAE_DATA; where it is not there, as many made-up ones of its shape."""
    path = Path(os.environ.get("PILAE_DATA", "")) / f"{name}.npz"
    if path.is_file():
        with np.load(path, allow_pickle=False) as data:
            X, y = (data[key][:n] for key in (("X", "y") if "X" in data else ("X_train", "y_train")))
        return (pixels(X) if X.dtype == np.uint8 else X), y
    rng = np.random.default_rng(0)
    y = np.arange(n) % classes
    X = rng.standard_normal((n, d)) + 1.2 * rng.standard_normal((classes, d))[y]
    return X.astype("float32") if d > 100 else X, y
