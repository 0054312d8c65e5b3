"""Hostile images: any size, dtype, layout and level, few images, classes of one: a right answer, or one sentence.

Right means: outputs are finite, probabilities add up to one, one image at a time gets what all of them together get, a
file gives back the model, and images of another dtype, layout or scale that hold the same pixels get the same answers.
Refused means what it means for numbers. A case is made again from its number: `images.attempt(number)`.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

import pilae
from helpers import tolerance
from pilae import ConvPILAE, PILAEClassifier, PILAEImageClassifier
from torture.harness import Broken, spread
from torture.numbers import Refused, answers, quietly, same

QUICK = {"cases": 24, "processes": 1}
FULL = {"cases": 3000, "processes": 2}

LOOSEST = 1e-2
"""Of outputs between 0 and 1, whatever a tiny ridge would allow: beyond it a check could not fail."""

STEEPEST = 500
"""The slope of the root at a response of 1e-6, the least that counts."""

GIVEN = {
    "patch": 3,
    "pool": 2,
    "filters": 6,
    "encoder_ridge": 0.1,
    "contrast": 0.1,
    "threshold": 0.5,
    "shift": 0,
    "ridge": 0.01,
}

MODELS: dict[str, Any] = {
    "classifier": PILAEImageClassifier(filters=6, random_state=0),
    "classifier, given": PILAEImageClassifier(**GIVEN, mirror=False, random_state=0),
    "classifier, mirrored": PILAEImageClassifier(**GIVEN, mirror=True, random_state=0),
    "classifier, moved": PILAEImageClassifier(**GIVEN | {"shift": 1}, mirror=False, random_state=0),
    "classifier, some anchors": PILAEImageClassifier(**GIVEN, mirror=False, anchors=9, random_state=0),
    "classifier, raw patches": PILAEImageClassifier(**GIVEN | {"contrast": None}, mirror=False, random_state=0),
    "features": make_pipeline(
        ConvPILAE(filters=6, max_features=60, random_state=0), PILAEClassifier(depth=0, head="ridge", random_state=0)
    ),
}

BY_DTYPE = ("classifier", "classifier, some anchors", "features")
"""What is searched on a handful of images may be another network where these are computed in float64; and what many
images have in common with a few that are all alike is rounding, in either."""


def run(cases: int, processes: int) -> dict:
    """What happened to so many cases, by model."""
    step = max(1, cases // (8 * processes))
    met = spread(several, [range(start, min(start + step, cases)) for start in range(0, cases, step)], processes)
    answered = sum(count for name, count in met.items() if name.endswith("answered"))
    if answered < cases / 4:
        raise Broken(f"of {cases} cases only {answered} were answered: {dict(met)}")
    return {"cases": cases, "answered": answered, "refused": cases - answered, "met": dict(sorted(met.items()))}


def several(numbers: range) -> Counter:
    return Counter(attempt(number) for number in numbers)


def attempt(number: int) -> str:
    """One case: which model, and whether it answered or refused."""
    rng = np.random.default_rng([number, 7])
    name = list(MODELS)[number % len(MODELS)]
    X, y = pictures(rng)
    if name == "features" and len(set(y)) > len(y) / 2:
        y = np.arange(len(y)) % 2  # of so many classes both steps of the pipeline would say a word
    twin, X = disguised(rng, X)
    model, of = clone(MODELS[name]), f"{name}, {X.dtype} {X.shape}; see again: images.attempt({number})"
    try:
        quietly(lambda: model.fit(X, y), f"fit of {of}")
    except Refused:
        if hasattr(model, "fitted_") and model.fitted_ is not None:
            raise Broken(f"{of}: refused, but it is fitted") from None
        return f"{name}: refused"
    said = answers(model, X)
    P = said["predict_proba"]
    if np.abs(P.sum(axis=1) - 1).max() > 1e-5 or P.min() < 0:
        raise Broken(f"{of}: probabilities {P[np.abs(P.sum(axis=1) - 1).argmax()]}")
    if not np.isin(said["predict"], y).all():
        raise Broken(f"{of}: a class that nobody gave")
    one = [answers(model, X[k : k + 1]) for k in range(min(3, len(X)))]
    same(
        {k: np.concatenate([each[k] for each in one]) for k in said},
        {k: v[: len(one)] for k, v in said.items()},
        f"one at a time, {of}",
        off_by(model),
    )
    if name != "features":
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "m.pilae")
            same(answers(pilae.load(Path(folder) / "m.pilae"), X), said, f"from a file, {of}", tolerance())
    if twin is not None and (name not in BY_DTYPE or X.dtype.newbyteorder("=") != np.float64):
        plain = quietly(lambda: clone(MODELS[name]).fit(twin, y), f"fit of the twin of {of}")
        same(answers(plain, twin), said, f"the same pixels in another array, {of}", off_by(model))
    return f"{name}: answered"


def off_by(model: Any) -> float:
    """How far outputs between 0 and 1 may be apart: responses are sums over the pixels of a patch in float32, then a
    root is taken of them, and weights of a ridge solution are at most 1 / (2 sqrt(ridge)) times its targets."""
    first, last = (model[0], model[-1]) if isinstance(model, Pipeline) else (model, model)
    branches = first.fitted_.branches if isinstance(first, ConvPILAE) else first.kernel_.branches
    pixels = max(int(branch.layers[0].weights.shape[0]) for branch in branches)
    return min(LOOSEST, tolerance("float32", condition=STEEPEST / (2 * last.ridge_**0.5), terms=pixels))


def pictures(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pixels from 0 to 255 and classes, of any shape and kind."""
    n = int(rng.choice([2, 3, 5, 12, 30, 60]))
    h, w = (int(side) for side in rng.choice([1, 2, 3, 5, 8, 13, 20], 2))
    channels = int(rng.choice([0, 0, 1, 2, 3, 4]))
    shape = (n, h, w) if channels == 0 else (n, h, w, channels)
    kind = rng.choice(["noise", "classes", "one pixel", "constant", "black", "equal", "two levels"])
    y = np.arange(n) % int(rng.choice([1, 2, 2, 3, 7, n]))
    X = rng.integers(0, 256, shape)
    if kind == "classes":
        X = X // 4 + (60 * y).reshape(n, *[1] * (len(shape) - 1)) % 192
    elif kind == "one pixel":
        X = np.where(rng.random(shape) < 1.5 / (h * w), X, 0)
    elif kind == "constant":
        X = X * 0 + rng.integers(0, 256, (n, *[1] * (len(shape) - 1)))
    elif kind == "black":
        X[rng.random(n) < 0.5] = 0
    elif kind == "equal":
        X[:] = X[rng.integers(0, min(3, n), n)]
    elif kind == "two levels":
        X = np.where(X > 127, 255, 0)
    names = np.array(["cat", "dog", "été", "d", "e", "f", "g"])
    return X, names[y] if y.max() < 7 and rng.random() < 0.3 else y


def disguised(rng: np.random.Generator, X: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """(an ordinary array of the same pixels, None where there is none; the array to try)."""
    kind = rng.choice(["plain", "dtype", "layout", "scale", "holes", "far"], p=[0.1, 0.3, 0.25, 0.15, 0.1, 0.1])
    ordinary = X.astype(np.float32)
    if kind == "dtype":
        dtype = rng.choice(["u1", "<i2", ">i2", "<i8", ">f4", ">f8", "<f2", "<f8"])
        return ordinary, X.astype(dtype)
    if kind == "layout":
        made = {
            "columns": np.asfortranarray(ordinary),
            "strides": np.repeat(ordinary, 2, axis=2)[:, :, ::2],
            "backwards": np.ascontiguousarray(ordinary[::-1])[::-1],
            "locked": ordinary.copy(),
        }[str(rng.choice(["columns", "strides", "backwards", "locked"]))]
        made.flags.writeable = False
        return ordinary, made
    if kind == "scale":  # exact: the levels of pixels mean nothing where patches are brought to one contrast
        return None, X * 2.0 ** int(rng.integers(-900, 900))
    if kind == "holes":
        X = X.astype(np.float64)
        X.reshape(-1)[rng.integers(0, X.size)] = rng.choice([np.nan, np.inf, -np.inf])
    elif kind == "far":
        X = X.astype(np.float64)
        X.reshape(-1)[rng.integers(0, X.size)] = rng.choice([1e30, -1e30, 1e200, 1e308])
    return None, X if kind != "plain" else X.astype(bool)
