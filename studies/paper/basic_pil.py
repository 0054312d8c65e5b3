"""Basic pseudoinverse learning (section II.C): exact on the training rows, layer by layer, beside back-propagation.

The kind of problem it was made for: a few hundred rows of a smooth function, a nonlinear map, a small classification.
"""

from collections.abc import Callable

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import train_test_split
from torch import nn

from pilae import PILClassifier, PILRegressor
from studies.measure import seconds_of
from studies.paper import bp


def sine(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One period of a sine."""
    X = np.sort(rng.uniform(0, 2 * np.pi, (n, 1)), axis=0)
    return X, np.sin(X[:, 0])


def surface(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """sin(x) / x of the distance from the origin, in the plane."""
    X = rng.uniform(-8, 8, (n, 2))
    return X, np.sinc(np.linalg.norm(X, axis=1) / np.pi)


FUNCTIONS = {"sine, 50 rows": (sine, 50), "sin(r)/r, 300 rows": (surface, 300)}
CLASSES = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}


def of_function(make: Callable, n: int) -> dict:
    rng = np.random.default_rng(0)
    (X, y), (X_test, y_test) = make(n, rng), make(1000, rng)
    model = PILRegressor()
    seconds, _ = seconds_of(lambda: model.fit(X, y))
    scaled = [(rows - X.mean(0)) / X.std(0) for rows in (X, X_test)]
    net, curve = _regression(*scaled, y, y_test)
    return {
        "ranks": list(model.ranks_),
        "seconds": seconds,
        "training error": float(np.sqrt(np.mean((model.predict(X) - y) ** 2))),
        "test error": float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))),
        "bp training error": net,
        "bp test error": curve[0],
        "bp seconds": curve[1],
    }


def _regression(X: np.ndarray, X_test: np.ndarray, y: np.ndarray, y_test: np.ndarray) -> tuple[float, tuple]:
    """(error on the training rows, (on the test rows, seconds)) of a network of 50 and 50 neurons, 2,000 epochs."""
    torch.manual_seed(0)
    bp.use_all_cores()
    net = bp.mlp([X.shape[1], 50, 50, 1], nn.Tanh)
    rows, target = (torch.as_tensor(a, dtype=torch.float32) for a in (X, y[:, None]))
    rule = bp.Saturation(patience=2000, least=0.0, epochs=2000, updates=0)
    curve = bp.train(net, nn.functional.mse_loss, rows, target, lambda: -_error(net, X, y), rule, 0)
    return _error(net, X, y), (_error(net, X_test, y_test), curve.seconds[-1])


def _error(net: nn.Module, X: np.ndarray, y: np.ndarray) -> float:
    with torch.no_grad():
        out = net(torch.as_tensor(X, dtype=torch.float32)).numpy()[:, 0]
    return float(np.sqrt(np.mean((out - y) ** 2)))


def of_classes(load: Callable) -> dict:
    X, y = load(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    model = PILClassifier()
    seconds, _ = seconds_of(lambda: model.fit(X, y))
    mean, deviation = X.mean(0), X.std(0)
    curve = bp.classifier(*bp.tensors((X - mean) / deviation, y, (X_test - mean) / deviation, y_test), [50], 0)
    return {
        "ranks": list(model.ranks_),
        "seconds": seconds,
        "training accuracy": model.score(X, y),
        "test accuracy": model.score(X_test, y_test),
        "bp test accuracy": curve.test[curve.best],
        "bp seconds": curve.seconds[-1],
    }


def cells() -> dict[str, Callable[[], dict]]:
    found: dict[str, Callable[[], dict]] = {
        name: lambda make=make, n=n: of_function(make, n) for name, (make, n) in FUNCTIONS.items()
    }
    return found | {name: lambda load=load: of_classes(load) for name, load in CLASSES.items()}
