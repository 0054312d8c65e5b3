"""What `forget` takes away, and what stays: measured by membership inference.

The attacker has a model and asks of a row whether it was among the training rows. A score is computed for members and
for rows of the same kind that were never in; the attack's strength is the area under its ROC curve (0.5: it knows
nothing), and its advantage 2 * AUC - 1.

The output layer of a wide head on few rows remembers their labels: the attacker looks at how surely the model says the
row's own. The feature map remembers its anchors: the attacker looks at how strongly the most responsive neuron answers
the row. Promised: after `forget` the output layer is, number for number, one that never saw the rows: nothing of their
labels is left, and the first attack is at chance. The second still works, because anchors are rows and `forget` keeps
them; after `forget(..., remaining=...)` both are at chance.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

import pilae
from helpers import rounding, tolerance
from torture.harness import Broken

QUICK = {"models": 6}
FULL = {"models": 400}

TRAINED, FORGOTTEN, COLUMNS = 120, 20, 40
CHANCE = 3.5
"""An AUC is at chance within so many standard errors."""

KNOWN = 0.65
"""What the attacks must reach on members before, for their failure afterwards to mean anything."""


def rows(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels are noise: what a model knows of them it has remembered, not learnt."""
    return rng.standard_normal((n, COLUMNS)), rng.integers(0, 2, n)


def label_attack(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How surely the model says the label that the row had."""
    return model.decision_function(X) * (2 * y - 1)


def anchor_attack(model: Any, X: np.ndarray) -> np.ndarray:
    """How near a row is to the nearest anchor row, in the way neurons see it.

    With an encoder ridge of infinity a neuron's weights are its anchor row, scaled.
    """
    hidden = model.head_.hidden
    x = X if hidden.scaling is None else hidden.scaling(X)
    W = hidden.weights / np.linalg.norm(hidden.weights, axis=0)
    return np.max(x @ W / np.linalg.norm(x, axis=1)[:, None], axis=1)


def auc(inside: list[np.ndarray], outside: list[np.ndarray]) -> tuple[float, float]:
    """(area under the curve, its standard error over models)."""
    each = [
        roc_auc_score(np.r_[np.ones(len(a)), np.zeros(len(b))], np.r_[a, b])
        for a, b in zip(inside, outside, strict=True)
    ]
    return float(np.mean(each)), float(np.std(each, ddof=1) / np.sqrt(len(each)))


def nothing_in_the_file() -> None:
    """Targets that are told from all others by their digits are in a saved model before `forget`, and not after."""
    rng = np.random.default_rng(0)
    X, z = rng.standard_normal((TRAINED, 5)), rng.standard_normal(TRAINED)
    model = pilae.PILAERegressor(depth=0, head=pilae.SHLN(width=10)).fit(X, z)
    gone = [number.tobytes() for number in z[:FORGOTTEN]]
    coef = model.head_.output.coef.tobytes()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pilae"
        model.save(path)
        if not all(number in path.read_bytes() for number in gone):
            raise Broken("targets are not in a file that keeps leave-one-out results: the search for them says nothing")
        model.forget(X[:FORGOTTEN], z[:FORGOTTEN])
        for statistics in (True, False):
            model.save(path, statistics=statistics)
            if any(number in path.read_bytes() for number in [*gone, coef]):
                raise Broken("after forget the file of a model holds targets that were forgotten, or what they gave")


def run(models: int) -> dict[str, Any]:
    with threadpool_limits(1):  # the products are small
        return _run(models)


def _run(models: int) -> dict[str, Any]:
    attacks: dict[str, tuple[list, list]] = {}
    worst = 0.0
    for seed in range(models):
        rng = np.random.default_rng([seed, 9])
        (X, y), (U, v) = rows(rng, TRAINED), rows(rng, FORGOTTEN)
        out, kept = slice(0, FORGOTTEN), slice(FORGOTTEN, None)
        given = {
            "depth": 0,
            "input_scaling": "standard",
            "ridge": 1e-3,
            "random_state": seed,
            "head": pilae.SHLN(
                width=TRAINED - FORGOTTEN - 2,
                anchors="rows",
                encoder_ridge=float("inf"),
                direct_links=False,
                activation="relu",
            ),
        }
        model = pilae.PILAEClassifier(**given).fit(X, y)
        states = {"before": model}
        states["after forget"] = pilae.PILAEClassifier(**given).fit(X, y).forget(X[out], y[out])
        states["after forget, remaining"] = (
            pilae.PILAEClassifier(**given).fit(X, y).forget(X[out], y[out], remaining=(X[kept], y[kept]))
        )
        never = model.fork().partial_fit(X[kept], y[kept]).decision_function(U)
        apart = float(np.abs(states["after forget"].decision_function(U) - never).max() / np.abs(never).max())
        if apart > tolerance(**rounding(states["after forget"])):
            raise Broken(f"after forget the outputs differ by {apart:.1e} from an output layer that never saw the rows")
        worst = max(worst, apart)
        for name, state in states.items():
            for attack, inside, outside in (
                ("label", label_attack(state, X[out], y[out]), label_attack(state, U, v)),
                ("anchor", anchor_attack(state, X[out]), anchor_attack(state, U)),
            ):
                found = attacks.setdefault(f"{attack}, {name}", ([], []))
                found[0].append(inside)
                found[1].append(outside)
    nothing_in_the_file()
    areas = {name: auc(*scores) for name, scores in attacks.items()}
    for name in ("label, before", "anchor, before", "anchor, after forget"):
        if areas[name][0] < KNOWN:
            raise Broken(f"{name}: the attack reaches only {areas[name][0]:.3f}, so that its failure would say nothing")
    for name in ("label, after forget", "label, after forget, remaining", "anchor, after forget, remaining"):
        area, error = areas[name]
        if abs(area - 0.5) > CHANCE * error:
            raise Broken(f"{name}: the attack reaches {area:.3f} (standard error {error:.3f}), not chance")
    return {
        "models": models,
        "auc": {name: round(area, 3) for name, (area, _) in areas.items()},
        "standard_error": {name: round(error, 3) for name, (_, error) in areas.items()},
        "outputs_against_never_seen": worst,
    }
