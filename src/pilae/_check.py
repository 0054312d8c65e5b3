"""Parameters and inputs: every error sentence a user can meet before the arithmetic starts."""

from __future__ import annotations

import importlib
import math
import numbers
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from . import _arrays
from ._arrays import Array, Space, is_foreign, space_of, to_numpy
from .activations import ACTIVATIONS

MAX_COLUMNS = 10_000

MAX_CLASSES = 5_000
"""Each class is an output with a target column of its own, and about a megabyte while the fit lasts."""

TAME = 64
"""Weights up to 2**64 and down to 2**-64 are taken as they come."""


# ---------------------------------------------------------------------------------------------- parameters


def bad(estimator: Any, name: str, must: str) -> ValueError:
    """scikit-learn's sentence for a wrong parameter."""
    value = getattr(estimator, name)
    return ValueError(f"The {name!r} parameter of {type(estimator).__name__} must be {must}. Got {value!r} instead.")


def check_choice(estimator: Any, name: str, choices: tuple[Any, ...]) -> None:
    value = getattr(estimator, name)
    if not any(value is c or (isinstance(value, str) and value == c) for c in choices):
        raise bad(estimator, name, "one of " + ", ".join(repr(c) for c in choices))


def is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)) and not math.isnan(value)


def is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))


def check_number(
    estimator: Any, name: str, choices: tuple[Any, ...] = (), low: float = 0.0, *, infinite: bool = False
) -> None:
    value = getattr(estimator, name)
    if any(isinstance(value, type(c)) and value == c for c in choices):
        return
    if not is_number(value) or value < low or (math.isinf(value) and not infinite):
        words = "".join(f"{c!r}, " for c in choices) + ("or " if choices else "")
        range_ = f"a number of at least {low:g}" + (" (float('inf') included)" if infinite else "")
        raise bad(estimator, name, words + range_)


def check_count(estimator: Any, name: str, choices: tuple[Any, ...] = (), low: int = 1) -> None:
    value = getattr(estimator, name)
    if any(isinstance(value, type(c)) and value == c for c in choices):
        return
    if not is_integer(value) or value < low:
        words = "".join(f"{c!r}, " for c in choices) + ("or " if choices else "")
        raise bad(estimator, name, words + f"an integer of at least {low}")


def check_width(estimator: Any) -> None:
    """width: "auto", "rank", "decay", ("rank", alpha), ("decay", beta), ("error", target), an int or a list of ints."""
    value = estimator.width
    if isinstance(value, str) and value in ("auto", "rank", "decay"):
        return
    if is_integer(value) and value >= 1:
        return
    if isinstance(value, (list, np.ndarray)) and len(value) and all(is_integer(v) and v >= 1 for v in value):
        return
    if isinstance(value, tuple) and len(value) == 2 and value[0] in ("rank", "decay", "error"):
        low = 0 if value[0] == "rank" else 1e-12
        if is_number(value[1]) and low <= value[1] <= 1:
            return
    if isinstance(value, tuple) and len(value) and all(is_integer(v) and v >= 1 for v in value):
        return
    raise bad(
        estimator,
        "width",
        "'auto', 'rank', 'decay', ('rank', alpha), ('decay', beta) or ('error', target) with a number from 0 to 1, a "
        "positive integer, or a list of positive integers",
    )


def check_network(estimator: Any) -> None:
    """The parameters every network of autoencoders shares."""
    check_count(estimator, "depth", ("auto",), low=0)
    check_width(estimator)
    check_count(estimator, "max_depth", low=0)
    check_layer(estimator)
    check_choice(estimator, "input_scaling", ("auto", "none", "standard", "asinh"))
    growth = estimator.growth
    if not (growth in ("loo", "rank") if isinstance(growth, str) else is_number(growth) and 0 <= growth < 1):
        raise bad(estimator, "growth", "'loo', 'rank' or a number from 0 to 1 (the fraction of N in the rank rule)")
    listed = not isinstance(estimator.width, str) and not is_integer(estimator.width)
    if listed and not isinstance(estimator.width[0], str):
        n_layers = len(estimator.width)
        if estimator.depth not in ("auto", n_layers):
            raise ValueError(
                f"'width' lists {n_layers} layers but 'depth' is {estimator.depth!r}: a list fixes the depth, so leave "
                f"depth='auto' or set depth={n_layers}."
            )


def check_layer(estimator: Any) -> None:
    """The parameters of one autoencoder layer."""
    check_choice(estimator, "encoder", ("rows", "truncated"))
    check_choice(estimator, "anchors", ("spread", "first"))
    check_number(estimator, "encoder_ridge", ("auto",), infinite=True)
    check_choice(estimator, "activation", tuple(ACTIVATIONS))
    gain = estimator.gain
    positive = (
        isinstance(gain, (tuple, list)) and len(gain) == 2 and all(is_number(g) and 0 < g < math.inf for g in gain)
    )
    if gain is not None and not positive:
        raise bad(estimator, "gain", "None or a pair of positive numbers such as (4, 1)")
    check_number(estimator, "decoder_ridge")
    check_number(estimator, "decoder_l1")
    if not isinstance(estimator.tied, (bool, np.bool_)):
        raise bad(estimator, "tied", "True or False")


def check_running(estimator: Any) -> None:
    """Where and how to compute."""
    check_count(estimator, "fit_rows", (None, "auto") if hasattr(estimator, "head") else (None,), low=2)
    check_place(estimator)


def check_place(estimator: Any) -> None:
    """Device, dtype, blocks and progress."""
    check_choice(estimator, "dtype", (None, "float32", "float64"))
    check_count(estimator, "block_rows", ("auto",))
    if estimator.device is not None and not isinstance(estimator.device, str):
        raise bad(estimator, "device", "None or the name of a device such as 'cuda'")
    if not is_number(estimator.verbose) and not isinstance(estimator.verbose, bool):
        raise bad(estimator, "verbose", "0 or 1")


def seed_of(random_state: Any) -> int:
    """One integer from random_state; None counts as 0, so that the default is deterministic."""
    if random_state is None:
        return 0
    if is_integer(random_state):
        if random_state < 0:
            raise ValueError(
                f"'random_state' must be None, a non-negative integer or a NumPy generator. Got {random_state}."
            )
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    raise ValueError(f"'random_state' must be None, a non-negative integer or a NumPy generator. Got {random_state!r}.")


# -------------------------------------------------------------------------------------------------- inputs


def check_X(estimator: Any, X: Any, *, reset: bool, min_rows: int = 1) -> Array:
    """X as a 2-D array of its own library, or CSR. Nothing is copied that is already in order."""
    name = type(estimator).__name__
    if isinstance(X, Iterator):
        raise read_once("X")
    X = unmasked(X, "X")
    if is_foreign(X):
        X = _arrays.detached(X)
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: reshape X to (rows, columns).")
        if not _arrays.is_numeric(X):
            raise ValueError(f"X must hold real numbers, but its dtype is {X.dtype}.")
        for size, what, least in ((X.shape[0], "sample", min_rows), (X.shape[1], "feature", 1)):
            if size < least:
                raise ValueError(
                    f"Found array with {size} {what}(s) (shape={tuple(X.shape)}) while a minimum of {least} is "
                    f"required by {name}."
                )
        validate_data(estimator, X, skip_check_array=True, reset=reset)
    else:
        if isinstance(X, scipy.sparse.sparray | scipy.sparse.spmatrix):
            X = _sound_sparse(X)
        try:
            X = validate_data(
                estimator,
                X,
                reset=reset,
                accept_sparse="csr",
                dtype="numeric",
                ensure_all_finite=False,
                ensure_min_samples=min_rows,
            )
        except (ValueError, TypeError, OverflowError) as error:
            raise _in_one_sentence(error) from None
        X = _in_float64(X, "X")
        if X.dtype.kind not in "biuf":
            raise ValueError(
                f"X must hold real numbers, but its dtype is {X.dtype}: turn dates and times into numbers first, for "
                "example with skrub.TableVectorizer."
            )
    _check_finite(X, "X", name)
    return X


def _sound_sparse(X: Any) -> Any:
    """X as CSR, its indices within its shape: compiled code does not look, and would read and write elsewhere."""
    try:
        if X.format in ("csr", "csc", "bsr"):
            X.check_format(full_check=True)
        return X if X.format == "csr" else X.tocsr()
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"X is a sparse matrix whose parts do not fit together ({error}): build it again.") from None


def unmasked(x: Any, what: str) -> Any:
    """x without NumPy's mask, if nothing is masked."""
    if not isinstance(x, np.ma.MaskedArray):
        return x
    if np.ma.is_masked(x):
        raise ValueError(
            f"{what} is a masked array with masked entries, which would count as numbers: use {what}.filled(numpy.nan) "
            "and fill them, for example with sklearn.impute.SimpleImputer, or leave those rows out."
        )
    return x.data


def _in_float64(x: Any, what: str) -> Any:
    """x in a dtype that computing goes on in: of longer floats only what float64 holds."""
    values = x.data if scipy.sparse.issparse(x) else x
    if values.dtype.kind != "f" or values.dtype.itemsize <= 8:
        return x
    with np.errstate(over="ignore"):
        short = x.astype(np.float64)
    lost = np.isfinite(values) & ~np.isfinite(short.data if scipy.sparse.issparse(x) else short)
    if lost.any():
        raise beyond_float64(what)
    return short


def beyond_float64(what: str) -> ValueError:
    return ValueError(
        f"{what} holds numbers beyond the range of float64 (1.8e308), which computing goes on in: rescale it, for "
        "example by its logarithm."
    )


def _in_one_sentence(error: Exception, what: str = "X") -> Exception:
    """scikit-learn's word on an array it cannot read, with a way out."""
    text = str(error)
    if isinstance(error, OverflowError):
        return beyond_float64(what)
    if "NAType" in text:
        return ValueError(
            f"{what} contains pandas.NA, which is no number: fill missing values first, for example with "
            "sklearn.impute.SimpleImputer in a Pipeline, or leave those rows out."
        )
    if "not compatible with arrays of bytes/strings" in text:
        return ValueError(
            f"{what} is an array of text: use {what}.astype(float) where it holds numbers written out, and encode "
            "words first, for example with sklearn.preprocessing.OneHotEncoder (as targets they need a classifier)."
        )
    if "inhomogeneous shape" in text:
        return ValueError(f"{what} has rows of different lengths: give each as many numbers.")
    if text.startswith("Expected 2D array"):
        kind = text.split(" instead")[0]
        return ValueError(
            f"{kind} instead. Reshape your data: X.reshape(-1, 1) is one column of many rows, X.reshape(1, -1) one row."
        )
    if text.startswith("could not convert string to float"):
        return ValueError(
            f"{what} holds text ({text.split(':')[-1].strip()}), but only numbers can be learnt from: encode it first, "
            "for example with sklearn.preprocessing.OneHotEncoder or skrub.TableVectorizer."
        )
    if text.startswith("Complex data not supported"):
        return ValueError("Complex data not supported: give the real and imaginary parts as columns of their own.")
    return error


def _check_finite(X: Any, what: str, name: str) -> None:
    values = X.data if scipy.sparse.issparse(X) else X
    xp = space_of(values).xp
    if not xp.isdtype(values.dtype, "real floating"):
        return
    with np.errstate(over="ignore", invalid="ignore"):
        # one reduction without a temporary; only a bad or overflowing sum earns the closer look
        if math.isfinite(float(xp.sum(values))):
            return
    for start in range(0, values.shape[0], 65_536):
        part = values[start : min(start + 65_536, values.shape[0]), ...]
        nan = bool(xp.any(xp.isnan(part)))
        if not nan and not bool(xp.any(xp.isinf(part))):
            continue
        found = "NaN" if nan else "infinity"
        if what == "y":
            raise ValueError(f"y contains {found}, which {name} does not take: leave those rows out.")
        cure = "fill missing values first" if nan else "replace it by NaN and fill it"
        raise ValueError(
            f"{what} contains {found}, which {name} does not take: {cure}, for example with "
            "sklearn.impute.SimpleImputer in a Pipeline."
        )


def check_same_space(estimator: Any, method: str, X: Any, fitted: Space) -> None:
    """A model lives where it was fitted; with `device` given, X is moved there."""
    here = space_of(X)
    if here == fitted or getattr(estimator, "device", None) is not None:
        return
    raise ValueError(
        f"Inputs passed to {type(estimator).__name__}.{method}() must use the same namespace and the same device as "
        f"those passed to fit(): X lives in {here.describe()}, the model in {fitted.describe()}; pass "
        f"{fitted.recipe()}, or fit again on arrays of X's kind."
    )


def tamed_weight(sample_weight: Any, n: int) -> tuple[np.ndarray | None, int]:
    """Sample weights of a fit, where only ratios matter, except that a weight of 3 is three rows: ordinary ones are
    kept, absurdly large or small ones divided by a power of two, which is the second value."""
    w = check_weight(sample_weight, n)
    exponent = 0 if w is None else int(np.frexp(w.max())[1])
    return (w, 0) if abs(exponent) < TAME else (scaled_weight(w, n, exponent), exponent)


def scaled_weight(w: np.ndarray | None, n: int, exponent: int) -> np.ndarray | None:
    """Weights of rows that join those of a fit, divided by the same power of two."""
    return w if exponent == 0 else np.ldexp(np.ones(n) if w is None else w, -exponent)


def check_weight(sample_weight: Any, n: int) -> np.ndarray | None:
    """Sample weights as float64 in NumPy; None stays None (all ones)."""
    if sample_weight is None:
        return None
    if is_number(sample_weight):
        sample_weight = np.full(n, float(sample_weight))
    odd = ValueError("'sample_weight' must hold finite numbers of at least 0, but it has others.")
    try:
        w = np.asarray(to_numpy(unmasked(sample_weight, "sample_weight")), dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise odd from error
    if w.ndim != 1 or w.shape[0] != n:
        raise ValueError(f"'sample_weight' must be one number a row: expected shape ({n},), got {w.shape}.")
    if not np.all(np.isfinite(w)) or np.any(w < 0):
        raise odd
    if not np.any(w > 0):
        raise ValueError("'sample_weight' is zero on every row: at least one row must count.")
    return w


def need_y(estimator: Any, y: Any) -> None:
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )


def _check_length(y: Any, n: int) -> None:
    if y.ndim == 0:
        raise ValueError(f"y is a single value, but X has {n} rows: give one target for each row.")
    if y.shape[0] != n:
        raise ValueError(f"X has {n} rows but y has {y.shape[0]}: give one target for each row.")


def plain_labels(y: Any) -> Any:
    """y without its container: from a device, a mask, a sparse matrix, or a pandas extension type."""
    y = unmasked(y, "y")
    if is_foreign(y):
        return to_numpy(y)
    if scipy.sparse.issparse(y):
        return y.toarray()
    plain = getattr(getattr(y, "dtype", None), "numpy_dtype", None)  # pandas' Int64, boolean, ...
    return y if plain is None or y.isna().any() else y.to_numpy(dtype=plain)


def _kind_of_labels(y: Any) -> str:
    """scikit-learn's word for the kind of these labels."""
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
    return kind


def check_labels(
    estimator: Any, y: Any, n: int, w: np.ndarray | None, announced: Any = None
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Targets of a classifier: (classes, integer codes or 0/1 matrix, multilabel?)."""
    need_y(estimator, y)
    y = plain_labels(y)
    values = np.asarray(y)
    if values.ndim == 0:
        _check_length(values, n)
    if values.dtype.kind == "f":
        _check_finite(values, "y", type(estimator).__name__)
    if values.dtype == object and any(label is None for label in values.ravel().tolist()):
        raise ValueError("y holds None, which is no label: leave those rows out, or give them a class of their own.")
    kind = _kind_of_labels(y)
    if kind == "multilabel-indicator":
        Y = check_array(y, dtype="numeric")
        _check_length(Y, n)
        return np.arange(Y.shape[1]), np.asarray(Y != 0, dtype=np.float64), True
    if kind == "multiclass-multioutput":
        raise ValueError(
            "y has several columns with more than two classes, which is not supported: fit one classifier per column, "
            "for example with sklearn.multioutput.MultiOutputClassifier."
        )
    y = column_or_1d(y, warn=True)
    _check_length(y, n)
    classes = all_classes(estimator, np.unique(y if w is None else y[w > 0]), announced)
    return classes, class_numbers(y, classes), False


def check_new_labels(estimator: Any, y: Any, n: int) -> np.ndarray:
    """Labels of rows that come after `fit`: one a row, of any classes."""
    need_y(estimator, y)
    values = np.asarray(plain_labels(y))
    if values.ndim == 0:
        _check_length(values, n)
    if values.dtype.kind == "f":
        _check_finite(values, "y", type(estimator).__name__)
    _kind_of_labels(values)
    labels = column_or_1d(values, warn=True)
    _check_length(labels, n)
    return labels


def check_targets(estimator: Any, y: Any, n: int, dtype: str) -> tuple[np.ndarray, bool]:
    """Targets of a regressor that computes in `dtype`: (float64, n x m, in NumPy; whether y was one-dimensional)."""
    need_y(estimator, y)
    if is_number(y):
        _check_length(np.asarray(y), n)
    try:
        Y = check_array(
            to_numpy(y) if is_foreign(y) else unmasked(y, "y"),
            ensure_2d=False,
            dtype="numeric",
            ensure_all_finite=False,
            input_name="y",
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise _in_one_sentence(error, "y") from None
    Y = _in_float64(Y, "y")
    _check_length(Y, n)
    _check_finite(Y, "y", type(estimator).__name__)
    columns = np.asarray(Y, dtype=np.float64).reshape(n, -1)
    check_target_size(np.max(np.abs(columns), axis=0), dtype)
    return columns, Y.ndim == 1


def read_once(what: str) -> ValueError:
    return ValueError(
        f"{what} is a generator or another iterator, which can be read only once, and fitting reads the rows several "
        "times: pass pilae.scan_blocks(f), where f is the function that makes a new one."
    )


def extra(module: str, name: str, what: str) -> Any:
    """An optional module, or the sentence that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(f"{what} needs {module.split('.')[0]}: pip install 'pilae[{name}]'.") from None


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


def check_alone(y: Any, sample_weight: Any) -> None:
    if y is not None or sample_weight is not None:
        raise ValueError(
            "A source brings its own targets and weights: call with the source alone, and name them where it is made "
            "(target=..., weight=..., or blocks of (X, y, sample_weight))."
        )


def remember_columns(estimator: Any, d: int, columns: list[str] | None) -> None:
    estimator.n_features_in_ = d
    if columns is not None:
        estimator.feature_names_in_ = np.array(columns, dtype=object)


def check_columns(estimator: Any, d: int, columns: list[str] | None) -> None:
    """The columns of a source against those of `fit`."""
    known = getattr(estimator, "feature_names_in_", None)
    if columns is not None and known is not None and list(known) != list(columns):
        missing = [name for name in known if name not in columns]
        what = f"{missing[:5]} are missing" if missing else "they come in another order or there are others"
        raise ValueError(f"The columns of the source are not those of fit: {what}. Name them with columns=[...].")
    if d != estimator.n_features_in_:
        raise ValueError(
            f"X has {d} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} features as "
            "input."
        )


def class_numbers(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The place of each label among the classes, in as few bytes as hold it. Labels of rows without weight may be no
    class at all, and get any number."""
    codes = np.empty(len(y), dtype=np.min_scalar_type(len(classes)))
    for start in range(0, len(y), 2**20):
        part = slice(start, start + 2**20)
        codes[part] = np.clip(np.searchsorted(classes, y[part]), 0, len(classes) - 1)
    return codes


def all_classes(estimator: Any, met: np.ndarray, announced: Any) -> np.ndarray:
    """The classes there are, and those announced for later."""
    classes = met if announced is None else one_kind(met, np.unique(np.asarray(plain_labels(announced))))
    if announced is not None and len(classes) > len(np.unique(np.asarray(plain_labels(announced)))):
        strange = np.setdiff1d(met, np.asarray(plain_labels(announced))).tolist()
        raise ValueError(f"y holds {strange[:5]}, which are not among the classes given: list all of them, or none.")
    check_classes(estimator, classes)
    return classes


def one_kind(known: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """All labels, sorted: numbers or text, not both."""
    if (labels.dtype.kind in "OUS") != (known.dtype.kind in "OUS"):
        raise ValueError(
            f"Labels must be of one kind: there are {known.tolist()[:3]}..., and also {labels.tolist()[:3]}..."
        )
    return np.union1d(known, labels)


def check_classes(estimator: Any, classes: np.ndarray) -> None:
    if len(classes) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs at least two classes, but y holds one class only "
            f"({classes.tolist()[0]!r}): check the target column."
        )
    if len(classes) > MAX_CLASSES:
        raise ValueError(
            f"y holds {len(classes)} classes, and each needs an output of its own; at most {MAX_CLASSES} are taken. If "
            "y counts or measures something use a regressor, otherwise group rare classes first."
        )


def check_spread(variance: Array) -> None:
    """Columns to learn from."""
    xp = space_of(variance).xp
    if not bool(xp.any(variance > 0)):
        raise ValueError(
            "No column of X varies by more than rounding, so there is nothing to learn from: subtract what the numbers "
            "of a column have in common."
        )


def columns_too_far_apart(smallest: float, largest: float, dtype: str) -> ValueError:
    return ValueError(
        f"The columns of X are as small as {smallest:.0e} and as large as {largest:.0e}, too far apart for {dtype} "
        "with input_scaling='none': use input_scaling='standard', or bring the columns to one scale."
    )


TARGET_SIZES = {"float64": (1e-150, 1e150), "float32": (1e-15, 1e15)}
"""Targets as large as that can be squared and added up."""


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


PIXELS = {"float64": 1e60, "float32": 1e12}
"""Pixels may be so large, and in `fit` the largest as small as the inverse: squares of their sums are made of them."""


def check_pixels(X: Array, dtype: str, *, fit: bool = False) -> None:
    """Images whose largest number can be squared."""
    xp, high = space_of(X).xp, PIXELS[dtype]
    largest = max(abs(float(xp.min(X))), abs(float(xp.max(X))))
    if largest > high or (fit and 0 < largest < 1 / high):
        raise ValueError(
            f"The largest pixel is {largest:.0e}, and images are taken in {dtype} from {1 / high:.0e} to {high:.0e}: "
            "divide them by a unit, for example by numpy.abs(X).max()."
        )


def check_shape(x: Array, *shape: int) -> None:
    """Of an array in a file that somebody else wrote."""
    if tuple(x.shape) != shape:
        raise ValueError(f"an array has shape {tuple(x.shape)}, not {shape}")


def check_sums(finite: bool) -> None:
    if not finite:
        raise ValueError(
            "The rows hold numbers so far beyond those of fit that their sums overflow: bring them to the units of the "
            "training rows, or leave them out."
        )


def check_answer(part: Array) -> None:
    """Outputs that are numbers: rows far beyond those of `fit` can overflow on their way."""
    xp = space_of(part).xp
    if isinstance(part, np.ndarray) and part.dtype.kind not in "f":
        return
    if not xp.isdtype(part.dtype, "real floating") or math.isfinite(float(xp.sum(part))):
        return
    if not bool(xp.all(xp.isfinite(part))):
        raise ValueError(
            "X holds numbers so far beyond those of fit that what is made of them overflows: bring them to the units "
            "of the training rows, or leave those rows out."
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


def weights_of_labels() -> ValueError:
    return ValueError("'class_weight' is for one label per row: with multilabel targets use sample_weight.")


def too_few_rows(width: int, available: int, what: str) -> ValueError:
    return ValueError(
        f"{what} asks for {width} neurons, but only {available} distinct rows of positive weight are available and "
        f"each neuron is one of them: give more rows or a width of at most {available}."
    )
