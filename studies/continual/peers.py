"""Those that learn classes task by task beside pilae, each on columns that were standardised with all rows in sight: a
favour, since in a stream nobody knows the later ones."""

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from studies.data import Split

PASSES = 5
"""Of those that learn by gradients, over each task."""

RIVER_ROWS = 1000
"""Of each task at most: river learns row by row, number by number."""

Learner = tuple[Any, Callable[[Any, np.ndarray], object]]
"""A model, and how it learns rows of the standardised data."""


def standardised(data: Split) -> Split:
    from sklearn.preprocessing import StandardScaler

    scale = StandardScaler().fit(data.X.astype(np.float32))
    X, X_test = (scale.transform(part.astype(np.float32)) for part in (data.X, data.X_test))
    return Split(X, data.y, X_test, data.y_test)


def logistic() -> Any:
    """What sees everything at once."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=200, C=0.01)


def learners(data: Split) -> dict[str, Learner]:
    """By name; those of river where it is installed."""
    from sklearn.linear_model import SGDClassifier
    from sklearn.neural_network import MLPClassifier

    def learn(model: Any, rows: np.ndarray) -> None:
        for _ in range(PASSES):
            model.partial_fit(data.X[rows], data.y[rows], classes=np.unique(data.y))

    found: dict[str, Learner] = {
        "SGDClassifier": (SGDClassifier(random_state=0), learn),
        "MLPClassifier": (MLPClassifier(random_state=0), learn),
    }
    if importlib.util.find_spec("river") is not None:
        from river.forest import ARFClassifier
        from river.tree import HoeffdingAdaptiveTreeClassifier

        one_by_one = partial(_one_by_one, data)
        few = f"{RIVER_ROWS:,} rows a task"
        found[f"river: adaptive random forest, {few}"] = (OneByOne(ARFClassifier(seed=0)), one_by_one)
        found[f"river: Hoeffding adaptive tree, {few}"] = (
            OneByOne(HoeffdingAdaptiveTreeClassifier(seed=0)),
            one_by_one,
        )
    return found


class OneByOne:
    """A model of river, asked about rows of an array."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, X: np.ndarray) -> np.ndarray:
        answers = (self.model.predict_one(dict(enumerate(row))) for row in X.tolist())
        return np.array([-1 if answer is None else answer for answer in answers])


def _one_by_one(data: Split, model: OneByOne, rows: np.ndarray) -> None:
    for k in rows[:RIVER_ROWS]:
        model.model.learn_one(dict(enumerate(data.X[k].tolist())), int(data.y[k]))
