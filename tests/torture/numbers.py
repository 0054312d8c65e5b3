"""Hostile numbers: every estimator, on arrays made to break it, gives a right answer or refuses in one sentence.

Right means: outputs are finite and of the right shape, and the same as those of a model of the ordinary array that
holds the same numbers (native float64, in C order, dense, of ordinary size); for plain ridge, those of a solution in
long floats that shares no code with pilae. Refused means a ValueError (or scikit-learn's own TypeError) of one line,
with the estimator as it was. There is never a warning of NumPy's, and at most one of any kind.

The arrays come from hypothesis, always the same ones; a case that fails is shrunk, and its description, which is in the
message, makes it again: `numbers.CHECKS[name](model, **case)`.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

from helpers import evaluation, interpolation, rounding, tolerance
from pilae import (
    SHLN,
    ConvPILAE,
    PILAEClassifier,
    PILAERegressor,
    PILAutoencoder,
    PILClassifier,
    PILRegressor,
    StackedPILAE,
)
from torture.harness import Broken, anonymous_megabytes, spread

QUICK = {"cases": 3, "classes": 20_000, "small_rows": 50_000, "processes": 1}
FULL = {"cases": 200, "classes": 100_000, "small_rows": 2_000_000, "processes": 2}

ROOT = 1e-12
"""Of the logarithm of a temperature, to which its equation is solved (`_engine.calibration`): it is no rounding."""

SENTENCE = 600
"""Most characters of an error."""

MODELS: dict[str, Any] = {
    "classifier": PILAEClassifier(),
    "classifier, depth 0": PILAEClassifier(
        depth=0, ridge=1e-2, layer=PILAutoencoder(anchors="first"), head=SHLN(width=3)
    ),
    "classifier, depth 1": PILAEClassifier(
        depth=1, width=2, ridge=1e-2, layer=PILAutoencoder(anchors="first"), head=SHLN(width=3)
    ),
    "classifier, ridge": PILAEClassifier(depth=0, head="ridge", ridge=1e-2),
    "classifier, raw": PILAEClassifier(
        depth=1, input_scaling="none", head="ridge", ridge=1e-2, layer=PILAutoencoder(anchors="first")
    ),
    "classifier, asinh": PILAEClassifier(
        depth=0, input_scaling="asinh", ridge=1e-2, layer=PILAutoencoder(anchors="first"), head=SHLN(width=3)
    ),
    "classifier, truncated": PILAEClassifier(
        depth=1, head="ridge", ridge=1e-2, layer=PILAutoencoder(encoder="truncated")
    ),
    "classifier, softmax": PILAEClassifier(depth=0, head="softmax"),
    "classifier, float32": PILAEClassifier(
        depth=1, dtype="float32", head="ridge", ridge=1e-2, layer=PILAutoencoder(anchors="first")
    ),
    "regressor": PILAERegressor(),
    "regressor, ridge": PILAERegressor(depth=0, head="ridge", ridge=1e-2),
    "regressor, standard": PILAERegressor(
        depth=1, input_scaling="standard", ridge=1e-2, layer=PILAutoencoder(anchors="first"), head=SHLN(width=3)
    ),
    "regressor, float32": PILAERegressor(depth=0, dtype="float32", head="ridge", ridge=1e-2),
    "regressor, robust": PILAERegressor(depth=0, loss="robust", head="ridge", ridge=1e-2),
    "stack": StackedPILAE(layer=PILAutoencoder(anchors="first")),
    "stack, raw": StackedPILAE(width=[2, 1], input_scaling="none", layer=PILAutoencoder(anchors="first")),
    "stack, standard": StackedPILAE(width="rank", input_scaling="standard", layer=PILAutoencoder(anchors="first")),
    "stack, float32": StackedPILAE(max_depth=1, dtype="float32", layer=PILAutoencoder(anchors="first")),
    "stack, sparse decoders": StackedPILAE(max_depth=1, layer=PILAutoencoder(decoder_l1=0.01, anchors="first")),
    "stack, literal": StackedPILAE(max_depth=1, layer=PILAutoencoder(encoder_ridge=0, gain=None, anchors="first")),
    "autoencoder": PILAutoencoder(anchors="first"),
    "autoencoder, truncated": PILAutoencoder(encoder="truncated"),
    "autoencoder, untied": PILAutoencoder(tied=False, activation="relu", anchors="first"),
    "basic classifier": PILClassifier(),
    "basic regressor": PILRegressor(),
    "images": ConvPILAE(patch=2, filters=3, pool=1, depth=1, mirror=False, contrast=0.1, encoder_ridge=1.0),
}


# ------------------------------------------------------------------------------------------------- what may happen


class Refused(Exception):
    """One clear sentence."""


def quietly(call: Callable[[], Any], of: str) -> Any:
    """What a call gives; `Refused` where it refuses in one sentence, `Broken` where it does anything else."""
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        try:
            result = call()
        except (ValueError, TypeError) as error:
            text = str(error)
            # scikit-learn's sentence about dimensions shows the array below it
            if "\n" in text.split("Expected 2D array")[0] or not 20 < len(text.split("\n")[0]) < SENTENCE:
                raise Broken(f"{of}: an error that is no sentence: {text}") from error
            raise Refused(text) from error
        except Exception as error:
            raise Broken(f"{of}: {type(error).__name__}: {error}") from error
        finally:
            wrong = [str(w.message) for w in met if issubclass(w.category, RuntimeWarning)]
            if wrong or len(met) > 1:
                raise Broken(f"{of}: warnings: {[str(w.message)[:80] for w in met][:5]}")
    return result


def fitted(model: Any, X: Any, y: Any, **rest: Any) -> Any:
    """A fitted clone. Where it is refused the clone must be as it was."""
    new = clone(model)
    before = dict(vars(new))
    targets = () if isinstance(model, StackedPILAE | PILAutoencoder | ConvPILAE) else (y,)
    try:
        return quietly(lambda: new.fit(X, *targets, **rest), f"fit of {model}")
    except Refused:
        if vars(new) != before:
            raise Broken(f"fit of {model}: refused, but the estimator has changed") from None
        raise


def answers(model: Any, X: Any) -> dict[str, np.ndarray]:
    """Everything a fitted model says about rows."""
    said = {}
    for name in ASKED:
        if hasattr(model, name):
            about = said["transform"] if name == "inverse_transform" else X
            said[name] = np.asarray(quietly(lambda name=name, x=about: getattr(model, name)(x), f"{name} of {model}"))
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    for name, values in said.items():
        if len(values) != rows:
            raise Broken(f"{name} of {model}: {len(values)} answers for {rows} rows")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise Broken(f"{name} of {model}: {values[~np.isfinite(values)][:3]} among the answers")
    return said


ASKED = (
    "predict",
    "decision_function",
    "predict_proba",
    "predict_interval",
    "transform",
    "inverse_transform",
    "score_samples",
    "reconstruct",
)


def same(said: dict, wanted: dict, of: str, off_by: float | dict[str, float], least: float = 0.0) -> None:
    """The same answers, up to `off_by` relative to the largest of each kind, or to `least`. Labels follow from
    outputs."""
    for name, values in said.items():
        if name == "predict" and "decision_function" in said:
            continue
        other = np.asarray(wanted[name], dtype=float)
        size = np.max(np.abs(other), initial=1.0 if name == "decision_function" else least)  # targets are 0 and 1
        off = float(np.max(np.abs(values - other), initial=0.0))
        if not off <= (off_by[name] if isinstance(off_by, dict) else off_by) * size:
            raise Broken(f"{of}: {name} is off by {off:.2e}, and the largest is {size:.2e}")


def tolerances(model: Any, X: np.ndarray, said: dict) -> dict[str, float]:
    """Of what a fitted model has said of ordinary rows: what it was solved from rounds, and so does the answering."""
    solved = tolerance(**solved_from(model, X))
    found = {}
    for name, values in said.items():
        ask, rows = getattr(model, name), said["transform"] if name == "inverse_transform" else X
        found[name] = solved
        if values.dtype.kind == "f":
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # of rows far out
                found[name] = max(solved, tolerance(**evaluation(ask, rows, values.dtype)))
    return found | {"predict_proba": found.get("predict_proba", 0.0) + ROOT}


def solved_from(model: Any, X: np.ndarray) -> dict[str, Any]:
    """`rounding` where sums are kept, else what the ridges of the layers allow; and the digits that X has lost."""
    if isinstance(model, PILClassifier | PILRegressor):
        return interpolation(model, X)
    if hasattr(getattr(model, "head_", None), "output"):
        known = rounding(model)
        return known | {"condition": max(known["condition"], lost(X))}
    network = getattr(model, "network_", None)
    layers, dtype = ((), "float64") if network is None else (network.layers, network.dtype)
    ridge = (getattr(model, "layer", None) or PILAutoencoder()).decoder_ridge
    condition = max([lost(X), X.shape[1], *(layer.width / ridge for layer in layers)])
    return {"dtype": dtype, "condition": condition, "terms": sum(X.shape)}


def lost(X: np.ndarray) -> float:
    """The condition of centring: how far off its mean a column is. One that varies by no more than rounding is none."""
    with np.errstate(over="ignore"):
        largest, spread = np.abs(X).max(axis=0), X.max(axis=0) - X.min(axis=0)
    varies = spread > tolerance() * largest
    return float(max(largest[varies] / spread[varies], default=1.0))


# ------------------------------------------------------------------------------------------------- ordinary problems


def problem(model: Any, seed: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes far apart, or a linear target."""
    rng = np.random.default_rng(seed)
    d = 9 if isinstance(model, ConvPILAE) else d
    y = np.arange(n) % 2
    X = rng.standard_normal((n, d)) + 6.0 * y[:, None]
    if isinstance(model, PILAERegressor | PILRegressor):
        return X, X @ rng.standard_normal(d) + 0.01 * rng.standard_normal(n)
    return X, y


def as_right(model: Any, X: Any, twin: Any, plain: Any, y: np.ndarray, of: str) -> None:
    """Classes far apart are told apart, and a linear target is met, about as well as by the model of the ordinary rows:
    where columns are not standardised it is another model, and on a few rows it may be a little worse."""
    if hasattr(model, "score") and len(y) >= 16:
        score, wanted = (quietly(lambda m=m, x=x: m.score(x, y), of) for m, x in ((model, X), (twin, plain)))
        if score < wanted - 0.25:
            raise Broken(f"{of}: the score on the training rows is {score:.3f}, and {wanted:.3f} on ordinary ones")


def ridge_by_hand(X: np.ndarray, y: np.ndarray, w: np.ndarray, ridge: float) -> np.ndarray:
    """Fitted values of ridge on standardised columns, by elimination in long floats; no column may be constant."""
    X, Z, w = (np.asarray(a, np.longdouble) for a in (X, y.reshape(len(y), -1), w))
    X, w = X / np.abs(X).max(axis=0), w / w.sum()
    F, mean = X - w @ X, w @ Z
    F = F / np.sqrt(w @ F**2)
    A = np.concatenate([F.T @ (w[:, None] * F) + ridge * np.eye(F.shape[1]), F.T @ (w[:, None] * (Z - mean))], axis=1)
    for k in range(len(A)):  # positive definite: no pivots
        A[k] /= A[k, k]
        others = np.arange(len(A)) != k
        A[others] -= A[others, k, None] * A[k]
    return np.asarray(F @ A[:, F.shape[1] :] + mean, dtype=float)


# ------------------------------------------------------------------------------------------------- the checks

seeds, rows, columns = st.integers(0, 999), st.integers(8, 40), st.integers(1, 5)
exponents = st.one_of(st.integers(-1060, 1015), st.sampled_from([-1060, -540, -140, 140, 510, 530, 1015]))


def is_standardised(model: Any) -> bool:
    """Whether a column of another size makes no difference."""
    if getattr(model, "depth", None) == 0 and getattr(model, "head", None) == "ridge":
        return True
    return getattr(model, "input_scaling", "standard") in ("standard", "asinh") and not isinstance(model, ConvPILAE)


def is_searched(model: Any) -> bool:
    """Whether it makes choices that a tie can decide by rounding."""
    return (getattr(model, "head", None) is not None and model.depth == "auto") or getattr(
        model, "head", ""
    ) == "softmax"


def is_scale_free(model: Any) -> bool:
    """Whether X, or weights, in another unit give the same model. Patches are drawn in the order of a hash of X."""
    layer = getattr(model, "layer", None) or model
    return getattr(layer, "gain", True) is not None and not isinstance(model, ConvPILAE)


def is_plain_ridge(model: Any) -> bool:
    """Whether nothing but a ridge on standardised columns is fitted, in float64."""
    given = getattr(model, "head", None) == "ridge" and model.depth == 0 and model.ridge != "auto"
    return given and model.dtype is None and getattr(model, "loss", "squared") == "squared"


def scales(model: Any, seed: int, n: int, d: int, powers: list[int], each: bool) -> None:
    """Columns, or all of X, times powers of two, subnormal numbers included: the same answers as without."""
    X, y = problem(model, seed, n, d)
    powers_ = np.resize(powers, X.shape[1]) if each else np.full(X.shape[1], powers[0])
    hostile = np.ldexp(X, powers_)
    if not np.isfinite(hostile).all():
        hostile = np.ldexp(X, powers_ - 8)
        powers_ = powers_ - 8
    # subnormal numbers have lost digits: the ordinary equivalent has lost the same
    half = -powers_ // 2
    plain = np.ldexp(np.ldexp(hostile, half), -powers_ - half)
    of = f"{model} on columns times 2**{powers_.tolist()}, seed {seed}, {n} rows"
    found, twin = fitted(model, hostile, y), fitted(model, plain, y)
    said = answers(found, hostile)
    as_right(found, hostile, twin, plain, y, of)
    as_by_hand(model, said, plain, y, np.ones(n), of)
    if is_searched(model) or not is_scale_free(model) or (each and not is_standardised(model)):
        return
    if "inverse_transform" in said:
        said["inverse_transform"] = np.ldexp(np.ldexp(said["inverse_transform"], half), -powers_ - half)
    if powers_.min() < -900:
        said.pop("inverse_transform", None)  # digits are lost on the way back
    if getattr(model, "input_scaling", "none") not in ("standard", "asinh"):
        said.pop("score_samples", None)  # in the units of the input, as the features of no layer are
        if getattr(model, "depth", None) == 0:
            said.pop("transform")
    wanted = answers(twin, plain)
    same(said, wanted, of, tolerances(twin, plain, wanted))


def as_by_hand(model: Any, said: dict, X: np.ndarray, y: np.ndarray, w: np.ndarray, of: str) -> None:
    """Of plain ridge the answers must be those of a solution in long floats.

    Rounding of the Gram matrix of p standardised columns moves its solution by at most eps times the condition number,
    which the ridge bounds by 1 + p / ridge.
    """
    X = np.asarray(X, np.longdouble)
    there = X[w > 0]
    low, high = there.min(axis=0), there.max(axis=0)
    varies = high > low
    blurred = varies & (high - low < 1e-5 * np.maximum(np.abs(low), np.abs(high)))
    if not is_plain_ridge(model) or blurred.any() or not varies.any():  # what is left of a blurred column is rounding
        return
    Z = np.eye(2)[np.asarray(y, int)] if isinstance(model, PILAEClassifier) else y
    hand = ridge_by_hand(X[:, varies], Z, w, model.ridge)
    name = "decision_function" if isinstance(model, PILAEClassifier) else "predict"
    hand = hand[:, 1] - hand[:, 0] if isinstance(model, PILAEClassifier) else hand[:, 0]
    condition = max(1 + np.count_nonzero(varies) / model.ridge, lost(there))
    off_by = tolerance(said[name].dtype, condition, terms=len(X))
    same({name: said[name]}, {name: hand}, of + ", against ridge by hand", off_by, float(np.max(np.abs(Z))))


def takes_gaps(model: Any) -> bool:
    return isinstance(model, PILAEClassifier | PILAERegressor)


def degenerate(model: Any, seed: int, n: int, d: int, what: list[str]) -> None:
    """Constant, repeated and nearly collinear columns, repeated rows of other labels, far-off columns."""
    X, y = problem(model, seed, n, d)
    rng = np.random.default_rng(seed)
    for kind in what:
        X, y = DEFECTS[kind](X, y, rng)
    found = fitted(model, X, y)
    if what == ["nan"] and takes_gaps(model):
        answers(found, X)
        return
    if what[0] in FATAL and not isinstance(model, PILClassifier | PILRegressor | ConvPILAE):
        raise Broken(f"{model} has learnt from {what[0]}, seed {seed}, {n} x {d}")
    said = answers(found, X)
    as_by_hand(model, said, X, y, np.ones(len(X)), f"{model}, {what}, seed {seed}, {n} x {d}")
    if is_plain_ridge(model):
        more = np.c_[X, np.full(len(X), 3.25)]
        of = f"{model} with one more constant column, {what}, seed {seed}, {n} x {d}"
        del said["transform"]  # the columns themselves
        same(said, answers(fitted(model, more, y), more), of, tolerances(found, X, said))


DEFECTS: dict[str, Callable] = {
    "constant column": lambda X, y, rng: (np.c_[X, np.full(len(X), rng.choice([0.0, 7.0, 1e-300, 1e300, -1e160]))], y),
    "repeated column": lambda X, y, rng: (np.c_[X, X[:, :1]], y),
    "nearly the same": lambda X, y, rng: (np.c_[X, X[:, :1] * (1 + 1e-9 * rng.standard_normal((len(X), 1)))], y),
    "collinear": lambda X, y, rng: (np.c_[X, X @ rng.standard_normal((X.shape[1], 2))], y),
    "far off": lambda X, y, rng: (X + 10.0 ** rng.integers(3, 12), y),
    "rounding": lambda X, y, rng: (np.c_[X, 1.0 + 2.0**-52 * rng.integers(0, 2, len(X))], y),
    "one row": lambda X, y, rng: (X[:1], y[:1]),
    "two rows": lambda X, y, rng: (X[:2], y[:2]),
    "three rows": lambda X, y, rng: (X[:3], y[:3]),
    "one column": lambda X, y, rng: (X[:, :1], y),
    "wide": lambda X, y, rng: (np.tile(X, 20) * rng.standard_normal((1, 20 * X.shape[1])), y),
    "equal rows, other labels": lambda X, y, rng: (np.r_[X, X], np.r_[y, y[::-1]]),
    "two equal rows": lambda X, y, rng: (X[[0, 0]], y[[0, 1]]),
    "all rows the same": lambda X, y, rng: (X[np.zeros(len(X), int)], y),
    "all zero": lambda X, y, rng: (0 * X, y),
    "minus zero": lambda X, y, rng: (np.where(X > 0, 0.0, -0.0) * X, y),
    "outlier": lambda X, y, rng: (np.r_[X, np.full((1, X.shape[1]), 10.0 ** rng.integers(5, 300))], np.r_[y, y[:1]]),
    "no rows": lambda X, y, rng: (X[:0], y[:0]),
    "no columns": lambda X, y, rng: (X[:, :0], y),
    "nan": lambda X, y, rng: (np.where(rng.choice(X.reshape(-1)) == X, np.nan, X), y),
    "infinity": lambda X, y, rng: (np.where(rng.choice(X.reshape(-1)) == X, -np.inf, X), y),
}


FATAL = ("one row", "two equal rows", "all rows the same", "all zero", "no rows", "no columns", "nan", "infinity")
"""Nothing can be learnt from these."""


def anything(model: Any, X: np.ndarray) -> None:
    """Whatever hypothesis finds worth trying."""
    y = np.arange(len(X)) % 2
    found = fitted(model, X, y)
    said = answers(found, X)
    if np.isnan(X).any() and takes_gaps(model):
        X = found.fitted_.columns.intake(X)  # gaps filled, and flagged where they tell
    as_by_hand(model, said, X, y, np.ones(len(X)), f"{model} on {X!r}")


def containers(model: Any, seed: int, n: int, d: int, kind: str) -> None:
    """The same numbers in other clothes: the same answers."""
    X, y = problem(model, seed, n, d)
    if kind in WHOLE:  # numbers that this kind holds
        X = np.clip(np.rint(8 * X), 0, 100)
    if kind in ("bool", "boolean", "category"):
        X = (np.random.default_rng(seed).random(X.shape) < 0.3) * 1.0
    if kind == "float16":
        X = X.astype(np.float16).astype(np.float32)  # which half floats are computed in
    if kind == "category" and takes_gaps(model):  # there it is no longer the same numbers
        return
    dressed = CONTAINERS[kind](X)
    of = f"{model} on {kind}, seed {seed}, {n} x {d}"
    try:
        found = fitted(model, dressed, y)
    except Refused as error:
        if isinstance(model, ConvPILAE) or "No column" in str(error) or "All rows" in str(error):
            raise
        if kind not in NEVER + GAPS or (kind in GAPS and takes_gaps(model)):
            raise Broken(f"{of}: refused: {error}") from error
        raise
    if kind == "three dimensions" and isinstance(model, ConvPILAE):  # images of another shape
        return
    if kind in GAPS and takes_gaps(model):
        answers(found, dressed)
        return
    if kind in NEVER + GAPS:
        raise Broken(f"{of}: taken, though it cannot be read as numbers")
    said = answers(found, dressed)
    twin = fitted(model, X, y)
    wanted = answers(twin, X)
    off_by = tolerances(twin, X, wanted if not isinstance(model, ConvPILAE) else said)  # integers are float32 there
    same(said, wanted, of, off_by)
    same(answers(found, X), wanted, of + ", asked about the plain rows", off_by)


def _sparse(X: np.ndarray, kind: Callable, *, twice: bool = False) -> Any:
    """Every number is stored, zeros too; `twice`: as the sum of two halves."""
    at = np.indices(X.shape).reshape(2, -1)
    values = X.reshape(-1)
    if twice:
        at, values = np.concatenate([at, at], axis=1), np.concatenate([values, values]) / 2
    return kind(scipy.sparse.coo_array((values, at), shape=X.shape))


def _repeated_csr(X: np.ndarray) -> Any:
    """CSR with every entry as two halves, unsorted, with int64 indices."""
    n, d = X.shape
    indices = np.tile(np.r_[np.arange(d)[::-1], np.arange(d)], n).astype(np.int64)
    halves = np.concatenate([X[:, ::-1], X], axis=1).reshape(-1) / 2
    return scipy.sparse.csr_array((halves, indices, np.arange(0, 2 * n * d + 1, 2 * d, dtype=np.int64)), shape=(n, d))


def _missing(X: np.ndarray, kind: str) -> pd.DataFrame:
    frame = pd.DataFrame(X).astype(kind)
    frame.iloc[0, 0] = pd.NA
    return frame


def _read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


CONTAINERS: dict[str, Callable[[np.ndarray], Any]] = {
    "big-endian": lambda X: X.astype(">f8"),
    "Fortran order": np.asfortranarray,
    "negative strides": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "every other": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "read-only": _read_only,
    "float16": lambda X: X.astype(np.float16),
    "longdouble": lambda X: X.astype(np.longdouble),
    "long beyond float64": lambda X: X.astype(np.longdouble) * np.longdouble("1e4000"),
    "int8": lambda X: X.astype(np.int8),
    "big-endian int16": lambda X: X.astype(">i2"),
    "uint64": lambda X: X.astype(np.uint64),
    "bool": lambda X: X.astype(bool),
    "objects": lambda X: X.astype(object),
    "huge integers": lambda X: np.where(X.max() <= X, 10**400, X.astype(object)),
    "text": lambda X: X.astype(str),
    "words": lambda X: np.where(X.max() <= X, "much", "little"),
    "complex": lambda X: X + 1j,
    "list": lambda X: X.tolist(),
    "tuples": lambda X: tuple(map(tuple, X.tolist())),
    "matrix of masks": lambda X: np.ma.masked_array(X, np.zeros(X.shape, bool)),
    "masked": lambda X: np.ma.masked_greater_equal(X, X.max()),
    "DataFrame": pd.DataFrame,
    "Int64": lambda X: pd.DataFrame(X).astype("Int64"),
    "Float64": lambda X: pd.DataFrame(X).astype("Float64"),
    "boolean": lambda X: pd.DataFrame(X).astype("boolean"),
    "category": lambda X: pd.DataFrame(X).astype("category"),
    "Arrow": lambda X: pd.DataFrame(X).astype("double[pyarrow]"),
    "Int64 with NA": lambda X: _missing(X, "Int64"),
    "Float64 with NA": lambda X: _missing(X, "Float64"),
    "object with NA": lambda X: _missing(X, "object"),
    "polars": lambda X: pl.DataFrame(X, schema=[f"c{k}" for k in range(X.shape[1])]),
    "polars with null": lambda X: pl.DataFrame(
        {f"c{k}": [None, *column[1:].tolist()] for k, column in enumerate(X.T)}, strict=False
    ),
    "csr, explicit zeros": lambda X: _sparse(X, scipy.sparse.csr_array),
    "csr, repeated entries": _repeated_csr,
    "csc": lambda X: _sparse(X, scipy.sparse.csc_array),
    "coo, repeated entries": lambda X: _sparse(X, scipy.sparse.coo_array, twice=True),
    "csr matrix": lambda X: scipy.sparse.csr_matrix(X),
    "sparse int": lambda X: scipy.sparse.csr_array(X.astype(np.int32)),
    "lil": lambda X: scipy.sparse.lil_array(X),
    "one dimension": lambda X: X[:, 0],
    "three dimensions": lambda X: X[:, :, None],
}

WHOLE = ("int8", "big-endian int16", "uint64", "Int64", "Int64 with NA", "huge integers", "sparse int")
"""Kinds that hold whole numbers."""

NEVER = (
    "long beyond float64",
    "huge integers",
    "text",
    "words",
    "complex",
    "masked",
    "one dimension",
    "three dimensions",
)
"""Kinds that cannot be read as a table of numbers."""

GAPS = ("Int64 with NA", "Float64 with NA", "object with NA", "polars with null")
"""Kinds that classifiers and regressors alone take."""

OF_ITS_OWN = (*WHOLE, *NEVER, *GAPS, "boolean")
"""Kinds that do not hold any numbers."""


def targets(model: Any, seed: int, n: int, d: int, power: int, weight_powers: list[int], constant: bool) -> None:
    """Targets and weights of absurd size: the same model in other units, or refused."""
    X, y = problem(model, seed, n, d)
    of = f"{model}, targets times 2**{power}, weights times 2**{weight_powers}, seed {seed}, {n} x {d}"
    w = np.random.default_rng(seed).integers(1, 4, n) / 4.0
    weighted = isinstance(model, PILAEClassifier | PILAERegressor | StackedPILAE | PILAutoencoder)
    hostile_w = np.ldexp(w, np.resize(weight_powers, n))
    numbers = isinstance(model, PILAERegressor | PILRegressor)
    y = np.full(n, 0.7) if constant and numbers else y
    hostile = np.ldexp(y, power) if numbers else y
    found = fitted(model, X, hostile, **({"sample_weight": hostile_w} if weighted else {}))
    said = answers(found, X)
    if numbers:
        said = {name: np.ldexp(values, -power) for name, values in said.items() if name != "transform"}
    if weighted and not constant:
        as_by_hand(model, said, X, y, hostile_w, of)
    if is_searched(model) or not is_scale_free(model) or len(set(weight_powers)) > 1:
        return
    twin = fitted(model, X, y, **({"sample_weight": w} if weighted else {}))
    wanted = answers(twin, X)
    for name in ("predict_proba", "predict_interval"):
        said.pop(name, None)  # by leave-one-out, where a weight of 3 is three rows
    if getattr(model, "loss", "") != "robust":  # as its weights are
        same(said, wanted, of, tolerances(twin, X, wanted))


def asked(model: Any, seed: int, n: int, d: int, power: int, kind: str) -> None:
    """Rows from elsewhere, after an ordinary fit: finite answers or one sentence, and the model is as it was."""
    X, y = problem(model, seed, n, d)
    found = fitted(model, X, y)
    before = answers(found, X)
    hostile = np.ldexp(X, np.full(X.shape[1], power))
    with np.errstate(over="ignore"):  # float16 makes infinity of it
        dressed = CONTAINERS[kind](np.where(np.isfinite(hostile), hostile, 1e300))
    try:
        answers(found, dressed)
    finally:
        same(answers(found, X), before, f"{model} asked again, {kind}, 2**{power}, seed {seed}, {n} x {d}", 0.0)


def updates(model: Any, seed: int, n: int, d: int, power: int, way: str, weight: float) -> None:
    """Rows that come or go: refused, and the model is as it was; or the answers stay finite."""
    X, y = problem(model, seed, n, d)
    found = fitted(model, X, y)
    before = answers(found, X)
    hostile = np.ldexp(X, np.full(X.shape[1], power))
    hostile = np.where(np.isfinite(hostile), hostile, 1e300)
    of = f"{model}, {way} of rows times 2**{power}, weight {weight}, seed {seed}, {n} x {d}"
    calls = {
        "partial_fit": lambda: found.partial_fit(hostile, y, sample_weight=np.full(n, weight)),
        "update all": lambda: found.partial_fit(hostile, y, sample_weight=np.full(n, weight), update="all"),
        "forget": lambda: found.forget(hostile, y, sample_weight=np.full(n, weight)),
        "recalibrate": lambda: found.recalibrate(hostile, y),
        "nan": lambda: found.partial_fit(np.where(hostile > 0, np.nan, X), y),
    }
    try:
        quietly(calls[way], of)
    except Refused:
        same(answers(found, X), before, of + ", refused", 0.0)
        raise
    answers(found, X)


CHECKS: dict[str, Callable[..., None]] = {
    check.__name__: check for check in (scales, degenerate, anything, containers, targets, asked, updates)
}

place = {"seed": seeds, "n": rows, "d": columns}
STRATEGIES: dict[str, Any] = {
    "scales": st.fixed_dictionaries(
        place | {"powers": st.lists(exponents, min_size=1, max_size=5), "each": st.booleans()}
    ),
    "degenerate": st.fixed_dictionaries(
        place
        | {
            "what": st.one_of(
                st.lists(st.sampled_from([kind for kind in DEFECTS if kind not in FATAL]), min_size=1, max_size=3),
                st.sampled_from(FATAL).map(lambda kind: [kind]),
            )
        }
    ),
    "anything": st.fixed_dictionaries(
        {
            "X": arrays(
                st.sampled_from([np.float64, np.float32, np.float16, np.int8, np.int64, np.uint64]),
                st.tuples(st.integers(1, 12), st.integers(1, 5)),
            )
        }
    ),
    "containers": st.fixed_dictionaries(place | {"kind": st.sampled_from(list(CONTAINERS))}),
    "targets": st.fixed_dictionaries(
        place
        | {
            "power": exponents,
            "weight_powers": st.lists(exponents, min_size=1, max_size=3),
            "constant": st.booleans(),
        }
    ),
    "asked": st.fixed_dictionaries(
        place | {"power": exponents, "kind": st.sampled_from([k for k in CONTAINERS if k not in OF_ITS_OWN])}
    ),
    "updates": st.fixed_dictionaries(
        place
        | {
            "power": exponents,
            "way": st.sampled_from(["partial_fit", "update all", "forget", "recalibrate", "nan"]),
            "weight": st.sampled_from([1.0, 1e-300, 1e300, 1e18]),
        }
    ),
}


def with_cases(item: tuple[str, str, int]) -> Counter:
    """Some cases of one check on one model."""
    check, name, cases = item
    found: Counter = Counter()

    @seed(0)
    @settings(
        max_examples=cases,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
    )
    @given(STRATEGIES[check])
    def run_one(case: dict[str, Any]) -> None:
        try:
            CHECKS[check](MODELS[name], **case)
            found[f"{check}, right"] += 1
        except Refused:
            found[f"{check}, refused"] += 1
        except Exception as error:
            raise Broken(f"numbers.CHECKS[{check!r}](numbers.MODELS[{name!r}], **{case!r}): {error}") from error

    run_one()
    return found


# ------------------------------------------------------------------------------------------------- single large cases


def many_classes(classes: int) -> dict[str, Any]:
    """As many classes as rows: refused or done, in bounded time and memory."""
    X = np.random.default_rng(0).standard_normal((classes, 3))
    start, before = time.perf_counter(), anonymous_megabytes()
    try:
        answers(fitted(PILAEClassifier(depth=0, head="ridge"), X, np.arange(classes)), X[:10])
        done = "done"
    except Refused as error:
        done = str(error)
    return {
        "many_classes": done,
        "many_classes_seconds": round(time.perf_counter() - start, 2),
        "many_classes_megabytes_left": round(anonymous_megabytes() - before),
    }


def rows_of_small_numbers(n: int) -> dict[str, Any]:
    """Very many rows of three small integers: as right as the few distinct ones."""
    X = np.random.default_rng(0).integers(-2, 3, (n, 3), dtype=np.int8)
    y = X[:, 0] + X[:, 1] > 0
    start = time.perf_counter()
    model = fitted(PILAEClassifier(), X, y)
    answers(model, X[:1000])
    if model.score(X, y) < 0.99:
        raise Broken(f"{n} rows of three int8: the score on the training rows is {model.score(X, y):.3f}")
    return {"small_rows_seconds": round(time.perf_counter() - start, 2)}


def run(cases: int, classes: int, small_rows: int, processes: int) -> dict[str, Any]:
    """`cases` of every check on every model it applies to, and the single large ones."""
    items = [
        (check, name, cases)
        for check in CHECKS
        for name, model in MODELS.items()
        if check != "updates" or hasattr(model, "forget")
    ]
    found = spread(with_cases, items, processes)
    return {
        "cases": sum(found.values()),
        **{name.replace(", ", "_"): count for name, count in sorted(found.items())},
        **many_classes(classes),
        **rows_of_small_numbers(small_rows),
    }
