"""Streams whose truth changes, suddenly or slowly: every row is predicted before it is learnt.

    python -m studies.continual.drift [--quick] [--continue] [--jobs=2] [case ...]    # --quick: a fifth of the rows

Hyperplane, SEA and Agrawal's loans are made here, 100,000 rows each. The first 1,000 rows are given to every model to
begin with; then rows come twenty at a time (to river's models one by one). Nothing is chosen by what it gives: pilae
runs as a linear model and as a network, each with three half-lives, and answers with the one whose running score on the
rows before is best. river's models run where river is installed (studies/continual/peers.txt). Writes
studies/continual/results/drift.json.
"""

import importlib.util
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from studies.store import run_cases

ROWS, FIRST, BATCH = 100_000, 1000, 20
HALF_LIVES = (300.0, 1000.0, 4000.0)
SCORED = 300
"""Half-life of the running scores, and rows before one counts."""
FOUND, LATEST = 2500, 1500
"""Rows after which the network is found again, and how many of the latest it is found from."""
POINTS = 50
"""Of the curve that is kept."""

Answers = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""What was predicted for every row after the first ones."""


# ------------------------------------------------------------------------------------------------- streams


def hyperplane(n: int, slow: bool, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """On which side of a plane in ten dimensions: it turns a little with every row, or all at once four times."""
    X = rng.uniform(size=(n, 10))
    corners = rng.standard_normal((5, 10))
    place = np.linspace(0, 4, n, endpoint=False)
    low, share = place.astype(int), (place % 1)[:, None]
    W = corners[low] * (1 - share) + corners[low + 1] * share if slow else corners[low]
    return X, _noisy(((X - 0.5) * W).sum(axis=1) > 0, 0.05, rng)


def sea(n: int, slow: bool, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Whether the first two of three columns sum up to no more than a threshold that moves."""
    X = rng.uniform(0, 10, size=(n, 3))
    thresholds = np.array([8.0, 9.0, 7.0, 9.5, 8.0])
    place = np.linspace(0, 4, n, endpoint=False)
    theta = np.interp(place, range(5), thresholds) if slow else thresholds[place.astype(int)]
    return X, _noisy(X[:, 0] + X[:, 1] <= theta, 0.1, rng)


def agrawal(n: int, slow: bool, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Loans by rules on salary, age, education and debt (Agrawal, Imielinski and Swami, 1993): four rules in turn."""
    salary = rng.uniform(20e3, 150e3, n)
    commission = np.where(salary >= 75e3, 0.0, rng.uniform(10e3, 75e3, n))
    age, education = rng.integers(20, 81, n), rng.integers(0, 5, n)
    car, zipcode = rng.integers(1, 21, n), rng.integers(0, 9, n)
    house, years = (9 - zipcode) * 1e5 * rng.uniform(0.5, 1.5, n), rng.integers(1, 31, n)
    loan = rng.uniform(0, 500e3, n)
    young, middle = age < 40, (age >= 40) & (age < 60)

    def by_age(one: np.ndarray, two: np.ndarray, three: np.ndarray) -> np.ndarray:
        return np.where(young, one, np.where(middle, two, three))

    rules = np.stack(
        [
            ~middle,
            by_age(*((low <= salary) & (salary <= low + 50e3) for low in (50e3, 75e3, 25e3))),
            by_age(education <= 1, (education >= 1) & (education <= 3), education >= 2),
            0.67 * (salary + commission) - 0.2 * loan - 20e3 > 0,
        ]
    )
    place = np.linspace(0, 4, n, endpoint=False)
    if slow:  # around each change both rules are at work, more and more often the next
        place = np.clip(place + rng.uniform(-0.25, 0.25, n), 0, 3.999)
    X = np.stack([salary, commission, age, education, car, zipcode, house, years, loan], axis=1)
    return X, _noisy(rules[place.astype(int), np.arange(n)], 0.05, rng)


def _noisy(truth: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    return (truth ^ (rng.random(len(truth)) < share)).astype(int)


STREAMS = {"Hyperplane": hyperplane, "SEA": sea, "Agrawal": agrawal}


# ------------------------------------------------------------------------------------------------- models


def pilae(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A linear model and a network, each with three half-lives; the answer is that of the best running score so far.
    The network is found again now and then, from the latest rows, and takes the place of the one before the last."""
    from pilae import SHLN, PILAEClassifier

    first = np.arange(FIRST)
    linear = _fading(PILAEClassifier(depth=0, head="ridge", random_state=0), X[first], y[first])
    last, latest = [], _fading(PILAEClassifier(head=SHLN(networks=1), random_state=0), X[first], y[first])
    best, said = linear[0][0], []
    for start in range(FIRST, len(X), BATCH):
        rows = slice(start, start + BATCH)
        said.append(best.predict(X[rows]))
        pool = [*linear, *last, *latest]
        for model, half_life in pool:
            model.partial_fit(X[rows], y[rows], half_life=half_life, test_first=SCORED)
        if (start - FIRST) % FOUND == FOUND - BATCH:
            recent = slice(start + BATCH - LATEST, start + BATCH)
            last, latest = latest, _fading(PILAEClassifier(head=SHLN(networks=1), random_state=0), X[recent], y[recent])
        tried = [model for model, _ in pool if model.stream_.count >= SCORED]
        best = max(tried, key=lambda model: model.stream_score_) if tried else best
    return np.concatenate(said)


def _fading(model: Any, X: np.ndarray, y: np.ndarray) -> list[tuple[Any, float]]:
    """One network with several half-lives."""
    if len(np.unique(y)) < 2:  # nothing to find a network by
        return []
    network = model.fit(X, y)
    return [(network.fork().partial_fit(X, y, half_life=h), h) for h in HALF_LIVES]


def pilae_of_all_rows(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Nothing is forgotten."""
    from pilae import SHLN, PILAEClassifier

    return _by_batches(PILAEClassifier(head=SHLN(networks=1), random_state=0).fit(X[:FIRST], y[:FIRST]), X, y)


def sgd(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """scikit-learn's, on columns standardised by the first rows, at a learning rate that does not shrink."""
    from sklearn.linear_model import SGDClassifier
    from sklearn.preprocessing import StandardScaler

    X = StandardScaler().fit(X[:FIRST]).transform(X)
    model = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.01, random_state=0)
    return _by_batches(model.partial_fit(X[:FIRST], y[:FIRST], classes=[0, 1]), X, y)


def _by_batches(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    said = []
    for start in range(FIRST, len(X), BATCH):
        rows = slice(start, start + BATCH)
        said.append(model.predict(X[rows]))
        model.partial_fit(X[rows], y[rows])
    return np.concatenate(said)


def river_forest(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    from river.forest import ARFClassifier

    return _one_by_one(ARFClassifier(seed=0), X, y)


def river_tree(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    from river.tree import HoeffdingAdaptiveTreeClassifier

    return _one_by_one(HoeffdingAdaptiveTreeClassifier(seed=0), X, y)


def _one_by_one(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    said = np.zeros(len(X), int)
    for k, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        x = dict(enumerate(row))
        if k >= FIRST:
            said[k] = model.predict_one(x) or 0
        model.learn_one(x, label)
    return said[FIRST:]


MODELS: dict[str, Answers] = {
    "pilae": pilae,
    "pilae, nothing forgotten": pilae_of_all_rows,
    "SGDClassifier": sgd,
    "river: adaptive random forest": river_forest,
    "river: Hoeffding adaptive tree": river_tree,
}


def measure(name: str, slow: bool, rows: int) -> dict:
    """Accuracy, rows a second (of processor time) and the curve of every model on one stream."""
    X, y = STREAMS[name](rows, slow, np.random.default_rng(0))
    found = {}
    for model, answer in MODELS.items():
        if model.startswith("river") and importlib.util.find_spec("river") is None:
            continue
        start = time.process_time()
        hits = answer(X, y) == y[FIRST:]
        seconds = time.process_time() - start
        found[model] = {
            "accuracy": float(hits.mean()),
            "rows_per_second": len(hits) / seconds,
            "curve": [round(float(part.mean()), 4) for part in np.array_split(hits, POINTS)],
        }
    return {"rows": rows, "models": found}


if __name__ == "__main__":
    rows = ROWS // 5 if "--quick" in sys.argv else ROWS
    cases = {
        f"{name}, {'slow' if slow else 'sudden'}": partial(measure, name, slow, rows)
        for name in STREAMS
        for slow in (False, True)
    }
    run_cases(__spec__.name, cases)
