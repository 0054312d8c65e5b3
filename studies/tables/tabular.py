"""`PILAEClassifier()` with no argument beside scikit-learn's classifiers on tables.

    PILAE_DATA=folder python -m studies.tables.tabular [set ...]

Stratified 5-fold, raw columns, missing values filled by the median; the others get a StandardScaler. isolet_subset and
the images have their official splits; pixels are divided by 255. Writes studies/tables/results/tabular.json, one method
on one set after another, so that it can be stopped and continued: what is there is measured again only if its
set is named.
"""

import sys
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from pilae import PILAEClassifier, datasets
from studies.data import Split, folds, images
from studies.measure import describe, seconds_of
from studies.store import read, results_of, write

BUILT_IN = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer, "digits": load_digits}
FILES = (
    "liver_bupa",
    "coil20_32x32",
    "har_subset735",
    "isolet_subset",
    "segment",
    "mfeat",
    "internet_ads",
    "spambase",
    "sylva_agnostic_train",
)
SAME = {"liver_bupa": "bupa", "internet_ads": "advertisement"}
"""What `pilae.datasets` calls them."""

IMAGES = ("mnist", "fashion_mnist", "svhn_gray")
METHODS = {
    "PILAEClassifier": lambda: PILAEClassifier(random_state=0),
    "MLPClassifier": lambda: make_pipeline(StandardScaler(), MLPClassifier(random_state=0)),
    "LogisticRegression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "SVC": lambda: make_pipeline(StandardScaler(), SVC()),
    "RidgeClassifierCV": lambda: make_pipeline(StandardScaler(), RidgeClassifierCV(alphas=np.logspace(-3, 3, 7))),
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(random_state=0),
}


def splits(name: str) -> list[Split]:
    """The folds of a table, or its official split."""
    if name in IMAGES:
        return [images(name)]
    if name in BUILT_IN:
        return list(folds(*BUILT_IN[name](return_X_y=True)))
    found = datasets.load(SAME.get(name, name))
    if found.X_test is not None:
        return [Split(found.X, found.y, found.X_test, found.y_test)]
    return list(folds(found.X.reshape(len(found.X), -1), found.y))


def measure(make: Callable[[], ClassifierMixin], splits: list[Split]) -> dict:
    """Mean accuracy and seconds of one method; leave-one-out accuracy where it has one."""
    accuracy, seconds, loo = [], [], []
    for X, y, X_test, y_test in splits:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an MLP that has not converged says so every time
            took, model = seconds_of(lambda X=X, y=y: make().fit(X, y))
        seconds.append(took)
        accuracy.append(float(model.score(X_test, y_test)))
        loo.append(getattr(model, "loo_score_", None))
    result = {"accuracy": float(np.mean(accuracy)), "seconds": float(np.mean(seconds))}
    return result if loo[0] is None else result | {"loo": float(np.mean(loo))}


def main() -> None:
    path = results_of("tables", "tabular")
    results = {"sets": {}} | read(path)
    results |= {"command": "python -m studies.tables.tabular", "machine": describe()}
    for name in sys.argv[1:] or [*BUILT_IN, *FILES, *IMAGES]:
        found = splits(name)
        rows, columns = found[0].X.shape
        if name in sys.argv[1:] or name not in results["sets"]:
            results["sets"][name] = {"rows": rows, "columns": columns, "folds": len(found), "methods": {}}
        methods = results["sets"][name]["methods"]
        for method, make in METHODS.items():
            slow = (method == "HistGradientBoosting" and columns > 300) or (method == "SVC" and rows > 20_000)
            if method in methods or slow:  # minutes a fold on wide tables, hours on many rows
                continue
            methods[method] = measure(make, found)
            print(
                f"{name:<22}{method:<22}{methods[method]['accuracy']:.4f}{methods[method]['seconds']:9.2f} s",
                flush=True,
            )
            write(path, results)


if __name__ == "__main__":
    main()
