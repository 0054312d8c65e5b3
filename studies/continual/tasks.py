"""Classes that come one by one, many clients, rows that are deleted: is it the model of having had the rows at once?

    python -m studies.continual.tasks [--quick] [--continue] [--jobs=2] [case ...]    # --quick: 10,000 rows, width 300

Sets: cifar10_embeddings (CIFAR-10 through a network trained on ImageNet, 384 columns of half floats), mnist and
isolet_subset (spoken letters, 26 classes), as they lie in PILAE_DATA. One network, found on all rows (`joint`), is
filled in four ways, and a fifth time without a tenth of the rows. What it costs that the first two classes alone find
the network is said twice, with 1,000 neurons (or as many as the first task has rows) and with no argument: against all
rows at once, and with no argument against a network found again on a tenth of the rows (of all classes, at least 1,000)
and filled with all. Beside it learn those of `peers`. Writes studies/continual/results/tasks.json, or with --quick
tasks-quick.json.
"""

import pickle
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from studies.continual.peers import learners, logistic, standardised
from studies.data import Split, from_folder, pixels
from studies.store import run_cases

SETS = {"cifar10_embeddings": "CIFAR-10 embeddings", "mnist": "MNIST", "isolet_subset": "Isolet, a subset"}
QUICK_ROWS = 10_000
SAMPLE = 1000
"""Rows that the network is found again on, once all classes are there: a tenth of them, or this many."""

Batches = Iterator[np.ndarray]


def split_of(name: str, quick: bool) -> Split:
    X, y, X_test, y_test = from_folder(name)
    if X.dtype == np.uint8:
        X, X_test = (pixels(part, "float64") for part in (X, X_test))  # exact deletion needs float64 products
    elif X.dtype == np.float32:
        X, X_test = X.astype(np.float64), X_test.astype(np.float64)
    chosen = np.random.default_rng(0).permutation(len(X))[: QUICK_ROWS if quick else len(X)]
    return Split(X[chosen], y[chosen], X_test, y_test)


def classes_of(y: np.ndarray) -> int:
    return int(y.max()) + 1


def by_class(y: np.ndarray, classes: int) -> Batches:
    """Tasks of so many classes each, one after another."""
    for start in range(0, classes_of(y), classes):
        yield np.flatnonzero((y >= start) & (y < start + classes))


def blurry(y: np.ndarray) -> Batches:
    """One task for each class; nine tenths of its rows are of that class, the others come when they like."""
    rng, count = np.random.default_rng(0), classes_of(y)
    task = np.where(rng.random(len(y)) < 0.1, rng.integers(0, count, len(y)), y)
    for k in range(count):
        yield np.flatnonzero(task == k)


def clients(y: np.ndarray, count: int = 100) -> Batches:
    """Clients with very uneven shares of the classes: Dirichlet(0.1)."""
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.full(count, 0.1), size=classes_of(y))
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


def after_each(model: Any, data: Split, learn: Callable[[Any, np.ndarray], object]) -> dict:
    """Accuracy on the classes met so far, after each task of two; processor seconds; what is kept between tasks."""
    scores, start = [], time.process_time()
    for k, rows in enumerate(by_class(data.y, 2), 1):
        learn(model, rows)
        met = data.y_test < 2 * k
        scores.append(float(np.mean(np.asarray(model.predict(data.X_test[met])) == data.y_test[met])))
    seconds = round(time.process_time() - start, 2)
    return {"accuracy": scores, "seconds": seconds, "megabytes": round(len(pickle.dumps(model)) / 1e6, 2)}


def measure(name: str, quick: bool) -> dict:
    from pilae import SHLN, PILAEClassifier

    data = split_of(name, quick)
    width = min(300 if quick else 1000, int(np.sum(data.y < 2)))
    given = {"depth": 0, "head": SHLN(width=width, direct_links=True), "random_state": 0}
    add = partial(_add, data)
    joint, at_once = PILAEClassifier(**given), PILAEClassifier(random_state=0)
    whole = {
        "pilae, neurons given": _all_at_once(joint, data),
        "pilae, no argument": _all_at_once(at_once, data),
        "pilae, no argument, found again on a sample": _found_again(data),
    }
    tasks = {
        "pilae, neurons given": after_each(PILAEClassifier(**given), data, add),
        "pilae, neurons given, network of all classes": after_each(joint.fork(), data, add),
        "pilae, no argument": after_each(PILAEClassifier(random_state=0), data, add),
    }
    scaled = standardised(data)
    for peer, (model, learn) in learners(scaled).items():
        tasks[peer] = after_each(model, scaled, learn)
    whole["LogisticRegression"] = _all_at_once(logistic(), scaled)
    return {"rows": len(data.y), "classes": classes_of(data.y), "same": same(joint, data), "tasks": tasks, "all": whole}


def same(joint: Any, data: Split) -> dict[str, dict[str, float]]:
    """How far each way of filling one network is from the joint fit, and processor seconds."""
    expected = joint.decision_function(data.X_test)
    gone = np.random.default_rng(1).permutation(len(data.y))[: len(data.y) // 10]
    stay = np.setdiff1d(np.arange(len(data.y)), gone)
    never = joint.fork().partial_fit(data.X[stay], data.y[stay]).decision_function(data.X_test)
    whole = joint.fork().partial_fit(data.X, data.y)
    ways = {
        "one class at a time": (lambda: filled(joint, data, by_class(data.y, 1)), expected),
        "two classes at a time": (lambda: filled(joint, data, by_class(data.y, 2)), expected),
        "blurry tasks": (lambda: filled(joint, data, blurry(data.y)), expected),
        "100 clients, merged": (
            lambda: joint.fork().merge(
                *(joint.fork().partial_fit(data.X[rows], data.y[rows]) for rows in clients(data.y))
            ),
            expected,
        ),
        "a tenth deleted": (lambda: whole.forget(data.X[gone], data.y[gone]), never),
    }
    found = {}
    for way, (make, wanted) in ways.items():
        start = time.process_time()
        outputs = make().decision_function(data.X_test)
        seconds = round(time.process_time() - start, 2)
        found[way] = {"apart": float(np.abs(outputs - wanted).max()), "seconds": seconds}
    return found


def _add(data: Split, model: Any, rows: np.ndarray) -> None:
    model.partial_fit(data.X[rows], data.y[rows])


def _all_at_once(model: Any, data: Split) -> dict[str, float]:
    start = time.process_time()
    model.fit(data.X, data.y)
    return _judged(model, data, start)


def _found_again(data: Split) -> dict[str, float]:
    """No argument: found on a sample of all classes, and filled with all rows, as storage brings them."""
    from pilae import PILAEClassifier

    start = time.process_time()
    sample = np.random.default_rng(2).permutation(len(data.y))[: max(SAMPLE, len(data.y) // 10)]
    found = PILAEClassifier(random_state=0).fit(data.X[sample], data.y[sample])
    return _judged(filled(found, data, by_class(data.y, 2)), data, start)


def _judged(model: Any, data: Split, start: float) -> dict[str, float]:
    accuracy = float(np.mean(model.predict(data.X_test) == data.y_test))
    return {"accuracy": accuracy, "seconds": round(time.process_time() - start, 2)}


if __name__ == "__main__":
    run_cases(__spec__.name, {name: partial(measure, name, "--quick" in sys.argv) for name in SETS})
