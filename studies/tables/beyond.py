"""What the paper leaves for later, measured: residual networks, sparse decoders, targets with gross errors.

    python -m studies.tables.beyond [residual] [sparse] [robust]

Writes studies/tables/results/beyond.json. Residual: the tables of `studies.tables.tabular` (13 sets, 5-fold), two
layers; skip connections and a second stack where leave-one-out on the training rows is lower with them. Sparse: MNIST,
two layers. Robust: Friedman's first function, 2,000 rows, one target in twenty moved by 20 to 100 standard deviations
of the noise.
"""

import sys

import numpy as np
from sklearn.datasets import make_friedman1

from pilae import SHLN, PILAEClassifier, PILAERegressor, PILAutoencoder
from studies.data import images
from studies.measure import describe, seconds_of
from studies.store import read, results_of, write
from studies.tables.tabular import BUILT_IN, FILES, splits

VARIANTS = {
    "plain": {"skip": False, "branches": 1},
    "skip": {"skip": True, "branches": 1},
    "two stacks": {"skip": False, "branches": 2},
    "both": {"skip": True, "branches": 2},
}


def residual() -> dict:
    """Accuracy of two-layer networks: the plain stack, and the variant of lowest leave-one-out error in each fold."""
    found = {}
    for name in (*BUILT_IN, *FILES):
        plain, chosen, taken = [], [], []
        for X, y, X_test, y_test in splits(name):
            errors, scores = {}, {}
            for label, options in VARIANTS.items():
                model = PILAEClassifier(depth=2, random_state=0, **options).fit(X, y)
                errors[label] = min(model.head_.output.path.values())
                scores[label] = model.score(X_test, y_test)
            best = min(errors, key=errors.__getitem__)
            plain.append(scores["plain"])
            chosen.append(scores[best])
            taken.append(best)
        found[name] = {"plain": float(np.mean(plain)), "chosen": float(np.mean(chosen)), "taken": taken}
        print(name, found[name], flush=True)
    gains = np.array([case["chosen"] - case["plain"] for case in found.values()])
    return {
        "sets": found,
        "not_worse": int(np.sum(gains >= 0)),
        "mean_gain": float(gains.mean()),
        "paired_standard_error": float(gains.std(ddof=1) / len(gains) ** 0.5),
    }


def _density(layers: list) -> float:
    sizes = [layer.weights.size for layer in layers]
    return sum(layer.density * size for layer, size in zip(layers, sizes, strict=True)) / sum(sizes)


def sparse() -> dict:
    X, y, X_test, y_test = images("mnist")
    found = []
    for l1 in (0.0, 0.004, 0.007, 0.01):
        layer = PILAutoencoder(decoder_l1=l1)
        network = PILAEClassifier(depth=2, layer=layer, head=SHLN(4000), ridge=1e-3, random_state=0)
        seconds, model = seconds_of(lambda network=network: network.fit(X, y))
        found.append(
            {
                "decoder_l1": l1,
                "density": [layer.density for layer in model.layers_],
                "density_of_all": _density(model.layers_),
                "test_accuracy": float(model.score(X_test, y_test)),
                "seconds": seconds,
            }
        )
        print(found[-1], flush=True)
    return {"MNIST, two layers, 4,000 neurons": found}


def robust() -> dict:
    """Error of the mean on clean test rows, of fits on clean and on wrong targets."""
    found = []
    for seed in range(5):
        X, y = make_friedman1(4000, noise=1.0, random_state=seed)
        rng = np.random.default_rng(seed)
        bad = rng.random(2000) < 0.05
        wrong = y[:2000] + np.where(bad, rng.choice([-1, 1], 2000) * rng.uniform(20, 100, 2000), 0.0)
        errors = {}
        for label, targets, loss in (
            ("clean", y[:2000], "squared"),
            ("squared", wrong, "squared"),
            ("robust", wrong, "robust"),
        ):
            model = PILAERegressor(loss=loss, random_state=0).fit(X[:2000], targets)
            errors[label] = float(np.sqrt(np.mean((model.predict(X[2000:]) - y[2000:]) ** 2)))
        found.append(errors)
        print(errors, flush=True)
    means = {label: float(np.mean([errors[label] for errors in found])) for label in found[0]}
    return {"runs": found, "mean": means}


PARTS = {"residual": residual, "sparse": sparse, "robust": robust}


def main() -> None:
    path = results_of("tables", "beyond")
    results, machine = read(path), describe()
    for name in sys.argv[1:] or PARTS:
        results[name] = PARTS[name]() | {"commit": machine["commit"]}
        write(path, results | {"machine": machine})


if __name__ == "__main__":
    main()
