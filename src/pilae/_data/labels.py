"""Labels and other targets as users pass them: plain arrays, or the sentence that says what is wrong."""

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, column_or_1d

from .._arrays import Array, is_foreign, to_numpy
from .._base.warn import warn
from .check import check_finite, unmasked

MAX_CLASSES = 5_000
"""Each class is an output with a target column of its own, and about a megabyte while the fit lasts."""

TARGET_SIZES = {"float64": (1e-150, 1e150), "float32": (1e-15, 1e15)}
"""Targets as large as that can be squared and added up."""


def need_y(name: str, y: object) -> None:
    if y is None:
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")


def check_length(y: np.ndarray, n: int) -> None:
    if y.ndim == 0:
        raise ValueError(f"y is a single value, but X has {n} rows: give one target for each row.")
    if y.shape[0] != n:
        raise ValueError(f"X has {n} rows but y has {y.shape[0]}: give one target for each row.")


def plain_labels(y: Array) -> Array:
    """y without its container: from a device, a mask, a sparse matrix, or a pandas extension type."""
    y = unmasked(y, "y")
    if is_foreign(y):
        return to_numpy(y)
    if scipy.sparse.issparse(y):
        return y.toarray()
    plain = getattr(getattr(y, "dtype", None), "numpy_dtype", None)  # pandas' Int64, boolean, ...
    return y if plain is None or y.isna().any() else y.to_numpy(dtype=plain)


def checked_labels(y: Array, n: int, name: str) -> np.ndarray:
    """One label a row, or a matrix of 0 and 1 with a column for each label."""
    need_y(name, y)
    y = plain_labels(y)
    values = np.asarray(y)
    if values.ndim == 0:
        check_length(values, n)
    if values.dtype.kind == "f":
        check_finite(values, "y", name)
    gap = (
        next((label for label in values.ravel().tolist() if _is_gap(label)), False) if values.dtype == object else False
    )
    if gap is not False:
        word = "None" if gap is None else "NaN"
        raise ValueError(f"y holds {word}, which is no label: leave those rows out, or give them a class of their own.")
    if values.dtype.kind in "biu" and values.ndim == 1 and 2 * len(np.unique(values)) <= len(values):
        check_length(values, n)
        return values  # classes, whatever else there is to say of targets
    try:
        with np.errstate(invalid="ignore"):  # floats beyond the integers are no classes
            kind = type_of_target(y, input_name="y")
            check_classification_targets(y)
    except TypeError as error:
        if "not supported between instances" not in str(error):
            raise
        raise ValueError(
            "y holds labels of several kinds, which have no order: make all of them text or all of them numbers, and "
            "leave out rows without a label."
        ) from error
    if kind == "multiclass-multioutput":
        raise ValueError(
            "y has several columns with more than two classes, which is not supported: fit one classifier per column, "
            "for example with sklearn.multioutput.MultiOutputClassifier."
        )
    if kind != "multilabel-indicator" and values.ndim == 2:
        warn(  # scikit-learn's own sentence would point into pilae
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), "
            "for example using ravel().",
            DataConversionWarning,
        )
    labels = check_array(y) if kind == "multilabel-indicator" else column_or_1d(y)
    check_length(labels, n)
    return labels


def _is_gap(label: object) -> bool:
    return label is None or (isinstance(label, float) and label != label) or type(label).__name__ == "NAType"


def all_classes(name: str, labels: np.ndarray, announced: ArrayLike | None = None) -> np.ndarray:
    """The classes there are, and those announced for later."""
    classes = labels
    if announced is not None:
        listed = np.unique(np.asarray(plain_labels(announced)))
        classes = one_kind(labels, listed)
        if len(classes) > len(listed):
            strange = np.setdiff1d(labels, listed).tolist()
            raise ValueError(
                f"y holds {strange[:5]}, which are not among the classes given: list all of them, or none."
            )
    if len(classes) < 2:
        later = (
            ", or where others come later give the first rows with the names of all of them to "
            "PILAEClassifier.partial_fit(X, y, classes=[...])"
        )
        raise ValueError(
            f"{name} needs at least two classes, but y holds one class only ({classes.tolist()[0]!r}): check the "
            f"targets{later if name == 'PILAEClassifier' else ''}."
        )
    if len(classes) > MAX_CLASSES:
        raise ValueError(
            f"y holds {len(classes)} classes, and each needs an output of its own; at most {MAX_CLASSES} are taken. If "
            "y counts or measures something use a regressor, otherwise group rare classes first."
        )
    return classes


def one_kind(known: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """All labels, sorted: numbers or text, not both."""
    if (labels.dtype.kind in "OUS") != (known.dtype.kind in "OUS"):
        raise ValueError(
            f"Labels must be of one kind: there are {known.tolist()[:3]}..., and also {labels.tolist()[:3]}..."
        )
    return np.union1d(known, labels)


def check_target_size(sizes: np.ndarray, dtype: str) -> None:
    """Target columns, as large as `sizes`, whose squares neither overflow nor vanish in the dtype of the fit."""
    low, high = TARGET_SIZES[dtype]
    absurd = ~((sizes == 0) | ((sizes >= low) & (sizes <= high)))
    if absurd.any():
        raise ValueError(
            f"A column of targets is as large as {sizes[absurd][0]:.0e}, and {dtype} takes {low:.0e} to {high:.0e}, "
            "where squares neither overflow nor vanish: rescale y, for example with "
            "sklearn.compose.TransformedTargetRegressor."
        )
