"""Classes that come one by one, many clients, rows that are deleted: is it the model of having had the rows at once?

    python -m studies.continual.tasks [--quick] [--continue] [--jobs=2] [case ...]    # --quick: 10,000 rows, width 300

Sets: cifar10_embeddings (CIFAR-10 through a network trained on ImageNet, 384 columns of half floats) and mnist, as they
lie in PILAE_DATA. One network, found on all rows (`joint`), is filled in five ways, and a sixth time without a tenth of
the rows; `first` is the network that the first two classes alone have found. Beside it learn SGDClassifier and
MLPClassifier by `partial_fit`, and LogisticRegression sees everything at once. Writes
studies/continual/results/tasks.json.
"""

import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from studies.data import Split, from_folder, pixels
from studies.store import run_cases

SETS = {"cifar10_embeddings": "CIFAR-10 embeddings", "mnist": "MNIST"}
QUICK_ROWS = 10_000
PASSES = 5
"""Of those that learn by gradients, over each task."""

Batches = Iterator[np.ndarray]


def split_of(name: str, quick: bool) -> Split:
    X, y, X_test, y_test = from_folder(name)
    if X.dtype == np.uint8:
        X, X_test = (pixels(part, "float64") for part in (X, X_test))  # exact deletion needs float64 products
    chosen = np.random.default_rng(0).permutation(len(X))[: QUICK_ROWS if quick else len(X)]
    return Split(X[chosen], y[chosen], X_test, y_test)


def by_class(y: np.ndarray, classes: int) -> Batches:
    """Tasks of so many classes each, one after another."""
    for start in range(0, 10, classes):
        yield np.flatnonzero((y >= start) & (y < start + classes))


def blurry(y: np.ndarray) -> Batches:
    """Ten tasks; nine tenths of the rows of each are of one class, the others come when they like."""
    rng = np.random.default_rng(0)
    task = np.where(rng.random(len(y)) < 0.1, rng.integers(0, 10, len(y)), y)
    for k in range(10):
        yield np.flatnonzero(task == k)


def clients(y: np.ndarray, count: int = 100) -> Batches:
    """Clients with very uneven shares of the classes: Dirichlet(0.1)."""
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.full(count, 0.1), size=10)
    owner = np.array([rng.choice(count, p=share[label]) for label in y])
    for k in range(count):
        rows = np.flatnonzero(owner == k)
        if len(rows):
            yield rows


def filled(network: Any, data: Split, tasks: Batches) -> Any:
    model = network.fork()
    for rows in tasks:
        model.partial_fit(data.X[rows], data.y[rows])
    return model


def after_each(model: Any, data: Split, learn: Any) -> list[float]:
    """Accuracy on the classes met so far, after each of five tasks of two."""
    scores = []
    for k, rows in enumerate(by_class(data.y, 2), 1):
        learn(model, rows)
        met = data.y_test < 2 * k
        scores.append(float(np.mean(model.predict(data.X_test[met]) == data.y_test[met])))
    return scores


def measure(name: str, quick: bool) -> dict:
    from pilae import SHLN, PILAEClassifier

    data = split_of(name, quick)
    head = SHLN(width=300 if quick else 1000, direct_links=True)
    settings = {"depth": 0, "head": head, "random_state": 0}
    start = time.process_time()
    joint = PILAEClassifier(**settings).fit(data.X, data.y)
    seconds = {"joint fit": time.process_time() - start}
    expected = joint.decision_function(data.X_test)
    ways = {
        "ten tasks of one class": lambda: filled(joint, data, by_class(data.y, 1)),
        "five tasks of two": lambda: filled(joint, data, by_class(data.y, 2)),
        "ten blurry tasks": lambda: filled(joint, data, blurry(data.y)),
        "100 clients, merged": lambda: joint.fork().merge(
            *(joint.fork().partial_fit(data.X[rows], data.y[rows]) for rows in clients(data.y))
        ),
    }
    apart = {}
    for way, make in ways.items():
        start = time.process_time()
        outputs = make().decision_function(data.X_test)
        seconds[way] = time.process_time() - start
        apart[way] = float(np.abs(outputs - expected).max())
    gone = np.random.default_rng(1).permutation(len(data.y))[: len(data.y) // 10]
    stay = np.setdiff1d(np.arange(len(data.y)), gone)
    never = joint.fork().partial_fit(data.X[stay], data.y[stay]).decision_function(data.X_test)
    start = time.process_time()
    left = joint.fork().partial_fit(data.X, data.y).forget(data.X[gone], data.y[gone]).decision_function(data.X_test)
    seconds["a tenth deleted"] = time.process_time() - start
    apart["a tenth deleted"] = float(np.abs(left - never).max())
    first = PILAEClassifier(**settings)
    curves = {"pilae, network of the first two classes": after_each(first, data, partial(_add, data))}
    curves["pilae, network of all classes"] = after_each(joint.fork(), data, partial(_add, data))
    return {
        "rows": len(data.y),
        "accuracy": {"joint": float(np.mean(joint.predict(data.X_test) == data.y_test))}
        | _others(data, curves, seconds),
        "apart": apart,
        "after_each_task": curves,
        "seconds": {key: round(value, 2) for key, value in seconds.items()},
    }


def _add(data: Split, model: Any, rows: np.ndarray) -> None:
    model.partial_fit(data.X[rows], data.y[rows])


def _others(data: Split, curves: dict[str, list[float]], seconds: dict[str, float]) -> dict[str, float]:
    """Those that learn by gradients, task by task, and what sees everything; on standardised columns."""
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    scale = StandardScaler().fit(data.X[data.y < 2].astype(np.float32))
    X, X_test = (scale.transform(part.astype(np.float32)) for part in (data.X, data.X_test))
    scaled = Split(X, data.y, X_test, data.y_test)

    def learn(model: Any, rows: np.ndarray) -> None:
        for _ in range(PASSES):
            model.partial_fit(X[rows], data.y[rows], classes=np.arange(10))

    for name, model in {
        "SGDClassifier": SGDClassifier(random_state=0),
        "MLPClassifier": MLPClassifier(random_state=0),
    }.items():
        start = time.process_time()
        curves[name] = after_each(model, scaled, learn)
        seconds[name] = time.process_time() - start
    start = time.process_time()
    logistic = LogisticRegression(max_iter=200, C=0.01).fit(X, data.y)
    seconds["LogisticRegression, all at once"] = time.process_time() - start
    return {"LogisticRegression, all at once": float(logistic.score(X_test, data.y_test))}


if __name__ == "__main__":
    run_cases(__spec__.name, {name: partial(measure, name, "--quick" in sys.argv) for name in SETS})
