"""Time to accuracy on MNIST: pilae and its peers, one after another in one run.

    PILAE_DATA=folder python -m studies.speed.peers [method ...]

Run it in an environment of its own (`make bench-peers`, packages in studies/speed/peers.txt). Every method has a
process of its own and all cores; seconds are those of `fit`, and in "GEMM" they are divided by a 4000 x 4000 float64
product timed right before and after. Writes studies/speed/results/peers.json.
"""

import importlib
import itertools
import time
import warnings
from functools import partial

import numpy as np

from studies.data import from_folder, pixels
from studies.measure import beside_products, peak_megabytes
from studies.store import run_cases

DEEP = {"depth": 2, "head__activation": "relu2", "head__encoder_ridge": 0.01, "ridge": 1e-4, "input_scaling": "none"}
"""The kind of structure that `PILAEClassifier()` finds on MNIST by leave-one-out, with the width given."""

SHALLOW = {
    "depth": 0,
    "head__anchors": "pairs",
    "head__activation": "relu2",
    "head__encoder_ridge": np.inf,
    "ridge": 1e-4,
    "input_scaling": "none",
}


def pilae(**params):
    def fit(X, y):
        from pilae import SHLN, PILAEClassifier, PILAutoencoder

        model = PILAEClassifier(layer=PILAutoencoder(), head=SHLN(), random_state=0).set_params(**params)
        return model.fit(X, y).predict

    return fit


def scikit_learn(make):
    def fit(X, y):
        return make().fit(X, y).predict

    return fit


def _mlp():
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((705, 634), early_stopping=True, random_state=0)


def _nystroem():
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import RidgeClassifier
    from sklearn.pipeline import make_pipeline

    return make_pipeline(Nystroem(gamma=0.03, n_components=5000, random_state=0), RidgeClassifier(1e-3))


def _ridge():
    from sklearn.linear_model import RidgeClassifierCV

    return RidgeClassifierCV(np.logspace(-3, 3, 7))


def _logistic():
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=200)


def _boosting():
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0)


def _scikit_elm():
    from skelm import ELMClassifier

    return ELMClassifier(n_neurons=5000, alpha=1e-2, batch_size=2000, random_state=0)


def hpelm(X, y):
    from hpelm import ELM

    model = ELM(X.shape[1], 10, classification="c", precision="single", batch=2000)
    np.random.seed(0)  # noqa: NPY002 (hpelm draws from it)
    model.add_neurons(5000, "tanh")
    model.train(X, np.eye(10, dtype=np.float32)[y], "c")
    return lambda X_test: model.predict(X_test).argmax(axis=1)


def swim(X, y):
    from swimnetworks import Dense, Linear

    targets = np.eye(10)[y]
    hidden = Dense(layer_width=5000, activation="tanh", parameter_sampler="tanh", random_seed=0).fit(X, targets)
    output = Linear(regularization_scale=1e-6).fit(hidden.transform(X), targets)
    return lambda X_test: output.transform(hidden.transform(X_test)).argmax(axis=1)


METHODS = {
    "pilae: depth 0, 2,000 pairs": pilae(head__width=2000, **SHALLOW),
    "pilae: depth 2, 3,000 neurons": pilae(head__width=3000, **DEEP),
    "pilae: depth 2, 4,000 neurons": pilae(head__width=4000, **DEEP),
    "pilae: depth 2, 5,000 neurons": pilae(head__width=5000, **DEEP),
    "pilae: the paper's 784-705-634, head 4,000, ridge given": pilae(
        width=[705, 634], layer__encoder_ridge=1e-3, head__width=4000, head__encoder_ridge=1e-3, ridge=1e-3
    ),
    "pilae: no argument": pilae(),
    "PyTorch back-propagation 784-705-634-10, Adam": None,
    "hpelm 5,000, single precision": hpelm,
    "scikit-elm 5,000": scikit_learn(_scikit_elm),
    "SWIM 5,000": swim,
    "Nystroem 5,000 + RidgeClassifier": scikit_learn(_nystroem),
    "RidgeClassifierCV": scikit_learn(_ridge),
    "LogisticRegression": scikit_learn(_logistic),
    "MLPClassifier (705, 634), early stopping": scikit_learn(_mlp),
    "HistGradientBoostingClassifier": scikit_learn(_boosting),
}


MODULES = {
    "pilae": ("pilae",),
    "PyTorch": ("torch",),
    "hpelm": ("hpelm",),
    "scikit-elm": ("skelm",),
    "SWIM": ("swimnetworks",),
}
"""By the first word of a method, what is imported before its time starts; the others are scikit-learn's."""

SCIKIT_LEARN = tuple(
    f"sklearn.{name}" for name in ("ensemble", "kernel_approximation", "linear_model", "neural_network")
)


def back_propagation(X, y, X_test, y_test, epochs: int = 8) -> list[dict]:
    """Adam 0.001, batches of 128: seconds and test accuracy after every epoch."""
    import torch

    torch.manual_seed(0)
    sizes = (784, 705, 634, 10)
    layers = [torch.nn.Linear(a, b) for a, b in itertools.pairwise(sizes)]
    network = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
    X, y, X_test = torch.from_numpy(X), torch.from_numpy(y.astype(np.int64)), torch.from_numpy(X_test)
    adam = torch.optim.Adam(network.parameters(), lr=1e-3)
    seconds, found = 0.0, []
    for _ in range(epochs):
        start = time.perf_counter()
        for part in torch.randperm(len(X)).split(128):
            adam.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(network(X[part]), y[part]).backward()
            adam.step()
        seconds += time.perf_counter() - start
        with torch.no_grad():
            accuracy = float((network(X_test).argmax(dim=1).numpy() == y_test).mean())
        found.append({"seconds": seconds, "test_accuracy": accuracy})
    return found


def measure(name: str) -> dict:
    X, y, X_test, y_test = from_folder("mnist")
    X, X_test = pixels(X), pixels(X_test)
    warnings.simplefilter("ignore")  # peers warn of iterations and of NumPy's changes
    for module in MODULES.get(name.split()[0].rstrip(":"), SCIKIT_LEARN):
        importlib.import_module(module)
    if METHODS[name] is None:
        fit = beside_products(lambda: back_propagation(X, y, X_test, y_test))
        epochs = [epoch | {"gemm": epoch["seconds"] / fit.products["float64"]} for epoch in fit.result]
        return {"epochs": epochs, "peak_megabytes": peak_megabytes()}
    fit = beside_products(lambda: METHODS[name](X, y))
    peak = peak_megabytes()
    accuracy = float((fit.result(X_test) == y_test).mean())
    return {"seconds": fit.seconds, "gemm": fit.gemm, "test_accuracy": accuracy, "peak_megabytes": peak}


if __name__ == "__main__":
    run_cases(__spec__.name, {name: partial(measure, name) for name in METHODS}, key="methods")
