"""Rows that come and go, many times: the model stays the one that a fresh fork filled with the rows now in it would be.

How far the two may part is stated in docs/data.md, and is what is asserted: `bound`. Where something so large was
forgotten that the bound says nothing any more, `forget` must have warned.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pilae import SHLN, PILAEClassifier, PILAERegressor
from pilae._network.output import standardised
from torture.harness import Broken, spread

QUICK = {"steps": 600, "checks": 2, "processes": 1}
FULL = {"steps": 100_000, "checks": 10, "processes": 2}

ROWS, COLUMNS, LEAST = 400, 4, 60
"""Rows there are, and how many of them stay in at least."""

FADED = 0.97
"""What a call leaves of all weights."""

SIDE = 10
"""The first two streams have all the steps, the others one in so many."""


class Stream(NamedTuple):
    """A model, the rows that come and go, and which of them are in."""

    model: Any
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    inside: np.ndarray


Step = Callable[[Stream, np.random.Generator, int], None]


def run(steps: int, checks: int, processes: int) -> dict:
    """Steps made, the largest drift and the worst drift over its bound, by stream."""
    found = spread(partial(_follow, steps=steps, checks=checks), STREAMS, processes)
    warned = _huge_values_are_told()
    largest, worst = (
        {name: float(f"{found[f'{name}, {what}']:.2g}") for name in STREAMS} for what in ("drift", "over bound")
    )
    return {
        "steps": int(found["steps"]),
        "warnings_checked": warned,
        "largest_drift": largest,
        "worst_drift_over_bound": worst,
    }


def _follow(name: str, steps: int, checks: int) -> Counter:
    """One stream to its end."""
    make, step, share = STREAMS[name]
    rng = np.random.default_rng([len(name), *name.encode()])
    stream, count, worst, farthest = make(rng), max(steps // share, checks), 0.0, 0.0
    for k in range(1, count + 1):
        step(stream, rng, k)
        if k % (count // checks) == 0:
            drift, limit = apart(stream), bound(stream, k)
            if not drift <= limit:
                raise Broken(
                    f"stream {name!r}: after {k} steps outputs are {drift:.3g} away from those of a fresh fork, more "
                    f"than {limit:.3g}; see again: torture.streams._follow({name!r}, steps={steps}, checks={checks})"
                )
            worst, farthest = max(worst, drift / limit), max(farthest, drift)
    return Counter({"steps": count, f"{name}, drift": farthest, f"{name}, over bound": worst})


def apart(stream: Stream) -> float:
    """The largest difference of outputs from those of a fresh fork, in standard deviations of the target."""
    model, X = stream.model, stream.X
    fresh = model.fork().partial_fit(*_some(stream, stream.inside))
    held = model.fitted_.head.output.held
    if held is not None:  # rows fade, at scales that stay what they were
        head = fresh.fitted_.head
        fresh.fitted_ = replace(fresh.fitted_, head=replace(head, output=replace(head.output, held=held, solved=False)))
    one, other = (
        np.asarray(m.decision_function(X) if hasattr(m, "classes_") else m.predict(X), np.float64)
        for m in (model, fresh)
    )
    return float(np.max(np.abs(one - other)) / np.std(other))


def bound(stream: Stream, steps: int) -> float:
    """How far the outputs may be apart: the formula of docs/data.md, from the sums themselves."""
    head = stream.model.head_
    moments = head.output.moments
    scaling, G, _ = standardised(moments, head.hidden, head.output.held)
    values, lam = np.linalg.eigvalsh(G), head.output.ridge * moments.weight
    condition = (values[-1] + lam) / (max(values[0], 0.0) + lam)
    held = np.max(moments.largest * scaling.inverse**2) / moments.weight
    held_b = np.max(moments.largest_b / moments.variance_b()) / moments.weight
    eps = float(np.finfo(moments.product).eps)
    return 4 * (len(G) * steps) ** 0.5 * eps * condition * max(held, (held * held_b) ** 0.5)


# ------------------------------------------------------------------------------------------------- how rows come and go


def at_random(stream: Stream, rng: np.random.Generator, k: int) -> None:
    """A few rows come or a few go; they need not go with those they came with."""
    comes = stream.inside.sum() <= LEAST or (rng.random() < 0.5 and not stream.inside.all())
    there = np.flatnonzero(~stream.inside if comes else stream.inside)
    rows = rng.choice(there, min(int(rng.integers(1, 9)), len(there)), replace=False)
    chosen = np.zeros(ROWS, bool)
    chosen[rows] = True
    (stream.model.partial_fit if comes else stream.model.forget)(*_some(stream, chosen))
    stream.inside[chosen] = comes


def window(stream: Stream, rng: np.random.Generator, k: int) -> None:
    """The newest rows, always as many: one comes, the oldest goes."""
    new = np.zeros(ROWS, bool)
    new[(LEAST + k) % ROWS] = True
    old = np.roll(new, -LEAST)
    if stream.inside.all():  # the first step: only a window of what was fitted stays
        gone = np.ones(ROWS, bool)
        gone[[(k + j) % ROWS for j in range(LEAST)]] = False
        stream.model.forget(*_some(stream, gone))
        stream.inside[gone] = False
    stream.model.partial_fit(*_some(stream, new & ~stream.inside))
    stream.inside[new] = True
    stream.model.forget(*_some(stream, old))
    stream.inside[old] = False


def kept_window(stream: Stream, rng: np.random.Generator, k: int) -> None:
    """The same by a model that keeps the rows: those that leave are its own affair. Now and then one is huge."""
    if stream.inside.all():  # the first step: an empty model, and a window in it
        stream.model.fitted_ = stream.model.fork().fitted_
        stream.inside[LEAST:] = False
        stream.model.partial_fit(*_some(stream, stream.inside), window=LEAST)
    new = (LEAST + k - 1) % ROWS
    if k % 1000 == 500:
        far = 1e7 * rng.standard_normal((1, COLUMNS)), stream.y[:1]
        for _ in range(LEAST):
            stream.model.partial_fit(*far)
        for j in range(LEAST):  # and all of it leaves again
            at = (new - LEAST + j) % ROWS
            stream.model.partial_fit(stream.X[at : at + 1], stream.y[at : at + 1])
    stream.model.partial_fit(stream.X[new : new + 1], stream.y[new : new + 1])
    stream.inside[new], stream.inside[(new - LEAST) % ROWS] = True, False


def fading(stream: Stream, rng: np.random.Generator, k: int) -> None:
    """One row or a few come, and all others fade; what each still weighs is kept beside."""
    assert stream.weight is not None
    rows = rng.choice(ROWS, int(rng.integers(1, 60)) if k % 10 == 0 else 1, replace=False)
    stream.model.partial_fit(stream.X[rows], stream.y[rows], decay=FADED)
    stream.weight[:] *= FADED
    stream.weight[rows] += 1.0


def after_an_outlier(stream: Stream, rng: np.random.Generator, k: int) -> None:
    """Something large comes and goes in the first step, then rows at random."""
    if k == 1:
        far = 1e4 * rng.standard_normal((1, COLUMNS)), np.array([1e4])
        stream.model.partial_fit(*far)
        stream.model.forget(*far)
    at_random(stream, rng, k)


def _some(stream: Stream, rows: np.ndarray) -> tuple[np.ndarray, ...]:
    """The arguments of partial_fit and forget."""
    X, y = stream.X[rows], stream.y[rows]
    if stream.weight is None:
        return X, y
    return X, y, stream.weight[rows]  # (of regressors: a classifier's partial_fit takes the classes there)


# ------------------------------------------------------------------------------------------------- streams

HIDDEN = {
    "depth": 0,
    "ridge": 1e-4,
    "random_state": 0,
    "head": SHLN(width=20, encoder_ridge=0.1, anchors="rows", activation="relu", direct_links=False),
}
RAW = {"depth": 0, "head": "ridge", "ridge": 1e-4, "random_state": 0}
"""The columns themselves, without bounds."""


def _stream(model: Any, rng: np.random.Generator, mean: float = 0.0, weighted: bool = False, dtype="float64") -> Stream:
    X = rng.standard_normal((ROWS, COLUMNS))
    target = X[:, 0] + np.abs(X[:, 1]) + 0.1 * rng.standard_normal(ROWS)
    y = np.digitize(target, [0.0, 1.0]) if isinstance(model, PILAEClassifier) else target
    X = (X + mean).astype(dtype)
    weight = rng.uniform(0.1, 3.0, ROWS) if weighted else None
    return Stream(model.fit(X, y, sample_weight=weight), X, y, weight, np.ones(ROWS, bool))


def _drifting(rng: np.random.Generator) -> Stream:
    """Fitted on rows about zero; all that comes and goes later is a hundred standard deviations away."""
    model = PILAERegressor(**RAW)
    stream = _stream(model, rng)
    far = stream._replace(X=stream.X + 100.0)
    model.partial_fit(*_some(far, far.inside))
    model.forget(*_some(stream, stream.inside))
    return far


STREAMS: dict[str, tuple[Callable[[np.random.Generator], Stream], Step, int]] = {
    "classifier": (lambda rng: _stream(PILAEClassifier(**HIDDEN), rng), at_random, 1),
    "regressor": (lambda rng: _stream(PILAERegressor(**HIDDEN), rng), at_random, 1),
    "sliding window": (lambda rng: _stream(PILAEClassifier(**HIDDEN), rng), window, SIDE),
    "window that is kept": (lambda rng: _stream(PILAEClassifier(**HIDDEN), rng), kept_window, SIDE),
    "fading": (lambda rng: _stream(PILAERegressor(**HIDDEN), rng, weighted=True), fading, SIDE),
    "large means": (lambda rng: _stream(PILAERegressor(**HIDDEN), rng, mean=1e6), at_random, SIDE),
    "moved rows": (_drifting, at_random, SIDE),
    "after an outlier": (lambda rng: _stream(PILAERegressor(**RAW), rng), after_an_outlier, SIDE),
    "weights": (lambda rng: _stream(PILAERegressor(**HIDDEN), rng, weighted=True), at_random, SIDE),
    "float32": (lambda rng: _stream(PILAERegressor(**HIDDEN), rng, dtype="float32"), at_random, SIDE),
}
"""Name -> the model and its rows, what a step is, one in how many of the steps it has."""


def _huge_values_are_told() -> int:
    """Wherever something huge comes and goes, outputs stay within a thousandth, or `forget` has warned."""
    told = 0
    for params in (HIDDEN, RAW):
        for size in 10.0 ** np.arange(2, 19, 4):
            for where in ("X", "y"):
                stream = _stream(PILAERegressor(**params), np.random.default_rng(0))
                far = np.ones((1, COLUMNS)) * (size if where == "X" else 1.0), np.array([size if where == "y" else 1.0])
                stream.model.partial_fit(*far)
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    stream.model.forget(*far)
                drift = apart(stream)
                if not drift < 1e-3 and not caught:
                    raise Broken(f"{size:g} in {where} was added and forgotten: outputs moved by {drift:.3g}, unsaid")
                if drift < 1e-9 and caught and size < 1e6:
                    raise Broken(f"{size:g} in {where} was added and forgotten: a warning, but no harm was done")
                told += bool(caught)
    return told + _huge_targets_of_fit_are_told()


def _huge_targets_of_fit_are_told() -> int:
    """The same for one target among the rows of `fit`, about whose mean all sums are taken."""
    told = 0
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, COLUMNS))
    z = X[:, 0] + 0.1 * rng.standard_normal(100)
    expected = PILAERegressor(**RAW).fit(X[1:], z[1:]).predict(X)
    for size in 10.0 ** np.arange(2, 150, 7):
        far = z.copy()
        far[0] = size
        model = PILAERegressor(**RAW).fit(X, far)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.forget(X[:1], far[:1])
        moved = np.abs(model.predict(X) - expected).max()
        if not moved < 0.1 and not caught:
            raise Broken(f"a target of {size:g} was in fit and forgotten: outputs moved by {moved:.3g}, unsaid")
        told += bool(caught)
    return told
